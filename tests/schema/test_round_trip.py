import copy
from pathlib import Path

import pytest

from garboard.documents import Json, read_yaml, write_yaml
from garboard.errors import BadDocument
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import Schema, StructType, load_schema, round_trip
from tests.support.equality import same_value as same
from tests.support.schema.vectors import vectors

VECTORS = Path(__file__).parents[1] / "vectors/patches"
SCHEMA = load_schema(SUPPORTED_VERSIONS[0])


def type_of(document: dict[str, Json], schema: Schema = SCHEMA) -> StructType:
    found = schema.type_of(str(document["apiVersion"]), str(document["kind"]))
    assert found is not None
    return found


def pod(spec: Json, **members: Json) -> dict[str, Json]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, **members}


def rewritten_spec(spec: Json) -> Json:
    document = pod(spec)
    round_trip(document, type_of(document))
    return document["spec"]


def test_recorded_documents_come_out_as_from_go() -> None:
    pairs = vectors("round-trip")
    assert len(pairs) > 200
    for document, expected in pairs:
        rewritten = copy.deepcopy(document)
        if expected is None:
            with pytest.raises(BadDocument):
                round_trip(rewritten, type_of(document))
        else:
            round_trip(rewritten, type_of(document))
            assert same(rewritten, expected[0]), document


def test_pod_loses_unknown_fields_and_gains_what_go_always_writes() -> None:
    document = pod({"containers": [{"name": "c", "bogus": 1}]}, extra={})
    round_trip(document, type_of(document))
    assert document == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
        "status": {},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"containers": None}, id="a list that is always written"),
        pytest.param({"containers": [], "hostNetwork": None}, {"containers": []}, id="null vanishes"),
        pytest.param({"containers": [], "HostNetwork": True}, {"containers": []}, id="case counts"),
        pytest.param({"containers": [], "tolerations": []}, {"containers": []}, id="empty list vanishes"),
        pytest.param({"containers": [], "priority": 0}, {"containers": [], "priority": 0}, id="a set pointer stays"),
    ],
)
def test_spec_is_rewritten(spec: Json, expected: Json) -> None:
    assert rewritten_spec(spec) == expected


def test_null_in_a_map_becomes_the_zero_value() -> None:
    spec: Json = {"containers": [], "nodeSelector": {"a": None}, "overhead": {"cpu": None}}
    assert rewritten_spec(spec) == {"containers": [], "nodeSelector": {"a": ""}, "overhead": {"cpu": "0"}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(
            pod({"hostNetwork": "yes"}), "spec.hostNetwork: expected true or false, found a string", id="member"
        ),
        pytest.param(
            pod({"containers": [{"env": [{"name": "a"}, {"name": "b", "value": 1}]}]}),
            "spec.containers[0].env[1].value: expected a string, found a number",
            id="inside lists",
        ),
        pytest.param(pod({"nodeSelector": {"a": True}}), "spec.nodeSelector[a]: expected a string", id="inside a map"),
        pytest.param(pod([]), "spec: expected a map, found a list", id="list for a struct"),
        pytest.param(
            pod({"terminationGracePeriodSeconds": 2**63}), "spec.terminationGracePeriodSeconds", id="overflow"
        ),
    ],
)
def test_misfit_is_refused_with_its_path(document: dict[str, Json], path: str) -> None:
    with pytest.raises(BadDocument) as refused:
        round_trip(document, type_of(document))
    assert path in refused.value.message
    assert refused.value.error_class == "typed-decode"


def test_document_that_is_no_map_is_refused() -> None:
    with pytest.raises(BadDocument, match="the document: expected a map, found a list"):
        round_trip([], SCHEMA.type_named("core/v1.Pod"))


def test_maps_and_lists_stay_the_same_objects() -> None:
    container: dict[str, Json] = {"name": "c", "resources": {"limits": {"cpu": "1000m"}}}
    containers: list[Json] = [container]
    spec: dict[str, Json] = {"containers": containers}
    document = pod(spec)
    round_trip(document, type_of(document))
    assert document["spec"] is spec
    assert spec["containers"] is containers
    assert containers[0] is container
    assert container["resources"] == {"limits": {"cpu": "1"}}


def test_second_round_trip_changes_nothing() -> None:
    for document, expected in vectors("round-trip"):
        # A pointer to the zero time is written as null, and null is dropped the next time.
        if expected is not None and "0001-01-01" not in str(document):
            again = copy.deepcopy(expected[0])
            round_trip(again, type_of(document))
            assert same(again, expected[0])


def test_field_of_another_minor_is_dropped() -> None:
    probe: dict[str, Json] = {"port": 80, "protocol": "H2C"}
    document = pod({"containers": [{"name": "c", "livenessProbe": {"httpGet": probe}}]})
    newer = copy.deepcopy(document)
    round_trip(newer, type_of(newer, load_schema(SUPPORTED_VERSIONS[1])))
    round_trip(document, type_of(document))
    assert "protocol" not in probe
    assert "protocol" in str(newer)


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver", "kube-scheduler"])
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_manifest_written_by_kubeadm_does_not_change(name: str, version: KubernetesVersion) -> None:
    text = (VECTORS / "kubeadm-base" / f"{name}.yaml").read_text()
    document = read_yaml(text, source=name)
    round_trip(document, load_schema(version).type_named("core/v1.Pod"))
    assert write_yaml(document) == text
