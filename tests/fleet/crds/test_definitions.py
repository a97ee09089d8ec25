"""The definitions by themselves; what an API server makes of them is in test_api_server.py."""

from typing import Any

import pytest

from garboard.fleet.crds import OWNER, OWNER_LABEL, custom_resource_definitions
from garboard.fleet.documents.kinds import API_VERSION, KINDS

DEFINITIONS: Any = custom_resource_definitions()
DEFINED = {each["spec"]["names"]["kind"]: each for each in DEFINITIONS}


def schema_of(kind: str) -> Any:
    return DEFINED[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_every_kind_that_files_may_hold_is_defined() -> None:
    read = {kind for version, kind in KINDS if version == API_VERSION}
    assert set(DEFINED) == read | {"ClusterProvision", "ClusterDeprovision"}


@pytest.mark.parametrize(
    ("kind", "short", "is_namespaced"),
    [
        ("ClusterDeployment", ["cd"], True),
        ("ClusterPool", ["cp"], True),
        ("ClusterClaim", None, True),
        ("ClusterDeploymentCustomization", ["cdc"], True),
        ("ClusterImageSet", ["imgset"], False),
    ],
)
def test_names_and_scopes_are_those_of_hive(kind: str, short: list[str] | None, is_namespaced: bool) -> None:
    spec = DEFINED[kind]["spec"]
    assert spec["names"].get("shortNames") == short
    assert spec["names"]["plural"] == f"{kind.lower()}s"
    assert spec["scope"] == ("Namespaced" if is_namespaced else "Cluster")
    assert DEFINED[kind]["metadata"]["labels"] == {OWNER_LABEL: OWNER}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (
            "ClusterDeployment",
            ["InfraID", "Platform", "Region", "Version", "ClusterType", "ProvisionStatus", "PowerState", "Age"],
        ),
        ("ClusterPool", ["Size", "Standby", "Ready", "BaseDomain", "ImageSet"]),
        ("ClusterClaim", ["Pool", "Pending", "ClusterNamespace", "ClusterRunning", "Age"]),
        ("ClusterProvision", ["ClusterDeployment", "Stage", "InfraID"]),
        ("ClusterImageSet", ["Release"]),
    ],
)
def test_columns_are_those_of_hive(kind: str, columns: list[str]) -> None:
    version = DEFINED[kind]["spec"]["versions"][0]
    assert [each["name"] for each in version["additionalPrinterColumns"]] == columns
    assert version["subresources"]["status"] == {}


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        ("ClusterDeployment", ["clusterName", "baseDomain", "platform"]),
        ("ClusterPool", ["platform", "baseDomain", "imageSetRef", "size"]),
        ("ClusterProvision", ["clusterDeploymentRef", "podSpec", "attempt", "stage"]),
        ("ClusterClaim", ["clusterPoolName"]),
    ],
)
def test_required_fields_are_those_of_hive(kind: str, required: list[str]) -> None:
    assert schema_of(kind)["properties"]["spec"]["required"] == required


def test_blocks_of_platforms_are_kept_as_they_are_written() -> None:
    for kind in ("ClusterDeployment", "ClusterPool"):
        platform = schema_of(kind)["properties"]["spec"]["properties"]["platform"]
        assert platform["x-kubernetes-preserve-unknown-fields"] is True
        assert "properties" not in platform


def test_rules_say_in_words_what_they_refuse() -> None:
    def rules(schema: Any) -> Any:
        if isinstance(schema, dict):
            yield from schema.get("x-kubernetes-validations", ())
            for each in schema.values():
                yield from rules(each)

    found = [each for kind in DEFINED for each in rules(schema_of(kind))]
    assert len(found) > 40
    assert all(len(each["message"].split()) > 3 for each in found)


@pytest.mark.parametrize("kind", DEFINED)
def test_every_field_of_a_spec_is_explained(kind: str) -> None:
    fields = schema_of(kind)["properties"]["spec"]["properties"]
    assert [name for name, field in fields.items() if not field.get("description")] == []
