"""A node that somebody has edited by hand goes up: it is shown, stops the upgrade, and is kept as a recorded patch."""

import json
from collections.abc import Iterator

import pytest

from tools.harness.lab import RUN, LabUnderTest
from tools.harness.snapshots import ClusterSnapshots
from tools.harness.upgrading import FORMER, RELEASES, TARGET, Upgrading

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
SCHEDULER = "/etc/kubernetes/manifests/kube-scheduler.yaml"
EDIT = f"sed -i 's/    - --leader-elect=true/&\\n    - --profiling=false/' {SCHEDULER} && grep profiling {SCHEDULER}"
FIELD = "spec.containers[name=kube-scheduler].command[--profiling]"


@pytest.fixture(scope="module")
def nodes(cluster_snapshots: ClusterSnapshots, garboard_in_node: tuple[str, ...]) -> Iterator[Upgrading]:
    """A control plane of the former minor, made by kubeadm, and edited by hand."""
    lab = LabUnderTest(f"t{RUN}-drift")
    try:
        cluster_snapshots.up(lab, *RELEASES, "--control-planes", "1", "--workers", "0", "--by", "kubeadm")
        lab.exec("cp1", "sh", "-c", EDIT)
        yield Upgrading(lab, garboard_in_node)
    finally:
        lab.lab("down", check=False)


def test_hand_edit_is_shown_stops_the_upgrade_and_is_kept(nodes: Upgrading) -> None:
    same = nodes.run("cp1", "upgrade", "apply", FORMER, "--yes", check=False)
    assert (same.returncode, "error[not-an-upgrade]" in same.stderr, FIELD in same.stderr) == (2, True, True)

    plan = nodes.run("cp1", "upgrade", "plan", "-o", "json", check=False)
    errors = [each["class"] for each in json.loads(plan.stdout)["findings"] if each["isError"]]
    assert (plan.returncode, errors) == (4, ["unexplained-difference"])

    before = nodes.files("cp1")
    stopped = nodes.run("cp1", "upgrade", "apply", TARGET, "--yes", check=False)
    assert (stopped.returncode, FIELD in stopped.stderr) == (4, True)
    assert nodes.files("cp1") == before

    keep = ("--drift", "kube-scheduler:--profiling=keep")
    diff = json.loads(nodes.run("cp1", "upgrade", "diff", TARGET, *keep, "-o", "json").stdout)
    by_name = {each["name"]: each for each in diff["changes"]}
    assert "profiling" not in "".join(line for line in by_name["kube-scheduler"]["diff"].splitlines() if line[0] == "-")
    assert by_name["etcd"]["restarts"] == ["etcd"]
    assert nodes.files("cp1") == before

    nodes.run("cp1", "upgrade", "apply", TARGET, "--yes", *keep)
    manifest = nodes.manifest("cp1", "kube-scheduler")
    assert ("--profiling=false" in manifest, f"kube-scheduler:{TARGET}" in manifest) == (True, True)
    assert "node.cp1" in nodes.lab.kubectl("get", "configmap", "garboard-patches", "-n", "kube-system", "-o", "yaml")

    again = nodes.run("cp1", "upgrade", "apply", TARGET, "--yes")
    assert "there is nothing to do" in again.stderr
    assert nodes.run("cp1", "upgrade", "diff", "--exit-code").returncode == 0
