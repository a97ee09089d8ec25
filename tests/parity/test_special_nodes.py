"""Nodes whose manifests depend on what lies on the machine: an external CA, and pods that run without root."""

from pathlib import Path

import pytest

from garboard.manifests import ControlPlaneNode
from garboard.manifests.rootless import USERS, ownerships, plan_users
from tests.support.parity.comparing import differences
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import CONFIGURATIONS, Configuration, run_kubeadm
from tests.support.parity.rendering import host_of, load, render_node
from tools.harness.machine import Machine

pytestmark = pytest.mark.real

WRITTEN = ("/etc/kubernetes/manifests", "/var/lib/kubelet")


def prepared(kubeadm: Kubeadm, configuration: Configuration, root: Path) -> Machine:
    """Return a machine that has its certificates and kubeconfigs."""
    machine = configuration.machine(root, kubeadm.version)
    assert not run_kubeadm(kubeadm, machine, ("certs all", "kubeconfig all")).failures
    return machine


def test_the_controller_manager_does_not_sign_for_an_external_ca(kubeadm: Kubeadm, tmp_path: Path) -> None:
    configuration = Configuration(CONFIGURATIONS / "ecdsa-and-validity.yaml")
    machine = prepared(kubeadm, configuration, tmp_path)
    machine.remove("/etc/kubernetes/pki/ca.key")
    theirs = run_kubeadm(kubeadm, machine, folders=WRITTEN)
    assert not theirs.failures
    host = host_of(configuration, machine, is_external_ca=True)
    ours = render_node(load(configuration, kubeadm.version), host, None)
    assert differences(ours.files, theirs.files) == ""


@pytest.mark.parametrize(
    ("name", "login_defs"),
    [("rootless", ""), ("rootless-external-etcd", "SYS_UID_MIN\t\t 201\nSYS_GID_MIN 301\nSYS_GID_MAX 999\n")],
)
def test_pods_without_root_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, name: str, login_defs: str) -> None:
    configuration = Configuration(CONFIGURATIONS / f"{name}.yaml")
    machine = prepared(kubeadm, configuration, tmp_path)
    machine.put("/etc/login.defs", login_defs)
    planned = plan_users(machine.text("/etc/passwd"), machine.text("/etc/group"), login_defs)
    theirs = run_kubeadm(kubeadm, machine, folders=WRITTEN)
    assert not theirs.failures
    assert (machine.text("/etc/passwd"), machine.text("/etc/group")) == (planned.passwd, planned.group)
    ids = planned.ids
    host = host_of(configuration, machine, rootless_ids=ids)
    loaded = load(configuration, kubeadm.version)
    ours = render_node(loaded, host, None)
    assert differences(ours.files, theirs.files) == ""
    node = ControlPlaneNode.of_init(loaded.config, host)
    components = [component for component in USERS if f"/etc/kubernetes/manifests/{component}.yaml" in theirs.files]
    for each in (each for component in components for each in ownerships(component, node, ids)):
        found = (tmp_path / each.path.lstrip("/")).stat()
        assert (each.path, found.st_uid, found.st_gid) == (each.path, each.uid, each.gid)
        assert each.mode in (None, found.st_mode & 0o777)
