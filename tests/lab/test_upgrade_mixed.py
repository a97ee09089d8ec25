"""Upgrades of clusters that garboard made, and of clusters half of whose nodes kubeadm upgrades."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.cli.main import run
from tools.harness.api_load import ApiLoad
from tools.harness.lab import GARBOARD, RUN, LabUnderTest
from tools.harness.upgrading import PATCHES, RELEASES, TARGET, Upgrading

pytestmark = [pytest.mark.lab, pytest.mark.verify, pytest.mark.timeout(2400)]
CONTROL_PLANES, WORKER = ("cp1", "cp2", "cp3"), "worker1"
RENDERED = ("/etc/kubernetes/manifests/*.yaml", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/*.env",
            "/var/lib/kubelet/instance-config.yaml")  # fmt: skip
GIVEN = Path(__file__).parents[1] / "vectors/upgrade/patches"


@pytest.fixture(params=["garboard", "kubeadm"])
def nodes(request: pytest.FixtureRequest, garboard_in_node: tuple[str, ...]) -> Iterator[Upgrading]:
    lab = LabUnderTest(f"t{RUN}-{request.param[:3]}")
    try:
        lab.lab("up", *RELEASES, "--by", request.param, "--patches", str(GIVEN))
        yield Upgrading(lab, garboard_in_node)
    finally:
        lab.lab("down", check=False)


def assert_upgraded(nodes: Upgrading) -> None:
    for node in CONTROL_PLANES:
        assert {tag for name, tag in nodes.tags(node).items() if name != "etcd"} == {TARGET}
        assert "example.com/owner: platform" in nodes.manifest(node, "kube-apiserver")
        assert nodes.is_ready(node)
    assert nodes.cluster_version("cp1").startswith("3.7.")


@pytest.mark.parametrize("nodes", ["garboard"], indirect=True)
def test_cluster_of_garboard_goes_up_with_its_recorded_patches_from_one_machine(
    nodes: Upgrading, tmp_path: Path, state_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "carrier"
    inside = shlex.join([GARBOARD, "lab", "exec", "--name", nodes.lab.name])
    script.write_text(f'#!/bin/sh\nnode=$1; shift 2\nexec {inside} "$node" -- {shlex.join(nodes.garboard)} "$@"\n')
    script.chmod(0o755)
    words = ("upgrade", "apply", TARGET, "--yes", "--kubeconfig", str(nodes.kubeconfig))
    with ApiLoad(nodes.kubeconfig) as load:
        status = run([*words, "--via", f"{script} {{node}}"])
    assert status == 0, capfd.readouterr().err
    assert load.failed == []
    assert load.longest_gap_s <= load.gap_limit_s, load
    assert_upgraded(nodes)


@pytest.mark.parametrize("nodes", ["kubeadm"], indirect=True)
def test_half_of_the_nodes_go_up_by_kubeadm(nodes: Upgrading) -> None:
    kubeadm = f"/opt/kubernetes/{TARGET}/kubeadm"
    patches = ("--patches", "/etc/garboard-lab/patches")
    nodes.lab.exec("cp1", kubeadm, "upgrade", "apply", TARGET, "--yes", "--ignore-preflight-errors=all", *patches)
    nodes.follow("cp2")
    nodes.lab.exec("cp3", kubeadm, "upgrade", "node", "--ignore-preflight-errors=all", *patches)
    nodes.follow(WORKER)
    assert_upgraded(nodes)
    # Both had joined: also of the flags with which their members of etcd did, the same are left.
    assert rendered(nodes, "cp2") == rendered(nodes, "cp3")


def rendered(nodes: Upgrading, node: str) -> str:
    """Return what is rendered of a node, without what is its own: its name and its address."""
    text = nodes.lab.exec(node, "sh", "-c", f"tail -n +1 {' '.join(RENDERED)}").stdout
    assert "--initial-cluster=" in text
    return text.replace(nodes.address(node), "ADDRESS").replace(node, "NODE")


@pytest.mark.parametrize("nodes", ["kubeadm"], indirect=True)
def test_upgrade_is_refused_while_a_member_is_away_and_names_it(nodes: Upgrading) -> None:
    before, address = nodes.files("cp1"), nodes.address("cp3")
    nodes.lab.lab("stop", "cp3")
    done = nodes.run("cp1", "upgrade", "apply", TARGET, "--yes", "--patches", PATCHES, check=False)
    assert done.returncode != 0
    # The Node is not Ready after a while; until then it is etcd that says so.
    assert "cp3" in done.stderr or address in done.stderr
    assert nodes.files("cp1") == before
    assert nodes.is_ready("cp1")
