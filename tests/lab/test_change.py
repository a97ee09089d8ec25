"""Changes of a live cluster of three control planes and a worker, made by kubeadm, are planned; nothing is written."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from garboard.change.drifting import cluster_drift
from garboard.change.reads import ADOPT_READS
from garboard.cli.main import run
from garboard.kube.exchange import ApiConnection
from garboard.node.change_observe import observe_cluster
from garboard.retry import Pauses, wait_until
from tests.support.lab.clusters import await_nodes
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

CONTROL_PLANES = ("cp1", "cp2", "cp3")
NODES = (*CONTROL_PLANES, "worker1")
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
_HASHES = "find /etc/kubernetes /var/lib/kubelet/*.yaml /var/lib/kubelet/*.env -type f | sort | xargs sha256sum"
_KINDS = "configmaps,daemonsets,deployments,secrets,roles,rolebindings,services,serviceaccounts"
_PLAN_WITHIN_S, _PLAN_REQUESTS = 1.5, 12


@pytest.fixture(scope="module")
def admin(ha: LabUnderTest) -> list[str]:
    """The flags that name the cluster, once all of its pods are ready."""
    await_nodes(ha, *NODES)
    path = str(ha.files.folder / "admin.conf")

    def unready() -> str | None:
        pods = json.loads(ha.kubectl("-n", "kube-system", "get", "pods", "-o", "json"))["items"]
        return next((each["metadata"]["name"] for each in pods if not _is_ready(each)), None)

    assert wait_until(unready, timeout_s=180, pauses=Pauses.every(1)) is None
    return ["--kubeconfig", path]


def _is_ready(pod: Any) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def planned(admin: list[str], capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """Return the exit status and the plan of a request."""
    status = run(["change", "plan", *words, "-o", "json", *admin])
    return status, json.loads(capsys.readouterr().out)


def restarts(plan: Any) -> dict[str, list[str]]:
    """Return what is restarted on which node, in the order of the work."""
    return {
        each["node"]: [name for step in each["steps"] for name in step["restarts"]]
        for each in plan["nodes"]
        if any(step["restarts"] for step in each["steps"])
    }


def of_nodes(lab: LabUnderTest) -> dict[str, str]:
    return {name: lab.exec(name, "sh", "-c", _HASHES).stdout for name in NODES}


def of_cluster(lab: LabUnderTest) -> dict[str, str]:
    """Return the versions of all objects that a change could touch; those of status and Leases move by themselves."""
    items = json.loads(lab.kubectl("get", _KINDS, "-A", "-o", "json"))["items"]
    specs = json.loads(lab.kubectl("get", "nodes", "-o", "json"))["items"]
    found = {
        f"{each['kind']} {each['metadata']['namespace']}/{each['metadata']['name']}": json.dumps(
            [each["metadata"].get("generation"), each.get("data"), each.get("spec"), each.get("rules")]
        )
        for each in items
    }
    return found | {each["metadata"]["name"]: json.dumps(each["spec"]) for each in specs}


def test_flag_of_the_api_server_restarts_it_on_each_control_plane_and_nothing_else(
    admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, plan = planned(admin, capsys, "--set", "apiServer.extraArgs[profiling]=false")  # S02
    assert (status, plan["verdict"]) == (10, "allowed")
    assert restarts(plan) == {name: ["kube-apiserver"] for name in CONTROL_PLANES}
    files = [file for node in plan["nodes"] for step in node["steps"] for file in step["files"]]
    added = {line for file in files for line in file["diff"].splitlines() if line.startswith("+    ")}
    assert added == {"+    - --profiling=false"}
    assert [each["name"] for each in plan["objects"]] == ["kubeadm-config"]


def test_name_in_the_certificate_is_added_without_a_restart(
    admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, plan = planned(admin, capsys, "--set", "apiServer.certSANs+=api.example.com")  # S04
    assert (status, plan["verdict"]) == (10, "advice")
    assert restarts(plan) == {}
    touched = [
        each["node"] for each in plan["nodes"] if any("apiserver.crt" in json.dumps(step) for step in each["steps"])
    ]
    assert touched == [*CONTROL_PLANES]


def test_more_pods_restart_each_kubelet_control_planes_first(
    admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, plan = planned(admin, capsys, "--set", "KubeletConfiguration:maxPods=250")  # S07
    assert (status, plan["verdict"]) == (10, "allowed")
    assert list(restarts(plan)) == [*NODES]
    assert {name for names in restarts(plan).values() for name in names} == {"kubelet"}
    assert [each["name"] for each in plan["objects"]] == ["kubelet-config"]


def test_fewer_pods_than_a_node_runs_have_to_be_accepted(admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, plan = planned(admin, capsys, "--set", "KubeletConfiguration:maxPods=2")  # S08
    assert (status, plan["verdict"]) == (10, "advice")
    (attribute,) = (each for each in plan["attributes"] if "maxPods" in each["path"])
    assert attribute["code"] == "shrinks-capacity"
    assert "drain" in json.dumps(plan)


def test_mode_of_kube_proxy_touches_neither_control_plane_nor_kubelets(
    admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, plan = planned(
        admin, capsys, "--patch", '{"kind": "KubeProxyConfiguration", "mode": "iptables"}'
    )  # S09: the lab has nftables
    assert (status, plan["verdict"]) == (10, "advice")
    assert {name for names in restarts(plan).values() for name in names} == {"kube-proxy"}
    assert "kube-proxy" in {each["name"] for each in plan["objects"]}


def test_plan_asks_at_most_twelve_times_and_does_not_take_long(
    admin: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    exchange = ApiConnection.exchange

    def counted(self: ApiConnection, request: Any) -> Any:
        asked.append(request.method)
        return exchange(self, request)

    monkeypatch.setattr(ApiConnection, "exchange", counted)
    took = []
    for _ in range(5):
        asked.clear()
        started = time.monotonic()
        planned(admin, capsys, "--set", "apiServer.extraArgs[profiling]=false")
        took.append(time.monotonic() - started)
        assert len(asked) <= _PLAN_REQUESTS
        assert set(asked) == {"GET"}
    assert min(took) <= _PLAN_WITHIN_S, took


def test_adopt_and_drift_change_neither_the_cluster_nor_a_node(
    ha: LabUnderTest, admin: list[str], garboard_in_node: tuple[str, ...], tmp_path: Path
) -> None:
    before = of_nodes(ha), of_cluster(ha)
    assert run(["change", "adopt", "--save", str(tmp_path / "snapshot.json"), *admin]) == 0
    run(["change", "drift", *admin])
    for node in ("cp1", "worker1"):
        ha.exec(node, *garboard_in_node, "change", "adopt")
        ha.exec(node, *garboard_in_node, "change", "drift", check=False)
    assert (of_nodes(ha), of_cluster(ha)) == before


def test_saved_snapshot_gives_the_plan_of_the_live_cluster(
    admin: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "snapshot.json"
    assert run(["change", "adopt", "--save", str(saved), *admin]) == 0
    capsys.readouterr()
    request = ("--set", "scheduler.extraArgs[v]=4")
    _, live = planned(admin, capsys, *request)
    status = run(["change", "plan", *request, "--observed", str(saved), "-o", "json"])
    plan = json.loads(capsys.readouterr().out)
    assert (status, restarts(plan)) == (10, restarts(live))
    assert plan["nodes"] == live["nodes"]


def test_control_planes_of_kubeadm_have_no_drift_of_their_own(ha: LabUnderTest, admin: list[str]) -> None:
    """The lab itself patches CoreDNS, and records that nowhere."""
    observed = observe_cluster(admin[1], ADOPT_READS)
    assert sorted(observed.mirrors) == [*CONTROL_PLANES]
    found = cluster_drift(observed.snapshot, observed.mirrors, observed.workloads)
    assert [(part.node, each.field) for part in found.nodes for each in part.edits] == []
    assert {each.component for each in found.objects.edits} <= {"corednsdeployment"}


@pytest.fixture
def edited(ha: LabUnderTest) -> Iterator[LabUnderTest]:
    """The cluster after somebody has typed a flag into the manifest of one scheduler, and until it is taken out."""
    flag = "    - --profiling=false"
    ha.exec(
        "cp2", "sh", "-c", f"cp {MANIFEST} /root/kept.yaml; sed -i 's/    - --leader-elect=true/&\\n{flag}/' {MANIFEST}"
    )
    try:
        _await_flag(ha, is_there=True)
        yield ha
    finally:
        ha.exec("cp2", "sh", "-c", f"cat /root/kept.yaml >{MANIFEST}; rm -rf /root/kept.yaml /root/patches")
        _await_flag(ha, is_there=False)


def _await_flag(lab: LabUnderTest, *, is_there: bool) -> None:
    def problem() -> str | None:
        text = lab.kubectl("-n", "kube-system", "get", "pod", "kube-scheduler-cp2", "-o", "json", check=False)
        pod = json.loads(text or "{}")
        return None if pod and ("--profiling=false" in text) is is_there and _is_ready(pod) else "not yet"

    assert wait_until(problem, timeout_s=180, pauses=Pauses.every(1)) is None


def test_hand_edit_is_found_from_anywhere_and_kept_by_what_is_captured(
    edited: LabUnderTest, admin: list[str], garboard_in_node: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["change", "drift", "-o", "json", *admin]) == 10
    report = json.loads(capsys.readouterr().out)
    fields = {
        (part["node"], each["field"])
        for part in report["nodes"]
        for each in part["differences"]
        if each["kind"] == "hand-edit"
    }
    assert fields == {("cp2", "spec.containers[name=kube-scheduler].command[--profiling]")}
    assert run(["change", "adopt", "-o", "json", *admin]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {("hand-edit", "cp2"), ("flags-differ", "")} <= {(each["code"], each["node"]) for each in findings}
    # On the node the file is compared, too; and kubeadm renders the same with what was captured.
    kubeadm = (
        "kubeadm init phase control-plane scheduler --dry-run --patches /root/patches --kubernetes-version v1.37.1"
        " >/root/said 2>&1; grep -rh -- --profiling=false /etc/kubernetes/tmp; rm -rf /etc/kubernetes/tmp /root/said"
    )
    ended = edited.exec("cp2", *garboard_in_node, "change", "drift", "--capture", "/root/patches", check=False)
    assert ended.returncode == 10, ended.stderr
    assert "on disk:" in ended.stdout
    assert "--profiling=false" in edited.exec("cp2", "sh", "-c", kubeadm).stdout
