"""Changes of a live cluster that are kept if somebody confirms them, and go back by themselves if nobody can."""

import json
import shlex
from itertools import pairwise
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.retry import Pauses, wait_until
from tests.support.lab.clusters import await_api, await_nodes
from tools.harness.changing import CONTROL_PLANES, NODES, Changing
from tools.harness.killing import KillPoint
from tools.harness.lab import LabUnderTest, put

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

CONFIG = "/var/lib/kubelet/config.yaml"
ARMED = "/var/lib/garboard/change/armed.json"
UNITS = "/etc/systemd/system"
_PROGRAM = "/usr/local/bin/garboard"  # of the node alone: its layer over the machine's folders


@pytest.fixture(scope="module")
def nodes(ha: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Changing:
    """The nodes with garboard on their PATH, for the units that start it."""
    await_nodes(ha, *NODES)
    found = Changing(ha, garboard_in_node)
    found.await_pods()
    for name in NODES:
        put(ha, name, _PROGRAM, f'#!/bin/sh\nexec {shlex.join(garboard_in_node)} "$@"\n')
        ha.exec(name, "chmod", "755", _PROGRAM)
    return found


def admin(nodes: Changing) -> list[str]:
    return ["--kubeconfig", str(nodes.lab.files.kubeconfig)]


def runs(nodes: Changing, node: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(nodes.lab.exec(node, _PROGRAM, "status", "--all", "-o", "json").stdout)[
        "runs"
    ]
    return found


def last_state(nodes: Changing, node: str) -> str:
    """Return the state of the newest change of a node; empty if it has none."""
    return next((str(each["state"]) for each in reversed(runs(nodes, node)) if each["command"] != "undo"), "")


def left_of_confirming(nodes: Changing, node: str) -> str:
    """Return the files and units that an armed node has."""
    return nodes.lab.exec(
        node, "sh", "-c", f"ls {ARMED} {UNITS}/garboard-change-confirm.* 2>/dev/null", check=False
    ).stdout


def until(problem: Any, timeout_s: float = 300.0) -> None:
    assert wait_until(problem, timeout_s=timeout_s, pauses=Pauses.every(1)) is None


def test_confirmed_change_stays_and_nothing_else_begins_before(
    nodes: Changing, capfd: pytest.CaptureFixture[str]
) -> None:
    flag = "scheduler.extraArgs[v]"
    begun = nodes.run("cp1", "apply", "--set", f"{flag}=4", "--confirm-within", "20m", "--yes")
    assert begun.returncode == 12, begun.stderr
    assert run(["change", "confirm", *admin(nodes)]) == 12, "cp2 and cp3 have not followed"
    for name in ("cp2", "cp3"):
        followed = nodes.run(name, "node", "--yes")
        assert followed.returncode == 0, followed.stderr
    for name in CONTROL_PLANES:
        assert ARMED in left_of_confirming(nodes, name)
        assert last_state(nodes, name) == "unconfirmed"
    version = nodes.lab.exec("cp1", "cat", "/etc/kubernetes/manifests/kube-apiserver.yaml").stdout
    version = version.partition("kube-apiserver:")[2].split()[0]
    for words in (
        ["change", "apply", "--set", f"{flag}=5", "--yes"],
        ["upgrade", "apply", version, "--yes"],
        ["certs", "renew", "apiserver"],
    ):
        refused = nodes.lab.exec("cp2", _PROGRAM, *words, check=False)
        assert (refused.returncode, "change-in-progress" in refused.stderr) == (15, True), refused.stderr
    assert run(["change", "confirm", *admin(nodes)]) == 0, capfd.readouterr().err
    for name in CONTROL_PLANES:
        assert left_of_confirming(nodes, name) == ""
        assert last_state(nodes, name) == "confirmed"
        assert "    - --v=4\n" in nodes.lab.exec(name, "cat", "/etc/kubernetes/manifests/kube-scheduler.yaml").stdout
    told = nodes.status()
    assert (told["state"], told["confirmed"]) == ("committed", True)
    capfd.readouterr()


@pytest.mark.parametrize(
    ("edit", "rollout_s", "slot_s", "killed_at"),
    [
        pytest.param("scheduler.extraArgs[v]=5", 100, 20, 5, id="scheduler"),
        # A node waits for no longer than a slot until the member of another is back, which takes a minute.
        pytest.param("etcd.local.extraArgs[snapshot-count]=9000", 240, 100, 9, id="etcd", marks=pytest.mark.verify),
    ],
)
def test_change_goes_back_by_itself_with_no_command_no_api_server_and_a_node_that_was_cut_off(
    nodes: Changing, edit: str, rollout_s: int, slot_s: int, killed_at: int
) -> None:
    """The command is killed, a node loses its power, the API servers stop: all is as before, one node at a time."""
    await_api(nodes.lab)
    before = {name: nodes.files(name) for name in NODES}
    stored = nodes.stored("kubeadm-config")
    words = [
        "--set", edit, "--confirm-within", "10s", "--rollout-within", f"{rollout_s}s", "--revert-slot", f"{slot_s}s",
        "--yes",
    ]  # fmt: skip
    begun = nodes.run("cp1", "apply", *words)
    assert begun.returncode == 12, begun.stderr
    followed = nodes.run("cp2", "node", "--yes")
    assert followed.returncode == 0, followed.stderr
    killed = nodes.run("cp3", "node", "--yes", killed_at=KillPoint("begin", killed_at))
    assert killed.returncode != 0
    assert [last_state(nodes, name) for name in CONTROL_PLANES] == ["unconfirmed", "unconfirmed", "open"]
    nodes.lab.lab("stop", "cp1")
    nodes.lab.lab("start", "cp1")
    for name in CONTROL_PLANES:
        nodes.lab.exec(name, "sh", "-c", "kill -STOP $(pidof kube-apiserver)", check=False)
    for name in CONTROL_PLANES:
        until(lambda name=name: _not_back(nodes, name), timeout_s=900.0)  # one after the other
    await_api(nodes.lab)
    for name in CONTROL_PLANES:
        until(lambda name=name: left_of_confirming(nodes, name) or None)
    assert {name: nodes.files(name) for name in NODES} == before
    assert nodes.stored("kubeadm-config") == stored
    assert nodes.status()["state"] == "reverted"
    spans = sorted(span for name in CONTROL_PLANES for span in _undone(nodes, name))
    assert len(spans) == 3
    if "etcd" in edit:  # else a node that is late has nothing to wait for
        assert all(first[1] <= second[0] for first, second in pairwise(spans)), spans


@pytest.mark.verify
def test_change_reaches_every_node_by_its_own_unit_and_only_under_the_policy(nodes: Changing) -> None:
    """Nobody runs a command on the nodes that follow: their agents do, with the credentials that they have."""
    await_api(nodes.lab)
    worker = nodes.lab.exec("worker1", _PROGRAM, "change", "agent", "install", check=False)
    assert (worker.returncode, "error[unprotected]" in worker.stderr) == (4, True), worker.stderr
    for name in NODES:
        nodes.lab.exec(name, _PROGRAM, "change", "agent", "install", "--every", "5")
    try:
        begun = nodes.run("cp1", "apply", "--set", "KubeletConfiguration:maxPods=123", "--yes")
        assert begun.returncode == 12, begun.stderr
        until(lambda: None if nodes.lab.exec("worker1", "cat", CONFIG).stdout.count("maxPods: 123") else "not yet")
        until(lambda: None if nodes.status()["state"] == "committed" else str(nodes.status()))
        for name in NODES:
            shown = json.loads(nodes.lab.exec(name, _PROGRAM, "change", "agent", "status", "-o", "json").stdout)
            assert (shown["acts"], shown["report"].split(":")[2]) == (True, "done"), shown
        assert capacity(nodes, "worker1") == "123"
    finally:
        for name in reversed(NODES):
            policy = ["--policy"] if name == "cp1" else []
            nodes.lab.exec(name, _PROGRAM, "change", "agent", "uninstall", *policy)
    assert left_of_confirming(nodes, "worker1") == ""


def capacity(nodes: Changing, name: str) -> str:
    return str(json.loads(nodes.lab.kubectl("get", "node", name, "-o", "json"))["status"]["capacity"]["pods"])


def _not_back(nodes: Changing, node: str) -> str | None:
    state = last_state(nodes, node)
    return f"the change of {node} is {state}" if state in ("open", "unconfirmed") else None


def _undone(nodes: Changing, node: str) -> list[tuple[str, str]]:
    """Return when the static pods of a node went away and were back, by its journals: one span for each undo.

    What an undo does before that, such as to wait for the Lease, takes nothing away.
    """
    names = nodes.lab.exec(node, "sh", "-c", "ls -d /var/lib/garboard/runs/*-undo").stdout.split()
    found = []
    for name in names:
        lines = [json.loads(line) for line in nodes.lab.exec(node, "cat", f"{name}/journal.jsonl").stdout.splitlines()]
        steps = [each["action"].get("path", "") for each in lines[0]["plan"]["steps"]]
        first = next((index for index, path in enumerate(steps) if path.startswith("/etc/kubernetes/manifests/")), 0)
        began = [each["at"] for each in lines if each["type"] == "begin" and each["index"] == first]
        found.append((began[-1], lines[-1]["at"]))
    return found
