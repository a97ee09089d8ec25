"""The controller in a real cluster, as `fleet install` puts it there: its attempts are Jobs, whose pods really run.

The installer is a synthetic one of ours, in an image made by `garboard_image` with that program added.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garboard.host import Machine
from garboard.lab.binaries.download import machine_architecture
from garboard.lab.bundle import garboard_image
from garboard.lab.images import write_archive
from tests.support.fleet.provisions import PROGRAM
from tools.harness.lab import RUN, LabUnderTest
from tools.harness.snapshots import ClusterSnapshots

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
IMAGE = "example.com/garboard/fleet:test"
MACHINES = "openshift/99_worker-machineset-0.yaml"
INSTALLER = f"""\
#!{Path(sys.executable).resolve()}
import os, runpy, sys
os.makedirs(os.environ["CLOUD"], exist_ok=True)
if sys.argv[2] == "ignition-configs":
    print("machines:", open("{MACHINES}").read())
runpy.run_path("/opt/synthetic_installer.py", run_name="__main__")
"""
CONFIG = "apiVersion: v1\nmetadata: {name: x}\nbaseDomain: x\nplatform: {none: {}}\n"


def write_image(folder: Path) -> Path:
    script, archive, staging = folder / "openshift-install", folder / "image.tar", folder / "staging"
    script.write_text(INSTALLER)
    script.chmod(0o755)
    staging.mkdir()
    made = garboard_image(IMAGE, staging, Machine())
    added = {"/usr/bin/openshift-install": script, "/opt/synthetic_installer.py": Path(PROGRAM)}
    with archive.open("wb") as handle:
        write_archive(
            replace(made, files={**made.files, **added}), handle, Machine(), architecture=machine_architecture()
        )
    return archive


@pytest.fixture
def lab(cluster_snapshots: ClusterSnapshots, tmp_path: Path) -> Iterator[LabUnderTest]:
    made = LabUnderTest(f"t{RUN}-jobs")
    archive = write_image(tmp_path)
    try:
        cluster_snapshots.up(made, "--control-planes", "1", "--workers", "1")
        made.lab("load", str(archive))
        yield made
    finally:
        made.lab("down", check=False)


def objects() -> list[Any]:
    """Return a pool of one with what it needs; the entry's patch is applied after that of all clusters."""
    hive = "hive.openshift.io/v1"

    def named(kind: str, name: str, spec: Any, **more: Any) -> Any:
        return {"apiVersion": hive, "kind": kind, "metadata": {"name": name, **more}, "spec": spec}

    def patches(*operations: tuple[str, int]) -> Any:
        each = [{"op": op, "path": "/spec/replicas", "valueJSON": str(value)} for op, value in operations]
        return {"installerManifestPatches": [{"manifestSelector": {"glob": MACHINES}, "patches": each}]}

    where = {"namespace": "racks"}
    pool = {
        "platform": {"none": {}}, "baseDomain": "example.com", "size": 1, "imageSetRef": {"name": "release"},
        "installConfigSecretTemplateRef": {"name": "template"}, "inventory": [{"name": "c1"}],
        "customizationRef": {"name": "everywhere"}, "installerEnv": [{"name": "CLOUD", "value": "/output/cloud"}],
    }  # fmt: skip
    template = {"name": "template", "namespace": "racks"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "racks"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": template, "stringData": {"install-config.yaml": CONFIG}},
        named("ClusterImageSet", "release", {"releaseImage": "none"}),
        named("ClusterDeploymentCustomization", "everywhere", patches(("replace", 5)), **where),
        named("ClusterDeploymentCustomization", "c1", patches(("test", 5), ("replace", 7)), **where),
        named("ClusterPool", "edge", pool, **where),
    ]


def get(lab: LabUnderTest, *words: str) -> Any:
    return json.loads(lab.kubectl("get", *words, "-o", "json"))


def wait(lab: LabUnderTest, resource: str, condition: str) -> None:
    """Wait as users do; tell what the controller and the attempts say if it does not happen."""
    lab.kubectl("-n", "racks", "wait", resource, "--for", condition, "--timeout=180s")


def test_attempts_are_jobs_that_make_and_destroy_the_clusters_of_a_pool(lab: LabUnderTest) -> None:
    installed = lab.exec("cp1", "garboard", "fleet", "install", "--image", IMAGE, "--shards", "2").stdout
    assert "Deployment garboard-fleet/garboard-fleet-controller-1-of-2 applied" in installed
    lab.kubectl("-n", "garboard-fleet", "rollout", "status", "deployment", "--timeout=120s")
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))

    wait(lab, "clusterpool/edge", "jsonpath={.status.ready}=1")
    (deployment,) = get(lab, "clusterdeployments", "-A")["items"]
    where = deployment["metadata"]["namespace"]
    (provision,) = get(lab, "clusterprovisions", "-n", where)["items"]
    assert provision["spec"]["stage"] == "complete"
    assert "replicas: 7" in provision["spec"]["installLog"], "both patches, the entry's last"
    # The attempt says that it is complete before its pod has ended.
    lab.kubectl("-n", where, "wait", f"job/{provision['status']['jobRef']['name']}", "--for=condition=Complete")
    (pod,) = get(lab, "pods", "-n", where)["items"]
    assert pod["spec"]["containers"][0]["image"] == IMAGE

    claim = {"apiVersion": "hive.openshift.io/v1", "kind": "ClusterClaim", "metadata": {"name": "mine"}}
    content = {**claim, "spec": {"clusterPoolName": "edge"}}
    lab.kubectl("-n", "racks", "apply", "-f", "-", stdin=json.dumps(content))
    wait(lab, "clusterclaim/mine", "condition=ClusterRunning")
    given = lab.exec("cp1", "garboard", "fleet", "kubeconfig", "mine", "-n", "racks").stdout
    assert "kind: Config" in given
    lab.kubectl("-n", "racks", "delete", "clusterclaim", "mine", "--timeout=60s")
    lab.kubectl("wait", f"namespace/{where}", "--for=delete", "--timeout=180s")
    wait(lab, "clusterpool/edge", "jsonpath={.status.ready}=1")
    (again,) = get(lab, "clusterdeployments", "-A")["items"]
    assert again["metadata"]["name"] != deployment["metadata"]["name"]
    lab.kubectl("-n", "racks", "delete", "clusterpool", "edge", "--timeout=180s")
    assert get(lab, "clusterdeployments", "-A")["items"] == []
