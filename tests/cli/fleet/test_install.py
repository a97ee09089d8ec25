"""`garboard fleet install` on a real API server; what each minor makes of the definitions is in fleet/crds."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.documents import write_yaml
from garboard.fleet.crds import custom_resource_definitions
from garboard.kube import Access, KubeClient, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.kube.real_server import TOKEN, real_api_server

pytestmark = pytest.mark.real
CRD = "apiextensions.k8s.io/v1"
ACCOUNT = "system:serviceaccount:garboard-fleet:garboard-fleet-controller"
DASHBOARD = "system:serviceaccount:garboard-fleet:garboard-fleet-dashboard"


@dataclass(frozen=True)
class Installable:
    access: Access
    kubeconfig: Path
    kubectl: Path

    def install(self, *flags: str) -> int:
        return run(["fleet", "install", "--kubeconfig", str(self.kubeconfig), *flags])

    def may(self, verb: str, resource: str, *flags: str, account: str = ACCOUNT) -> bool:
        asked = ("auth", "can-i", verb, resource, f"--as={account}", *flags)
        command = [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), *asked]
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip() == "yes"

    def deployments(self) -> list[Any]:
        with KubeClient(self.access) as client:
            return [*client.list_objects("Deployment", "garboard-fleet")]

    def versions(self) -> dict[str, str]:
        """Return the versions of what is installed."""
        with KubeClient(self.access) as client:
            kinds = (("CustomResourceDefinition", CRD), ("Deployment", ""), ("ClusterRole", ""), ("Role", ""))
            found: Any = [each for kind, version in kinds for each in client.list_objects(kind, api_version=version)]
        own = [each for each in found if "fleet.garboard.dev/installed-by" in each["metadata"].get("labels", {})]
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in own}


@pytest.fixture(params=SUPPORTED_VERSIONS[-1:], ids=str)
def cluster(request: pytest.FixtureRequest, binaries: Binaries, tmp_path: Path) -> Iterator[Installable]:
    version = str(request.param)
    folder = tmp_path / "server"
    folder.mkdir()
    with real_api_server(binaries, version, folder) as access:
        kubeconfig = tmp_path / "admin.conf"
        named = {
            "clusters": [{"name": "c", "cluster": {"server": access.server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        kubeconfig.write_text(write_yaml({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))  # type: ignore[dict-item]
        yield Installable(access, kubeconfig, Path(binaries.locate("kubectl", version)))


def test_kinds_and_controller_are_installed_and_a_second_time_changes_nothing(
    cluster: Installable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.install("--dry-run") == 0
    assert "Deployment" in capsys.readouterr().out
    assert cluster.versions() == {}, "a dry run changes nothing"
    assert cluster.install() == 0
    applied = capsys.readouterr().out.splitlines()
    assert len(applied) == 7 + 8
    assert applied[-1] == "Deployment garboard-fleet/garboard-fleet-controller applied"
    installed = cluster.versions()
    assert len(installed) == 7 + 1 + 2 + 1
    assert cluster.install() == 0
    assert cluster.versions() == installed
    _check_rights(cluster)
    capsys.readouterr()
    for shards, gone in ((2, "garboard-fleet-controller"), (1, "garboard-fleet-controller-1-of-2")):
        assert cluster.install("--shards", str(shards)) == 0
        assert f"Deployment garboard-fleet/{gone} deleted" in capsys.readouterr().out.splitlines()
        assert len(cluster.deployments()) == shards


def _check_rights(cluster: Installable) -> None:
    for verb, resource in (
        ("watch", "clusterpools.hive.openshift.io"),
        ("update", "clusterdeployments.hive.openshift.io/status"),
        ("create", "namespaces"),
        ("create", "jobs.batch"),
        ("get", "pods/log"),
        ("create", "rolebindings.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io/hive-cluster-pool-admin"),
        ("list", "customresourcedefinitions.apiextensions.k8s.io"),
        ("create", "events"),
    ):
        assert cluster.may(verb, resource, "--all-namespaces"), (verb, resource)
    assert cluster.may("update", "leases.coordination.k8s.io", "--namespace=garboard-fleet")
    for verb, resource in (
        ("update", "leases.coordination.k8s.io"),
        ("delete", "nodes"),
        ("update", "customresourcedefinitions.apiextensions.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io/cluster-admin"),
    ):
        assert not cluster.may(verb, resource, "--namespace=kube-system"), (verb, resource)


def test_dashboard_is_installed_beside_the_controller(cluster: Installable, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.install("--dashboard") == 0
    applied = capsys.readouterr().out.splitlines()
    assert len(applied) == 7 + 8 + 6
    assert applied[-1] == "Service garboard-fleet/garboard-fleet-dashboard applied"
    for verb, resource, may in (
        ("watch", "clusterprovisions.hive.openshift.io", True),
        ("create", "tokenreviews.authentication.k8s.io", True),
        ("create", "subjectaccessreviews.authorization.k8s.io", True),
        ("get", "secrets", False),
        ("patch", "clusterpools.hive.openshift.io", False),
        ("get", "pods/log", False),
    ):
        found = cluster.may(verb, resource, "--all-namespaces", account=DASHBOARD)
        assert found is may, (verb, resource)


def test_definitions_of_hive_itself_are_left_alone(cluster: Installable, capsys: pytest.CaptureFixture[str]) -> None:
    definition: Any = custom_resource_definitions()[1]
    definition["metadata"].pop("labels")
    ref = ObjectRef("CustomResourceDefinition", "", definition["metadata"]["name"], CRD)
    with KubeClient(cluster.access) as client:
        client.create(ref, definition)
    assert cluster.install() == 4
    assert "Hive's own" in capsys.readouterr().err
    assert cluster.install("--dry-run") == 4
    with KubeClient(cluster.access) as client:
        found: Any = client.list_objects("CustomResourceDefinition", api_version=CRD)
        assert [each["metadata"]["name"] for each in found] == [ref.name]
        assert "labels" not in found[0]["metadata"]
        assert client.find("Namespace", "", "garboard-fleet") is None


def test_definitions_that_were_applied_with_kubectl_are_taken_over(
    cluster: Installable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "crds"]) == 0
    older = capsys.readouterr().out.replace(
        "Clusters that are kept ready", "Clusters that an older release keeps ready"
    )
    command = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), "apply", "-f", "-"]
    subprocess.run(command, input=older, capture_output=True, text=True, check=True, timeout=60)
    assert cluster.install() == 0
    with KubeClient(cluster.access) as client:
        found: Any = client.require("CustomResourceDefinition", "", "clusterpools.hive.openshift.io", api_version=CRD)
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"] == "Clusters that are kept ready to be claimed."


def test_field_that_another_manager_set_is_not_taken_over(
    cluster: Installable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.install() == 0
    ref = ObjectRef("Deployment", "garboard-fleet", "garboard-fleet-controller")
    with KubeClient(cluster.access) as client:
        client.patch(ref, {"spec": {"replicas": 5}}, manager="somebody")
    assert cluster.install() == 1
    said = capsys.readouterr().err
    assert "somebody" in said
    assert "--show-managed-fields" in said
