"""A live cluster of three control planes and a worker, made by kubeadm, is changed: the least of it, on every node."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.retry import Pauses, wait_until
from tests.support.lab.clusters import await_nodes
from tools.harness.changing import Changing
from tools.harness.lab import GARBOARD, LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

CONTROL_PLANES = ("cp1", "cp2", "cp3")
NODES = (*CONTROL_PLANES, "worker1")
SCHEDULER = "/etc/kubernetes/manifests/kube-scheduler.yaml"
CERTIFICATE = {"/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/apiserver.key"}
KUBELET = "/var/lib/kubelet/config.yaml"
NAME = "api.example.com"


@pytest.fixture(scope="module")
def nodes(ha: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Changing:
    await_nodes(ha, *NODES)

    def unready() -> str | None:
        pods = json.loads(ha.kubectl("-n", "kube-system", "get", "pods", "-o", "json"))["items"]
        return next((each["metadata"]["name"] for each in pods if not _is_ready(each)), None)

    assert wait_until(unready, timeout_s=180, pauses=Pauses.every(1)) is None
    return Changing(ha, garboard_in_node)


def _is_ready(pod: Any) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


@pytest.fixture
def via(nodes: Changing, tmp_path: Path, state_dir: Path) -> list[str]:
    """The flags with which all nodes are reached from the machine of the lab."""
    script = tmp_path / "carrier"
    inside = shlex.join([GARBOARD, "lab", "exec", "--name", nodes.lab.name])
    script.write_text(f'#!/bin/sh\nnode=$1; shift 2\nexec {inside} "$node" -- {shlex.join(nodes.garboard)} "$@"\n')
    script.chmod(0o755)
    return ["--via", f"{script} {{node}}", "--kubeconfig", str(nodes.lab.files.kubeconfig)]


class Seen:
    """Files, containers and kubelets of all nodes, to be compared with what they are later."""

    def __init__(self, nodes: Changing) -> None:
        self.nodes = nodes
        self.files = {name: nodes.files(name) for name in NODES}
        self.containers = {name: nodes.containers(name) for name in NODES}
        self.kubelets = {name: nodes.kubelet(name) for name in NODES}

    def changed(self) -> dict[str, set[str]]:
        """Return the files of each node that are not as they were: their content, their mode or their owner."""
        found = {}
        for name, before in self.files.items():
            now = self.nodes.files(name)
            found[name] = {path for path in {*before, *now} if before.get(path) != now.get(path)}
        return found

    def modes(self) -> dict[str, set[str]]:
        """Return the modes and owners that there are now and were not before."""
        return {
            name: {f"{path} {value.split()[-1]}" for path, value in self.nodes.files(name).items() if ":" in value}
            - {f"{path} {value.split()[-1]}" for path, value in before.items()}
            for name, before in self.files.items()
        }

    def started(self) -> dict[str, set[str]]:
        return {name: self.nodes.started(name, before) for name, before in self.containers.items()}

    def restarted_kubelets(self) -> set[str]:
        return {name for name, before in self.kubelets.items() if self.nodes.kubelet(name) != before}


def only(names: tuple[str, ...], things: set[str]) -> dict[str, set[str]]:
    """Return the same things on some nodes, and nothing on the others."""
    return {name: things if name in names else set() for name in NODES}


def leaders_and_addons(started: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what the lab itself may restart: nothing of the cluster's own components."""
    own = {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kube-proxy"}
    return {name: found & own for name, found in started.items()}


def test_flag_of_the_scheduler_goes_through_all_nodes(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S02, with a carrier: one manifest on each control plane and one ConfigMap."""
    before, serials = Seen(nodes), nodes.stored("kubelet-config")
    status = run(["change", "apply", "--set", "scheduler.extraArgs[v]=3", "--yes", "--message", "a test", *via])
    assert status == 0, capfd.readouterr().err
    assert before.changed() == only(CONTROL_PLANES, {SCHEDULER})
    assert before.modes() == only((), set())
    assert leaders_and_addons(before.started()) == only(CONTROL_PLANES, {"kube-scheduler"})
    assert before.restarted_kubelets() == set()
    assert "- name: v" in nodes.stored("kubeadm-config")["ClusterConfiguration"]
    assert nodes.stored("kubelet-config") == serials
    for name in CONTROL_PLANES:
        assert "    - --v=3\n" in nodes.lab.exec(name, "cat", SCHEDULER).stdout
    told = nodes.status()
    assert (told["state"], told["message"]) == ("committed", "a test")
    assert [(each["node"], each["state"]) for each in told["nodes"]] == [(name, "done") for name in CONTROL_PLANES]
    capfd.readouterr()
    assert run(["change", "apply", "--set", "scheduler.extraArgs[v]=3", "--yes", *via]) == 0
    assert "nothing to do" in capfd.readouterr().err


def test_name_in_the_certificate_needs_no_restart(nodes: Changing) -> None:
    """S04, without a carrier: each node is told, and follows by itself."""
    before = Seen(nodes)
    done = nodes.run("cp1", "apply", "--set", f"apiServer.certSANs+={NAME}", "--yes")
    assert done.returncode == 12, done.stderr
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("  on ")] == [
        ["on", name, "garboard", "change", "node", "--yes"] for name in ("cp2", "cp3")
    ]
    assert _shows(nodes, "cp1")
    assert not _shows(nodes, "cp2")
    refused = nodes.run("cp1", "apply", "--set", "scheduler.extraArgs[v]=4", "--yes")
    assert refused.returncode == 15, refused.stderr
    assert nodes.run("cp3", "node", "--yes").returncode == 15, "cp2 comes first"
    assert [(each["node"], each["state"]) for each in nodes.status()["nodes"]] == [
        ("cp1", "done"), ("cp2", "pending"), ("cp3", "pending"),
    ]  # fmt: skip
    for name in ("cp2", "cp3"):
        followed = nodes.run(name, "node", "--yes")
        assert followed.returncode == 0, followed.stderr
        assert _shows(nodes, name)
    assert before.changed() == only(CONTROL_PLANES, CERTIFICATE)
    assert before.modes() == only((), set())
    assert before.started() == only((), set())
    assert nodes.status()["state"] == "committed"
    again = nodes.run("cp2", "node", "--yes")
    assert (again.returncode, before.changed()) == (0, only(CONTROL_PLANES, CERTIFICATE))


def _shows(nodes: Changing, node: str) -> bool:
    """Say whether the API server of a node shows the name to whoever connects to it, and not through the balancer."""
    address = next(each["address"] for each in nodes.lab.status()["nodes"] if each["name"] == node)
    script = (
        f"openssl s_client -connect {address}:6443 </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName"
    )
    shown = nodes.lab.exec(node, "sh", "-c", script).stdout
    assert "DNS:kubernetes.default" in shown
    return f"DNS:{NAME}" in shown


def test_more_pods_restart_kubelets_alone(nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """S07: control planes first, then the worker, which reads the target as its kubelet."""
    before, stored = Seen(nodes), nodes.stored("kubeadm-config")
    status = run(["change", "apply", "--set", "KubeletConfiguration:maxPods=250", "--yes", *via])
    assert status == 0, capfd.readouterr().err
    assert before.changed() == only(NODES, {KUBELET})
    assert before.modes() == only((), set())
    assert before.started() == only((), set())
    assert before.restarted_kubelets() == set(NODES)
    assert nodes.stored("kubeadm-config") == stored
    listed = json.loads(nodes.lab.kubectl("get", "nodes", "-o", "json"))["items"]
    assert {each["metadata"]["name"]: each["status"]["capacity"]["pods"] for each in listed} == dict.fromkeys(
        NODES, "250"
    )
    reports = {each["metadata"]["name"]: each["metadata"]["annotations"]["garboard.dev/change"] for each in listed}
    assert {report.split(":")[2] for report in reports.values()} == {"done"}


def test_plan_that_was_saved_is_refused_once_somebody_has_changed_the_configuration(
    nodes: Changing, tmp_path: Path, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """S19."""
    before = Seen(nodes)
    assert run(["change", "plan", "--set", "KubeletConfiguration:podsPerCore=40", "-o", "json", *via[2:]]) == 10
    saved = tmp_path / "plan.json"
    saved.write_text(capfd.readouterr().out)
    text = nodes.stored("kubelet-config")["kubelet"]
    _store(nodes, text + "registryBurst: 11\n")
    assert run(["change", "apply", str(saved), "--yes", *via]) == 1
    told = capfd.readouterr().err
    assert "error[stale-plan]" in told
    assert "kubelet-config by kubectl" in told, "who has written it last"
    assert before.changed() == only((), set())
    _store(nodes, text)
    assert run(["change", "apply", str(saved), "--yes", *via]) == 0, capfd.readouterr().err
    assert before.changed() == only(NODES, {KUBELET})


def _store(nodes: Changing, text: str) -> None:
    patch = json.dumps({"data": {"kubelet": text}})
    nodes.lab.kubectl("-n", "kube-system", "patch", "cm", "kubelet-config", "--type", "merge", "-p", patch)


def test_revision_is_gone_back_to_and_history_says_who_and_why(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["change", "history", "-o", "json", *via[2:]]) == 0
    revisions = json.loads(capfd.readouterr().out)["revisions"]
    first = next(each for each in revisions if each["message"] == "a test")
    assert first["request"] == "--set 'scheduler.extraArgs[v]=3'"
    assert first["parent"] == 0
    before = Seen(nodes)
    status = run(["change", "rollback", str(first["parent"]), "--yes", *via])
    assert status == 0, capfd.readouterr().err
    assert before.changed() == {
        **only(CONTROL_PLANES, {SCHEDULER, KUBELET, *CERTIFICATE}), "worker1": {KUBELET}
    }  # fmt: skip
    capfd.readouterr()
    newest = max(each["revision"] for each in revisions) + 1
    assert run(["change", "history", "0", str(newest), "-o", "json", *via[2:]]) == 0
    assert json.loads(capfd.readouterr().out)["diffs"] == []


def test_broken_flag_is_taken_back_where_it_begins(nodes: Changing) -> None:
    """S15: it ends at once, again and again, behind the phase Running."""
    before, stored, status = Seen(nodes), nodes.stored("kubeadm-config"), nodes.status()
    done = nodes.run(
        "cp1", "apply", "--set", "scheduler.extraArgs[no-such-flag]=1", "--accept", "unknown-flag", "--yes"
    )
    assert done.returncode == 13, done.stderr
    assert "unknown flag: --no-such-flag" in done.stderr
    assert before.changed() == only((), set())
    assert before.modes() == only((), set())
    assert leaders_and_addons(before.started()) == only(("cp1",), {"kube-scheduler"})
    assert nodes.stored("kubeadm-config") == stored
    assert nodes.status() == status
    _await_scheduler(nodes, "cp1", "--no-such-flag", is_there=False)


def _await_scheduler(nodes: Changing, node: str, flag: str, *, is_there: bool) -> None:
    """Wait until the API shows the scheduler of a node as it runs."""

    def problem() -> str | None:
        pod = json.loads(nodes.lab.kubectl("-n", "kube-system", "get", "pod", f"kube-scheduler-{node}", "-o", "json"))
        words = pod["spec"]["containers"][0]["command"]
        return None if _is_ready(pod) and any(word.startswith(flag) for word in words) is is_there else "not yet"

    assert wait_until(problem, timeout_s=120, pauses=Pauses.every(1)) is None
