"""A run that loses its Lease stops at the next boundary, and one that fails leaves what the next holder needs."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from garboard.engine import LEASE_TOKEN, AcquireLease, MakeFolder, Plan, ReleaseLease, Step, StepContext, WriteFile
from garboard.errors import GarboardError, StalePlan
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient, LeaseFailed, LeaseLost, read_access
from garboard.node.interpreters.leases import LeaseToken, NodeLeases
from garboard.node.runs import Runs
from garboard.node.step_hooks import Interrupted
from garboard.node.transaction import RunOptions, RunPolicy, Transactions
from garboard.node.wiring import RunSettings, wired_for
from garboard.phases.control_plane_lease import acquire_lease, release_lease
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.api_server import FakeApi
from tests.support.node.reporters import MemoryReporter

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lock"
ACQUIRE = AcquireLease(
    name="lock", namespace="kube-system", holder="cp-2", timeout_s=5, payload="etcd-member:https://192.0.2.2:2380"
)
RELEASE = ReleaseLease(name="lock", namespace="kube-system", holder="cp-2")


@pytest.fixture(autouse=True)
def is_renewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.kube.lease_holding.RENEWALS", 750)


class Listener(MemoryReporter):
    """Lets something happen when a step begins."""

    def __init__(self, meanwhile: dict[str, Callable[[], None]]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def report(self, line: str, /) -> None:
        super().report(line)
        for part, happens in self.meanwhile.items():
            if line.startswith("[") and part in line:
                happens()


class NodeRun:
    """A run that acquires the Lease, makes folders and releases the Lease."""

    def __init__(self, folder: Path, kubeconfig: Kubeconfig) -> None:
        self.folder = folder
        self.kubeconfig = folder / "admin.conf"
        self.kubeconfig.write_bytes(kubeconfig.to_bytes())
        self.access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)

    def make(self, name: str) -> Step:
        return Step(MakeFolder(path=str(self.folder / name), mode=0o700), "", name)

    def write(self, name: str) -> Step:
        return Step(WriteFile(path=str(self.folder / name), content=b"", mode=0o600), "", name, unit="swap")

    def carry_out(self, *steps: Step, meanwhile: dict[str, Callable[[], None]] | None = None) -> None:
        self.begin(Plan((Step(ACQUIRE, "", "acquire"), *steps, Step(RELEASE, "", "release"))), meanwhile=meanwhile)

    def begin(
        self, plan: Plan, lease: LeaseToken | None = None, meanwhile: dict[str, Callable[[], None]] | None = None
    ) -> None:
        settings = RunSettings(kubeconfig=str(self.kubeconfig)).under(lease)  # without a member of etcd
        options = RunOptions(command="join", policy=RunPolicy(cluster="elsewhere"))
        Transactions(Runs(NodeMachine(None)), Listener(meanwhile or {})).carry_out(plan, settings, options)

    def resume(self, lease: LeaseToken | None = None) -> None:
        Transactions(Runs(NodeMachine(None)), Listener({})).resume(RunOptions(command="resume", lease=lease))

    def undo(self, lease: LeaseToken | None = None) -> None:
        Transactions(Runs(NodeMachine(None)), Listener({})).undo(RunOptions(command="undo", lease=lease))

    @property
    def made(self) -> set[str]:
        return {each.name for each in self.folder.iterdir() if each.is_dir()}


@pytest.fixture
def run(tmp_path: Path, kubeconfig: Kubeconfig) -> NodeRun:
    return NodeRun(tmp_path, kubeconfig)


def taken_over(api: FakeApi) -> Callable[[], None]:
    """Return what gives the Lease to another holder, and waits until the one that renews it has seen that."""

    def take() -> None:
        spec = {**api.objects[PATH]["spec"], "holderIdentity": "cp-3", "leaseTransitions": 1}
        give_up_at = time.monotonic() + 10
        while any(each.name == "lease" for each in threading.enumerate()):
            # A renewal that was under way would take it back, because the fake server knows no versions.
            api.objects[PATH] = {**api.objects[PATH], "spec": spec}
            assert time.monotonic() < give_up_at
            time.sleep(0.01)

    return take


def test_run_stops_before_the_next_step_once_the_lease_is_lost(api: FakeApi, run: NodeRun) -> None:
    with pytest.raises(LeaseLost, match="held by cp-3") as caught:
        run.carry_out(run.make("a"), run.make("b"), meanwhile={"make folder": taken_over(api)})
    assert run.made == {"a"}
    assert "garboard resume" in (caught.value.hint or "")
    assert api.objects[PATH]["spec"]["holderIdentity"] == "cp-3"


def test_run_does_not_stop_inside_a_unit(api: FakeApi, run: NodeRun) -> None:
    steps = run.write("a"), run.write("b"), run.write("c"), run.make("d")
    with pytest.raises(LeaseLost):
        run.carry_out(*steps, meanwhile={"[a]": taken_over(api)})
    assert {each.name for each in run.folder.iterdir()} >= {"a", "b", "c"}
    assert run.made == set()


def test_run_whose_work_is_done_only_loses_the_release(api: FakeApi, run: NodeRun) -> None:
    run.carry_out(run.make("a"), meanwhile={"[a]": taken_over(api)})
    assert run.made == {"a"}
    assert api.objects[PATH]["spec"]["holderIdentity"] == "cp-3"


def test_run_that_fails_hands_its_peer_url_to_the_next_holder(api: FakeApi, run: NodeRun, state_dir: Path) -> None:
    (run.folder / "file").write_text("")
    with pytest.raises(GarboardError):
        run.carry_out(run.make("file/below"))
    lease = api.objects[PATH]
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["metadata"]["annotations"] == {"garboard.dev/lease-payloads": "etcd-member:https://192.0.2.2:2380"}
    (journal,) = state_dir.glob("runs/*/journal.jsonl")
    ends = [line for line in map(json.loads, journal.read_text().splitlines()) if line["type"] == "end"]
    assert ends[0]["outcomes"] == {LEASE_TOKEN: "0"}


def test_run_does_not_begin_while_another_node_is_half_changed_but_one_that_had_begun_goes_on(
    api: FakeApi, run: NodeRun
) -> None:
    left = {"garboard.dev/lease-payloads": "unit:cp-9"}
    api.objects[PATH] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lock", "namespace": "kube-system", "resourceVersion": "7", "annotations": left},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3},
    }
    with pytest.raises(GarboardError, match="cp-9 was left in the middle") as caught:
        run.carry_out(run.make("a"))
    assert caught.value.error_class == "half-changed"
    assert run.made == set()
    assert api.objects[PATH]["metadata"]["annotations"]["garboard.dev/lease-payloads"].split(",")[0] == "unit:cp-9"
    run.resume()
    assert run.made == {"a"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 2], ids=["between two steps", "in the middle of a step"])
def test_run_that_is_interrupted_hands_its_peer_url_to_the_next_holder(
    api: FakeApi, run: NodeRun, number: signal.Signals, times: int
) -> None:
    def interrupt() -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted):
        run.carry_out(run.make("a"), run.make("b"), meanwhile={"[a] make": interrupt})
    assert run.made == ({"a"} if times == 1 else set())
    lease = api.objects[PATH]
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["metadata"]["annotations"] == {"garboard.dev/lease-payloads": "etcd-member:https://192.0.2.2:2380"}


def test_run_of_an_earlier_release_holds_the_lease_of_today(api: FakeApi, run: NodeRun) -> None:
    leases = NodeLeases(lambda: KubeClient(run.access), print)
    before = AcquireLease(
        name="garboard-etcd-join",
        namespace="kube-system",
        holder="cp-2",
        timeout_s=5,
        peer_url="https://192.0.2.2:2380",
    )
    assert leases.acquire(before) == {LEASE_TOKEN: "0"}
    (path,) = api.objects
    assert path == PATH.replace("lock", "garboard-control-plane")
    assert api.objects[path]["metadata"]["annotations"] == {
        "garboard.dev/lease-payloads": "etcd-member:https://192.0.2.2:2380"
    }
    leases.release(ReleaseLease(name="garboard-etcd-join", namespace="kube-system", holder="cp-2"))
    assert api.objects == {}


def test_lease_lasts_longer_while_the_own_api_server_is_away(api: FakeApi, run: NodeRun) -> None:
    durations: list[int] = []
    steps = (
        Step(replace(ACQUIRE, duration_s=600.0), "", "longer"),
        run.make("a"),
        Step(ACQUIRE, "", "shorter"),
        run.make("b"),
    )

    def look() -> None:
        durations.append(api.objects[PATH]["spec"]["leaseDurationSeconds"])

    run.carry_out(*steps, meanwhile={"[a] make": look, "[b] make": look})
    assert durations == [600, 15]


def test_run_that_ends_leaves_no_lease(api: FakeApi, run: NodeRun) -> None:
    run.carry_out(run.make("a"))
    assert api.objects == {}


def test_run_that_would_be_planned_otherwise_under_its_lease_is_taken_back(api: FakeApi, run: NodeRun) -> None:
    """It may have waited for the Lease, and whoever had it has changed the cluster."""
    holders: list[str] = []

    def recheck(waited_s: float) -> None:
        assert waited_s >= 0
        holders.append(api.objects[PATH]["spec"]["holderIdentity"].partition("/")[0])
        raise StalePlan("another node was changed")

    settings = RunSettings(kubeconfig=str(run.kubeconfig))
    options = RunOptions(command="upgrade node", undoes_on_failure=True, recheck=recheck)
    plan = Plan((run.make("before"), Step(ACQUIRE, "", "acquire"), run.make("a"), Step(RELEASE, "", "release")))
    with pytest.raises(StalePlan, match="another node was changed") as caught:
        Transactions(Runs(NodeMachine(None)), Listener({})).carry_out(plan, settings, options)
    assert holders == ["cp-2"], "it is asked once, and not by the undo"
    assert "what the run had done was undone" in str(caught.value.hint)
    assert run.made == set()
    assert api.objects == {}, "nobody holds the Lease"
    assert Runs(NodeMachine(None)).open() == ()


def test_run_waits_for_the_run_of_a_clone_of_its_machine(api: FakeApi, run: NodeRun) -> None:
    """Both machines are called cp-2; only one of them may add a member at a time."""
    holders: list[str] = []

    def clone() -> None:
        holders.append(api.objects[PATH]["spec"]["holderIdentity"])
        settings = RunSettings(kubeconfig=str(run.kubeconfig), certificates_dir="/nowhere", lease_id="clone")
        with wired_for(Plan(), NodeMachine(None), settings, datetime.now(UTC), MemoryReporter()) as wiring:
            context = StepContext({}, lambda _line: None, lambda _facts: None)
            with pytest.raises(LeaseFailed, match="held by cp-2"):
                wiring.interpreters.carry_out(replace(ACQUIRE, timeout_s=0.1), context)

    run.carry_out(run.make("a"), meanwhile={"[a]": clone})
    assert run.made == {"a"}
    assert re.fullmatch("cp-2/[0-9a-f]{8}", holders[0])


def test_resumed_run_knows_its_own_lease(api: FakeApi, run: NodeRun, state_dir: Path) -> None:
    holders: list[str] = []

    def look() -> None:
        holders.append(api.objects[PATH]["spec"]["holderIdentity"])

    (run.folder / "file").write_text("")
    with pytest.raises(GarboardError):
        run.carry_out(run.make("file/below"), meanwhile={"make folder": look})
    # As a kill leaves it: held, and not renewed any more.
    free = api.objects[PATH]
    api.objects[PATH] = {**free, "spec": {**free["spec"], "holderIdentity": holders[0], "leaseDurationSeconds": 600}}
    (run.folder / "file").unlink()
    Transactions(Runs(NodeMachine(None)), Listener({"make folder": look})).resume(RunOptions(command="resume"))
    assert holders[0] == holders[1]
    assert (run.folder / "file/below").is_dir()


CONTROL_PLANE = PATH.replace("lock", "garboard-control-plane")


def given_to(api: FakeApi, holder: str, transitions: int) -> None:
    spec = {"holderIdentity": holder, "leaseTransitions": transitions, "leaseDurationSeconds": 15, "renewTime": "x"}
    metadata = {"name": "garboard-control-plane", "namespace": "kube-system"}
    api.objects[CONTROL_PLANE] = {"kind": "Lease", "metadata": metadata, "spec": spec}


def under_coordinator(run: NodeRun, api: FakeApi, *names: str) -> None:
    """Begin a run under the Lease of a coordinator, which loses it after the first folder."""
    given_to(api, "cp-9/x", 4)
    steps = (Step(acquire_lease("cp-2"), "", "acquire"), *map(run.make, names), Step(release_lease("cp-2"), "", "end"))
    with pytest.raises(LeaseLost, match=r"held by nobody \(token 4, ours was 4\)"):
        run.begin(Plan(steps), LeaseToken("cp-9/x", 4), {"[a]": lambda: given_to(api, "", 4)})
    assert run.made == {"a"}


def test_run_whose_coordinator_has_gone_is_resumed_under_a_lease_of_its_own(api: FakeApi, run: NodeRun) -> None:
    under_coordinator(run, api, "a", "b")
    run.resume()
    assert run.made == {"a", "b"}
    assert api.objects == {}


def test_run_is_resumed_under_the_token_that_its_coordinator_has_now(api: FakeApi, run: NodeRun) -> None:
    under_coordinator(run, api, "a", "b")
    given_to(api, "cp-9/x", 6)
    with pytest.raises(LeaseLost):
        run.resume(LeaseToken("cp-9/x", 5))
    run.resume(LeaseToken("cp-9/x", 6))
    assert run.made == {"a", "b"}
    assert api.objects[CONTROL_PLANE]["spec"]["holderIdentity"] == "cp-9/x"


def test_run_is_undone_under_the_token_that_its_coordinator_has_now(api: FakeApi, run: NodeRun) -> None:
    under_coordinator(run, api, "a", "b")
    given_to(api, "cp-9/x", 6)
    run.undo(LeaseToken("cp-9/x", 6))
    assert run.made == set()
    assert api.objects[CONTROL_PLANE]["spec"]["holderIdentity"] == "cp-9/x"
