"""The definitions on real API servers: what they accept, what they refuse and with which words, what kubectl shows."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from garboard.documents import read_yaml, write_yaml
from garboard.fleet.crds import custom_resource_definitions
from garboard.fleet.crds.descriptions import DESCRIPTIONS
from garboard.kube import Access, KubeClient, ObjectInvalid, ObjectRef, PatchFormat
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from garboard.retry import Pauses, wait_until
from tests.support.fleet.hive_samples import SAMPLES
from tests.support.kube.real_server import TOKEN, real_api_server

pytestmark = pytest.mark.real
CRD = "apiextensions.k8s.io/v1"
HIVE = "hive.openshift.io/v1"
_NUMBERS = count()


@dataclass(frozen=True)
class Cluster:
    client: KubeClient
    access: Access
    kubectl_path: Path

    def kubectl(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        command: list[str | Path] = [self.kubectl_path, f"--server={self.access.server}", f"--token={TOKEN}"]
        return subprocess.run(
            [*command, "--insecure-skip-tls-verify", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def create(self, content: Any) -> Any:
        return self.client.create(ref_of(content), content)

    def patch(self, content: Any, patch: Any, *, subresource: str = "") -> Any:
        return self.client.patch(ref_of(content), patch, PatchFormat.MERGE, subresource=subresource)


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def cluster(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    version = str(request.param)
    with real_api_server(binaries, version, tmp_path_factory.mktemp("server")) as access, KubeClient(access) as client:
        for each in custom_resource_definitions():
            ref = ObjectRef("CustomResourceDefinition", "", each["metadata"]["name"], CRD)  # type: ignore[index, call-overload, arg-type]
            client.create(ref, each)
        assert wait_until(lambda: unready(client), timeout_s=60, pauses=Pauses.every(0.2)) is None
        yield Cluster(client, access, Path(binaries.locate("kubectl", version)))


def unready(client: KubeClient) -> str | None:
    """Say which kind is not served yet."""
    for each in custom_resource_definitions():
        found: Any = client.find("CustomResourceDefinition", "", each["metadata"]["name"], api_version=CRD)  # type: ignore[index, call-overload, arg-type]
        conditions = {item["type"]: item["status"] for item in found.get("status", {}).get("conditions") or ()}
        if conditions.get("Established") != "True" or conditions.get("NamesAccepted") != "True":
            return f"{each['metadata']['name']}: {conditions}"  # type: ignore[index, call-overload]
    status, answer, _ = client.get_text(f"/apis/{HIVE}")
    kinds = {item["kind"] for item in json.loads(answer).get("resources", ())} if status == 200 else set()
    return None if len(kinds) >= len(custom_resource_definitions()) else f"served are {kinds}"


def ref_of(content: Any) -> ObjectRef:
    metadata = content["metadata"]
    return ObjectRef(content["kind"], metadata.get("namespace", ""), metadata["name"], content["apiVersion"])


def sample(name: str, **spec: Any) -> Any:
    """Return a sample under a name of its own, with some fields of its spec replaced."""
    content: Any = read_yaml(SAMPLES[name], source=name)
    content["metadata"]["name"] = f"{content['metadata']['name']}-{next(_NUMBERS)}"
    content["spec"] = {key: value for key, value in {**content["spec"], **spec}.items() if value is not None}
    return content


@pytest.mark.parametrize("name", SAMPLES)
def test_object_written_for_hive_is_accepted_under_strict_validation(cluster: Cluster, name: str) -> None:
    applied = cluster.kubectl("apply", "--validate=strict", "-f", "-", stdin=SAMPLES[name])
    assert applied.returncode == 0, applied.stderr
    content: Any = read_yaml(SAMPLES[name], source=name)
    stored: Any = cluster.client.require(
        content["kind"], content["metadata"].get("namespace", ""), content["metadata"]["name"], api_version=HIVE
    )
    assert stored["spec"] == content["spec"], "nothing of the spec is lost"


MISSPELT: dict[str, dict[str, Any]] = {
    "aws deployment": {"baseDomian": "x"},
    "pool with a template": {"sizee": 1},
    "claim": {"lifeTime": "1h"},
    "customization": {"installConfigPatch": []},
    "provision": {"stages": "x"},
    "deprovision": {"infraId": "x"},
    "image set": {"releaseimage": "x"},
}


@pytest.mark.parametrize("name", MISSPELT)
def test_misspelt_field_is_refused_under_strict_validation(cluster: Cluster, name: str) -> None:
    (field,) = MISSPELT[name]
    applied = cluster.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(sample(name, **MISSPELT[name])))
    assert applied.returncode != 0
    assert f'unknown field "spec.{field}"' in applied.stderr


def one_patch(**fields: Any) -> Any:
    """Return the spec of a customization with one manifest patch, whose operation has these fields."""
    return one_entry(patches=[{"op": "add", "path": "/a", "value": "x", **fields}])


def one_entry(glob: str = "manifests/*", **fields: Any) -> Any:
    return {"installConfigPatches": None, "installerManifestPatches": [{"manifestSelector": {"glob": glob}, **fields}]}


def selecting(**selector: Any) -> Any:
    return {"installerManifestPatches": [{"manifestSelector": selector, "patches": []}]}


PROVISIONING = {"installConfigSecretRef": {"name": "ic"}}
REFUSED: dict[str, tuple[str, Any, str]] = {
    "selects nothing": ("customization", selecting(), "it selects nothing: name files with glob"),
    "an empty glob": ("customization", selecting(glob=""), "it selects nothing: name files with glob"),
    "an absolute glob": ("customization", one_entry("/etc/*", patches=[]), "it is absolute"),
    "a glob that leads up": ("customization", one_entry("a/../../b", patches=[]), "it has .."),
    "neither patches nor patch": ("customization", one_entry(), "oneOf"),
    "both patches and patch": ("customization", one_entry(patches=[], patch=[]), "oneOf"),
    "a merge patch in patches": ("customization", one_entry(patches=[], type="merge"), "stands in patch"),
    "an unknown type": ("customization", one_entry(patch={}, type="mrege"), 'supported values: "json"'),
    "an unknown operation": ("customization", one_patch(op="set"), 'supported values: "add"'),
    "a pointer without a slash": ("customization", one_patch(path="a/b"), "a pointer begins with /"),
    "a pointer with a bare tilde": ("customization", one_patch(path="/a~b"), "should match '^([^~]|~[01])*$'"),
    "a move from nowhere": ("customization", one_patch(op="move"), "move and copy need from"),
    "a copy from a bare name": ("customization", one_patch(op="copy", **{"from": "a"}), "move and copy need from"),
    "an install config patch": (
        "customization", {"installConfigPatches": [{"op": "add", "path": "x"}]}, "a pointer begins with /",
    ),
    "no operation": ("customization", {"installConfigPatches": [{"path": "/x"}]}, "op: Required value"),
    "no platform": ("aws deployment", {"platform": {}}, "should have at least 1 properties"),
    "two platforms": ("aws deployment", {"platform": {"aws": {}, "gcp": {}}}, "must have at most 1 item"),
    "a long cluster name": ("aws deployment", {"clusterName": "x" * 64}, "63"),
    "neither provisioning nor clusterInstallRef": (
        "aws deployment", {"provisioning": None}, "one of provisioning and clusterInstallRef is needed",
    ),
    "both": (
        "assisted deployment", {"provisioning": PROVISIONING}, "one of provisioning and clusterInstallRef is needed",
    ),
    "no install config": ("aws deployment", {"provisioning": {}}, "installConfigSecretRef.name is missing"),
    "two sources of manifests": (
        "aws deployment",
        {"provisioning": {**PROVISIONING, "manifestsConfigMapRef": {"name": "a"}, "manifestsSecretRef": {"name": "b"}}},
        "exclude each other",
    ),
    "installed without metadata": ("aws deployment", {"installed": True}, "needs clusterMetadata"),
    "born claimed": (
        "aws deployment",
        {"clusterPoolRef": {"namespace": "n", "poolName": "p", "claimName": "c"}},
        "a new cluster cannot be claimed yet",
    ),
    "a strange duration": ("aws deployment", {"hibernateAfter": "8 hours"}, "hibernateAfter"),
    "a strange power state": ("aws deployment", {"powerState": "On"}, "powerState"),
    "a negative size": ("pool with a template", {"size": -1}, "greater than or equal to 0"),
    "no image set": ("pool with a template", {"imageSetRef": {"name": ""}}, "the name of the ClusterImageSet"),
    "an entry without a name": ("pool with an inventory", {"inventory": [{"name": ""}]}, "at least 1 chars long"),
    "an entry of another kind": ("pool with an inventory", {"inventory": [{"name": "a", "kind": "X"}]}, '"X"'),
    "a claim of no pool": ("claim", {"clusterPoolName": None}, "clusterPoolName: Required value"),
    "an unknown stage": ("provision", {"stage": "done"}, "stage"),
    "no infraID while provisioning": ("provision", {"stage": "provisioning"}, "infraID is needed"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_object_is_refused_with_the_reason(cluster: Cluster, case: str) -> None:
    name, spec, message = REFUSED[case]
    with pytest.raises(ObjectInvalid) as refused:
        cluster.create(sample(name, **spec))
    assert message in refused.value.message


def test_name_that_is_too_long_is_refused(cluster: Cluster) -> None:
    for name in ("aws deployment", "customization", "pool with a template"):
        content = sample(name)
        content["metadata"]["name"] = "x" * 64
        with pytest.raises(ObjectInvalid, match="longer than 63 characters"):
            cluster.create(content)


POOLED = {"clusterPoolRef": {"namespace": "n", "poolName": "p", "clusterDeploymentCustomization": {"name": "c"}}}
CHANGES: dict[str, tuple[Any, Any, str]] = {
    "cluster name": ({}, {"clusterName": "other"}, "clusterName cannot be changed"),
    "base domain": ({}, {"baseDomain": "other"}, "baseDomain cannot be changed"),
    "pull secret": ({}, {"pullSecretRef": None}, "pullSecretRef cannot be changed"),
    "customization added later": (
        {}, {"provisioning": {"customizationRef": {"name": "x"}}}, "customizationRef cannot be changed",
    ),
    "image set": ({}, {"provisioning": {"imageSetRef": {"name": "x"}}}, "imageSetRef cannot be changed"),
    "pool added later": ({}, POOLED, "clusterPoolRef can be neither added nor removed"),
    "pool removed": (POOLED, {"clusterPoolRef": None}, "clusterPoolRef can be neither added nor removed"),
    "other pool": (POOLED, {"clusterPoolRef": {"poolName": "q"}}, "poolName cannot be changed"),
    "other namespace": (POOLED, {"clusterPoolRef": {"namespace": "q"}}, "namespace cannot be changed"),
    "other inventory entry": (
        POOLED,
        {"clusterPoolRef": {"clusterDeploymentCustomization": {"name": "d"}}},
        "clusterDeploymentCustomization cannot be changed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_field_that_is_fixed_is_not_changed(cluster: Cluster, case: str) -> None:
    spec, change, message = CHANGES[case]
    content = sample("aws deployment", **spec, hibernateAfter=f"{len(case)}h{list(CHANGES).index(case)}m")
    cluster.create(content)
    with pytest.raises(ObjectInvalid) as refused:
        cluster.patch(content, {"spec": change})
    assert message in refused.value.message


def test_what_hive_lets_change_can_be_changed(cluster: Cluster) -> None:
    content = sample("aws deployment", **POOLED, hibernateAfter="77h")
    cluster.create(content)
    metadata = {"clusterID": "c", "infraID": "i", "adminKubeconfigSecretRef": {"name": "k"}}
    cluster.patch(content, {"spec": {"installed": True, "clusterMetadata": metadata, "powerState": "Running"}})
    cluster.patch(content, {"spec": {"clusterPoolRef": {"claimName": "mine"}, "preserveOnDelete": True}})
    cluster.patch(content, {"spec": {"installAttemptsLimit": 9, "hibernateAfter": "1h", "certificateBundles": []}})
    with pytest.raises(ObjectInvalid, match="claimName cannot be changed once it is set"):
        cluster.patch(content, {"spec": {"clusterPoolRef": {"claimName": "other"}}})
    with pytest.raises(ObjectInvalid, match="claimName cannot be changed once it is set"):
        cluster.patch(content, {"spec": {"clusterPoolRef": {"claimName": None}}})
    with pytest.raises(ObjectInvalid, match="an installed cluster stays installed"):
        cluster.patch(content, {"spec": {"installed": False}})


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        (["provisioning", "complete"], True),
        (["provisioning", "failed"], True),
        (["failed"], True),
        (["complete"], False),
        (["provisioning", "initializing"], False),
        (["failed", "provisioning"], False),
        (["provisioning", "complete", "failed"], False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_provision_goes_through_its_stages(cluster: Cluster, path: list[str], is_allowed: bool) -> None:
    content = sample("provision", installLog="-".join(path))
    cluster.create(content)
    known = {"infraID": "i", "adminKubeconfigSecretRef": {"name": "k"}}
    for stage in path[:-1]:
        cluster.patch(content, {"spec": {**known, "stage": stage}})
    if is_allowed:
        cluster.patch(content, {"spec": {**known, "stage": path[-1]}})
        return
    with pytest.raises(ObjectInvalid, match="stages go from initializing"):
        cluster.patch(content, {"spec": {**known, "stage": path[-1]}})


def test_provision_keeps_what_it_was_made_for(cluster: Cluster) -> None:
    content = sample("provision", infraID="one", prevInfraID="before")
    cluster.create(content)
    for change in ({"infraID": "two"}, {"attempt": 5}, {"clusterDeploymentRef": {"name": "x"}}, {"prevInfraID": None}):
        with pytest.raises(ObjectInvalid, match="cannot be changed"):
            cluster.patch(content, {"spec": change})


def test_status_is_a_subresource_and_a_pool_can_be_scaled(cluster: Cluster) -> None:
    content = sample("pool with a template", maxSize=99)
    cluster.create(content)
    written: Any = cluster.patch(content, {"status": {"size": 2, "ready": 1, "standby": 1}}, subresource="status")
    assert written["status"] == {"size": 2, "ready": 1, "standby": 1}
    name = content["metadata"]["name"]
    scaled = cluster.kubectl("scale", "clusterpool", name, "--replicas=5")
    assert scaled.returncode == 0, scaled.stderr
    found: Any = cluster.client.require("ClusterPool", "default", name, api_version=HIVE)
    assert found["spec"]["size"] == 5


def test_kubectl_knows_the_short_names_and_shows_the_columns(cluster: Cluster) -> None:
    deployment, pool = sample("aws deployment", powerState=""), sample("pool with a template", size=4)
    claim, label = sample("claim", lifetime="2h"), "hive.openshift.io"
    deployment["metadata"]["labels"] = {f"{label}/cluster-platform": "aws", f"{label}/version": "4.16.0"}
    for each in (deployment, pool, claim):
        cluster.create(each)
    condition = {"type": "Provisioned", "status": "False", "reason": "Provisioning"}
    cluster.patch(deployment, {"status": {"conditions": [condition], "powerState": "Running"}}, subresource="status")
    cluster.patch(pool, {"status": {"size": 4, "standby": 1, "ready": 3}}, subresource="status")
    pending = {"type": "Pending", "status": "True", "reason": "NoClusters"}
    cluster.patch(claim, {"status": {"conditions": [pending]}}, subresource="status")
    assert shown(cluster, "cd", deployment) == {
        "NAME": deployment["metadata"]["name"], "INFRAID": "", "PLATFORM": "aws", "REGION": "", "VERSION": "4.16.0",
        "CLUSTERTYPE": "", "PROVISIONSTATUS": "Provisioning", "POWERSTATE": "Running",
    }  # fmt: skip
    assert shown(cluster, "cp", pool) == {
        "NAME": pool["metadata"]["name"], "SIZE": "4", "STANDBY": "1", "READY": "3",
        "BASEDOMAIN": "new-installer.openshift.com", "IMAGESET": "openshift-v4.6.0",
    }  # fmt: skip
    assert shown(cluster, "clusterclaim", claim)["PENDING"] == "NoClusters"
    for short in ("cdc", "imgset"):
        assert cluster.kubectl("get", short, "-A").returncode == 0


def shown(cluster: Cluster, resource: str, content: Any) -> dict[str, str]:
    """Return what kubectl shows of an object, by the columns; empty ones are found by where the headers begin."""
    ended = cluster.kubectl("get", resource, content["metadata"]["name"])
    assert ended.returncode == 0, ended.stderr
    header, row = ended.stdout.splitlines()
    names = header.split()
    starts = [header.index(name) for name in names]
    cells = {name: row[start:end].strip() for name, start, end in zip(names, starts, [*starts[1:], None], strict=True)}
    cells.pop("AGE", None)
    return cells


def test_kubectl_explains_what_a_kind_is(cluster: Cluster) -> None:
    explained = cluster.kubectl("explain", "clusterpool.spec")
    for name, description in DESCRIPTIONS["ClusterPool"].items():
        assert "[]" in name or description in " ".join(explained.stdout.split())


def test_printed_definitions_can_be_applied_with_kubectl(cluster: Cluster) -> None:
    printed = "---\n".join(write_yaml(each) for each in custom_resource_definitions())
    for flags in ((), ("--server-side", "--force-conflicts")):
        applied = cluster.kubectl("apply", "--validate=strict", *flags, "-f", "-", stdin=printed)
        assert applied.returncode == 0, applied.stderr
        assert len(applied.stdout.splitlines()) == len(custom_resource_definitions())
