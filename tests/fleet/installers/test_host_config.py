"""Install configs of the installer `garboard`: what is read, and every problem of a wrong one."""

import pytest

from garboard.errors import BadDocument
from garboard.fleet.install_config import is_hosts_config
from garboard.fleet.installers import read_hosts_config
from tests.support.fleet.install_configs import CONFIG


def test_hosts_are_read_with_the_command_that_leads_to_each() -> None:
    text = CONFIG.replace("via: simulated {host}", "via: ssh -o BatchMode=yes {host} sudo")
    text = text.replace("role: worker}", "role: worker, via: 'ssh root@{address}'}")
    found = read_hosts_config(text, source="x")
    assert [each.name for each in found.control_planes] == ["cp1", "cp2"]
    assert found.hosts[0].via == ("ssh", "-o", "BatchMode=yes", "cp1", "sudo")
    assert found.workers[0].via == ("ssh", "root@10.89.0.13")
    assert found.endpoint == "api.example.com:6443"
    assert found.ready_within_s == 1.0


def test_endpoint_of_a_lone_control_plane_is_its_address() -> None:
    text = CONFIG.replace("- {name: cp2, address: 10.89.0.12, role: control-plane}\n", "")
    text = text.replace("  controlPlaneEndpoint: api.example.com\n", "")
    assert read_hosts_config(text, source="x").endpoint == "10.89.0.11:6443"
    assert read_hosts_config(text.replace("10.89.0.11", "fd00::1"), source="x").endpoint == "[fd00::1]:6443"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: InstallConfig", "kind: Other", "apiVersion and kind"),
        ("metadata: {name: c1}", "metadata: {name: C_1}", "metadata.name"),
        ("{name: cp2, address: 10.89.0.12", "{name: cp1, address: 10.89.0.12", "two have the name cp1"),
        ("address: 10.89.0.12", "address: 10.89.0.11", "two have the address 10.89.0.11"),
        ("address: 10.89.0.12", "address: -oProxyCommand=x", "no IP address"),
        ("name: cp2", "name: -cp2", "hosts[1].name"),
        ("role: control-plane", "role: master", "Invalid enum value"),
        ("via: simulated {host}", "via: ssh admin sudo", "leads to the same machine for every host"),
        ("via: simulated {host}", """via: "ssh '{host}\"""", "is no command"),
        ("via: simulated {host}\n", "", "is no command that leads to the host"),
        ("  controlPlaneEndpoint: api.example.com\n", "", "several control planes need the controlPlaneEndpoint"),
        ("kind: JoinConfiguration", "kind: ClusterConfiguration", "a second ClusterConfiguration"),
        ("kind: JoinConfiguration", "kind: Pod", "kind 'Pod' is none of"),
        ("kind: JoinConfiguration", "kind: {a: b}", "is none of"),
        ("kind: JoinConfiguration", "kind: [a]", "is none of"),
        ("kubeadm.k8s.io/v1beta4\n  kind: JoinC", "kubeadm.k8s.io/v1beta3\n  kind: JoinC", "has to be kubeadm"),
        ("metadata: {name: first, namespace: default}", "metadata: {}", "addons[0]"),
        ("platform: {none: {}}", "platform: {aws: {}}", "platform"),
        ("baseDomain", "baseDomian", "baseDomian"),
        ("nodesReadyWithin: 1s", "nodesReadyWithin: soon", "nodesReadyWithin"),
        (CONFIG, "[]", "Expected `object`"),
        (CONFIG, "a: *x", "x"),
    ],
)  # fmt: skip
def test_wrong_one_is_refused(old: str, new: str, said: str) -> None:
    assert old in CONFIG
    text = CONFIG.replace(old, new)
    with pytest.raises(BadDocument) as refused:
        read_hosts_config(text, source="install-config.yaml")
    assert said in refused.value.message


def test_every_problem_is_told_at_once() -> None:
    text = CONFIG.replace("role: control-plane", "role: worker").replace("{name: c1}", "{name: C1}")
    with pytest.raises(BadDocument) as refused:
        read_hosts_config(text, source="x")
    assert "metadata.name" in refused.value.message
    assert "none has the role control-plane" in refused.value.message


def test_other_install_configs_are_those_of_programs() -> None:
    assert not is_hosts_config({"apiVersion": "v1", "metadata": {"name": "c1"}})
    assert is_hosts_config({"apiVersion": "fleet.garboard.dev/v1alpha1"})
