"""Clusters of bare hosts made by `garboard fleet provision`: patched, read back, and taken back."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from garboard.retry import Pauses, wait_until
from garboard.values import Json
from tests.support.fleet.lab_fleet import deprovision, documents, patch, provision, provision_command
from tests.support.lab.clusters import Bare
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
INSTALL: list[Json] = [
    patch("add", "/kubeadm/3/maxPods", 77),
    patch("add", "/kubeadm/0/apiServer", {"extraArgs": [{"name": "v", "value": "3"}]}),
]
MANIFESTS: list[Json] = [
    {
        "manifestSelector": {"glob": "hosts/*/patches/kubeletconfiguration.yaml"},
        "patches": [patch("add", "/containerLogMaxFiles", 7)],
    },
    {
        "manifestSelector": {"glob": "hosts/cp1/patches/kube-apiserver.yaml"},
        "patches": [patch("add", "/metadata/annotations", {"fleet.garboard.dev/entry": "c1"})],
    },
]


def arguments(lab: LabUnderTest, node: str, program: str) -> str:
    """Return the command line of a process that runs on a node."""
    return lab.exec(node, "sh", "-c", f"tr '\\0' ' ' < /proc/$(pgrep -x {program} | head -n1)/cmdline").stdout


def left(lab: LabUnderTest, node: str) -> str:
    """Return what a bare host does not have (files, pods, the claim), and whether its kubelet runs."""
    script = (
        "find /etc/kubernetes /var/lib/etcd /var/lib/kubelet -type f; ls /var/lib/garboard/fleet/claim.json; "
        "crictl -r unix:///run/containerd/containerd.sock pods -q; systemctl is-active kubelet"
    )
    return lab.exec(node, "sh", "-c", script, check=False).stdout


def kill_during_init(lab: LabUnderTest, files: Path, work: Path) -> None:
    """Begin to provision, and kill that while the first host is being initialised; what runs on the host goes on."""
    provisioning = subprocess.Popen(provision_command(files, work), stdout=subprocess.DEVNULL, start_new_session=True)
    begun = "test $(cat /var/lib/garboard/runs/*-init/journal.jsonl 2>/dev/null | grep -c end) -gt 5"

    def not_begun() -> str | None:
        assert provisioning.poll() is None, "it has ended by itself"
        return None if lab.exec("cp1", "sh", "-c", begun, check=False).returncode == 0 else "init has not begun"

    assert wait_until(not_begun, timeout_s=120, pauses=Pauses.every(0.2)) is None
    os.killpg(provisioning.pid, signal.SIGKILL)
    provisioning.wait()


def test_two_hosts_become_a_cluster_and_hosts_again(bare: Bare, tmp_path: Path) -> None:
    lab, files, work = bare(workers=1), tmp_path / "fleet.yaml", tmp_path / "work"
    files.write_text(documents(lab, 1, 1, INSTALL, MANIFESTS))
    kill_during_init(lab, files, work)
    made = json.loads(provision(files, work).stdout)
    log = (work / "provision.log").read_text()
    assert "[attempt 2]" not in log, "it goes on in the same attempt"
    assert "[record] infraID " + made["infraID"] in log

    kubectl = ("kubectl", "--kubeconfig", "/root/fleet.conf")
    text = Path(made["kubeconfig"]).read_text()
    lab.exec("cp1", "sh", "-c", f"cat > /root/fleet.conf <<'EOF'\n{text}EOF\n")
    nodes = lab.exec("cp1", *kubectl, "get", "nodes", "-o", "name").stdout.split()
    assert nodes == ["node/cp1", "node/worker1"]
    # What the patches of the install config and of the manifests say, the processes do.
    assert "--v=3 " in arguments(lab, "cp1", "kube-apiserver")
    for node in ("cp1", "worker1"):
        config = json.loads(lab.exec("cp1", *kubectl, "get", "--raw", f"/api/v1/nodes/{node}/proxy/configz").stdout)
        assert config["kubeletconfig"]["maxPods"] == 77
        assert config["kubeletconfig"]["containerLogMaxFiles"] == 7
    pod = json.loads(
        lab.exec("cp1", *kubectl, "get", "pod", "-n", "kube-system", "kube-apiserver-cp1", "-o", "json").stdout
    )
    assert pod["metadata"]["annotations"]["fleet.garboard.dev/entry"] == "c1"
    found = ("configmap", "-n", "addons", "of-the-fleet", "-o", "jsonpath={.data.made}")
    addon = lab.exec("cp1", *kubectl, "get", *found)
    assert addon.stdout == "by an addon"
    token = json.loads((work / "attempt-1/bundles/secrets.json").read_text())[0]
    assert token not in log

    refused = provision(files, tmp_path / "other", check=False)
    assert refused.returncode == 4
    assert f"it carries the infraID {made['infraID']}" in refused.stderr

    # Somebody resets the worker by hand and makes something else of it: it is theirs.
    lab.exec("worker1", "garboard", "reset", "--force")
    lab.exec("worker1", "sh", "-c", "mkdir -p /etc/kubernetes/pki && echo theirs > /etc/kubernetes/pki/ca.crt")
    told = deprovision(work).stderr
    assert "[worker1] it is left alone" in told
    assert "[cp1] it was reset" in told
    assert left(lab, "cp1") == "inactive\n"
    assert lab.exec("worker1", "cat", "/etc/kubernetes/pki/ca.crt").stdout == "theirs\n"
    again = provision(files, work, check=False)
    assert "worker1: there is something in /etc/kubernetes (pki/ca.crt), and no infraID beside it" in again.stderr


@pytest.mark.verify
def test_provision_that_was_killed_is_taken_back(bare: Bare, tmp_path: Path) -> None:
    """Init goes on there without its provisioner, and is waited for."""
    lab, files, work = bare(workers=1), tmp_path / "fleet.yaml", tmp_path / "work"
    files.write_text(documents(lab, 1, 1, [], []))
    kill_during_init(lab, files, work)
    told = deprovision(work).stderr
    assert "[cp1] it was reset" in told
    assert {left(lab, each) for each in ("cp1", "worker1")} == {"inactive\n"}


@pytest.mark.verify
def test_three_control_planes_and_two_workers_become_a_cluster(bare: Bare, tmp_path: Path) -> None:
    lab, files, work = bare(control_planes=3, workers=2), tmp_path / "fleet.yaml", tmp_path / "work"
    files.write_text(documents(lab, 3, 2, [], []))
    made = json.loads(provision(files, work).stdout)
    assert made["infraID"].startswith("fleet-c1-")
    listed = lab.exec("cp2", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "nodes", "-o", "name")
    assert len(listed.stdout.split()) == 5
    deprovision(work)
    assert {left(lab, each) for each in ("cp1", "cp2", "cp3", "worker1", "worker2")} == {"inactive\n"}
