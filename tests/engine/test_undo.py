import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from garboard.documents import Json
from garboard.engine import (
    AcquireLease,
    AddMember,
    ChangeOwner,
    ControlLink,
    ControlService,
    ControlTimer,
    ControlUnitFile,
    DeleteObject,
    EmptyFolder,
    Executor,
    Journal,
    MakeFolder,
    Observers,
    PatchObject,
    Plan,
    PullImage,
    PutObject,
    ReleaseLease,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    SaveSnapshot,
    Step,
    UndoRefused,
    Unmount,
    WriteFile,
    plan_undo,
)
from garboard.engine.action import Action
from garboard.engine.undo_objects import inverse_patch
from garboard.node.interpreters import interpreters_over
from garboard.phases.gates import ClusterVersionRaised
from tests.support.engine.actions import (
    FakeLinks,
    FakeServices,
    FakeTimers,
    FakeUnitFiles,
    MemoryFiles,
    WishIssuer,
    issue,
)
from tests.support.engine.clusters import TAKE, Cluster, OneMember, RecordedLeases
from tests.support.engine.runs import CODEC, MemoryRun, carried_out, cut

URL = "https://192.0.2.2:2380"
ADD = AddMember(name="b", peer_url=URL, outcome="members")


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(action, "because", f"phase-{index}", "n") for index, action in enumerate(actions)))


def write(path: str, content: bytes = b"new") -> WriteFile:
    return WriteFile(path=path, content=content, mode=0o644)


def undone(run: MemoryRun, observers: Observers) -> list[Action]:
    steps = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept).steps
    return [step.action for step in steps]


def test_files_folders_and_owners_become_what_they_were() -> None:
    before = {"/etc/kept": (0o640, b"former"), "/etc/gone": (0o600, b"was here"), "/etc/other": (0o600, b"")}
    files = MemoryFiles(dict(before), {"/etc": 0o755}, {"/etc/kept": (7, 8, None)})
    observers = Observers(files=files)
    run = carried_out(
        plan(
            write("/etc/kept"),
            write("/etc/kept", b"newer"),
            write("/etc/pki/etcd/new"),
            issue("pair", "/wish"),
            RemoveFile(path="/etc/gone"),
            ChangeOwner(path="/etc/other", uid=5, gid=5, mode=0o600),
            MakeFolder(path="/data", mode=0o700),
        ),
        interpreters_over(files=files, issuer=WishIssuer()),
        observers,
    )
    files.files["/data/made/since"] = (0o600, b"by whoever was started")
    files.files["/etc/.kept.abcd1234"] = (0o600, b"half")
    undo = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    Executor(interpreters_over(files=files), observers=Observers(files=files)).execute(undo)
    assert files.files == before
    assert {path for path in files.folders if path not in ("", "/etc")} == set()
    assert files.owners["/etc/other"] == (0, 0, 0o600)
    assert undone(run, observers) == []


@pytest.mark.parametrize("is_killed", [True, False])
def test_file_that_somebody_else_wrote_since_stays_with_a_note(is_killed: bool) -> None:
    files = MemoryFiles({"/etc/kept": (0o640, b"former"), "/etc/gone": (0o600, b"was here")}, {"/etc": 0o755})
    observers = Observers(files=files)
    actions = (RemoveFile(path="/etc/gone"), write("/etc/kept"), write("/data/x"), issue("pair", "/wish"))
    run = carried_out(plan(*actions), interpreters_over(files=files, issuer=WishIssuer()), observers)
    if is_killed:
        cut(run, 9)  # before the last step has ended
    theirs = dict.fromkeys(("/etc/gone", "/etc/kept", "/data/x", "/wish"), (0o600, b"theirs"))
    files.files |= theirs
    undo = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    Executor(interpreters_over(files=files), observers=Observers(files=files)).execute(undo)
    assert files.files == theirs
    assert [note.text.partition(" ")[0] for note in undo.notes] == sorted(theirs)


def test_file_that_somebody_writes_after_undo_was_planned_stays() -> None:
    files = MemoryFiles({"/etc/kept": (0o640, b"former")}, {"/etc": 0o755})
    observers = Observers(files=files)
    run = carried_out(plan(write("/etc/kept"), write("/etc/new")), interpreters_over(files=files), observers)
    undo = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    theirs = dict.fromkeys(("/etc/kept", "/etc/new"), (0o600, b"theirs"))
    files.files |= theirs
    Executor(interpreters_over(files=files), observers=observers, leaves_moved=True).execute(undo)
    assert files.files == theirs


def test_file_that_is_as_it_was_or_has_gone_is_restored() -> None:
    before = {"/etc/a": (0o600, b"former"), "/etc/b": (0o600, b"former")}
    files = MemoryFiles(dict(before), {"/etc": 0o755})
    observers = Observers(files=files)
    run = carried_out(plan(write("/etc/a"), write("/etc/b")), interpreters_over(files=files), observers)
    files.files["/etc/a"] = before["/etc/a"]
    del files.files["/etc/b"]
    undo = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    Executor(interpreters_over(files=files), observers=Observers(files=files)).execute(undo)
    assert (files.files, undo.notes) == (before, ())


def test_folder_with_somebody_elses_file_stays() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    run = carried_out(plan(write("/etc/kubernetes/admin.conf")), interpreters_over(files=files), Observers(files=files))
    files.files["/etc/kubernetes/notes"] = (0o600, b"mine")
    undo = plan_undo(run.record.plan(run, CODEC), run.record, Observers(files=files), run.kept)
    Executor(interpreters_over(files=files), observers=Observers(files=files)).execute(undo)
    assert files.files == {"/etc/kubernetes/notes": (0o600, b"mine")}
    assert "/etc/kubernetes" in files.folders


def test_step_that_did_not_begin_is_not_undone() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    run = carried_out(plan(write("/etc/a"), write("/etc/b")), interpreters_over(files=files), Observers(files=files))
    cut(run, 3)
    assert undone(run, Observers(files=files)) == [RemoveFile(path="/etc/a")]


def test_member_goes_first_then_services_and_files_last() -> None:
    files, services, members = MemoryFiles({}, {"/etc": 0o755, "/var": 0o755}), FakeServices(), OneMember()
    start = ControlService(service="kubelet", verb="start", fills=("/var/kubelet",), registers="n")
    interpreters = interpreters_over(files=files, services=services, members=members, leases=RecordedLeases())
    observers = Observers(files=files, services=services, runtime=Pods())
    steps = plan(write("/etc/a"), start, TAKE, ADD, write("/etc/etcd"))
    run = carried_out(steps, interpreters, observers, "elsewhere")
    files.files["/var/kubelet/state"] = (0o600, b"")
    files.folders["/var/kubelet"] = 0o755
    kinds = [type(action) for action in undone(run, observers)]
    assert kinds[:6] == [AcquireLease, RemoveMember, ControlService, RemoveSandboxes, Unmount, ReleaseLease]
    assert kinds.index(EmptyFolder) > 5
    assert undone(run, observers)[-2:] == [RemoveFile(path="/etc/etcd"), RemoveFile(path="/etc/a")]
    assert undone(run, observers)[6].name == "n"  # type: ignore[union-attr]


def test_member_whose_step_did_not_end_is_removed_by_the_id_that_it_had_noted() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    interpreters = interpreters_over(files=files, members=OneMember(), leases=RecordedLeases())
    run = carried_out(plan(TAKE, ADD), interpreters, Observers(files=files), "elsewhere")
    lines = run.data.splitlines(keepends=True)
    assert json.loads(lines[-1])["type"] == "end"
    cut(run, len(lines) - 1)
    assert RemoveMember(peer_url=ADD.peer_url, member_id="2b") in undone(run, Observers(files=files))
    cut(run, len(lines) - 2)  # and by its peer URL if it was killed before
    assert RemoveMember(peer_url=ADD.peer_url) in undone(run, Observers(files=files))


class NoPods:
    """A runtime without pods."""

    def pull(self, action: PullImage) -> None:
        raise AssertionError("an undo pulls nothing")

    def remove_sandboxes(self, keeps: tuple[str, ...]) -> None:
        return

    def stop_containers(self, name: str) -> None:
        raise AssertionError("an undo of a service stops no single container")

    def stop_pods(self, namespace: str, selector: Mapping[str, str], grace_s: int) -> list[str]:
        raise AssertionError("an undo restarts no pods")


def test_what_a_service_writes_until_it_is_stopped_goes_and_what_was_there_stays() -> None:
    files, services = MemoryFiles({"/var/log/old": (0o600, b"")}, {"/var": 0o755, "/var/log": 0o755}), FakeServices()
    start = ControlService(service="kubelet", verb="start", fills=("/var/log",))
    observers = Observers(files=files, services=services, runtime=Pods())
    run = carried_out(plan(start), interpreters_over(files=files, services=services), observers)
    planned = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    files.files["/var/log/after"] = (0o600, b"written after undo was planned")
    Executor(
        interpreters_over(files=files, services=services, runtime=NoPods()), observers=Observers(files=files)
    ).execute(planned)
    assert list(files.files) == ["/var/log/old"]
    assert undone(run, observers) == [RemoveSandboxes(), Unmount(path="/var/log")]


def test_file_that_a_service_may_still_make_goes_once_it_is_stopped() -> None:
    files, services = MemoryFiles({}, {"/etc": 0o755}), FakeServices()
    start = ControlService(service="kubelet", verb="start", writes=("/etc/kubelet.conf",))
    run = carried_out(
        plan(start), interpreters_over(files=files, services=services), Observers(files=files, services=services)
    )
    stop = ControlService(service="kubelet", verb="stop", is_needed=False)
    assert undone(run, Observers(files=files, services=services)) == [stop, RemoveFile(path="/etc/kubelet.conf")]
    services.stop("kubelet")
    assert undone(run, Observers(files=files, services=services)) == []
    files.files["/etc/kubelet.conf"] = (0o600, b"")
    assert undone(run, Observers(files=files, services=services)) == [RemoveFile(path="/etc/kubelet.conf")]


def test_service_returns_to_its_former_state() -> None:
    files, services = MemoryFiles({}, {"/etc": 0o755}), FakeServices({"kubelet"})
    steps = plan(
        ControlService(service="kubelet", verb="stop"), write("/etc/a"), ControlService(service="kubelet", verb="start")
    )
    observers = Observers(files=files, services=services)
    run = carried_out(steps, interpreters_over(files=files, services=services), observers)
    verbs = [each.verb for each in undone(run, observers) if isinstance(each, ControlService)]
    assert verbs == ["stop", "start"]


TIMER = "/etc/systemd/system/garboard-revert.timer"


def test_timer_that_the_run_enabled_is_disabled_before_its_files_go() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    timers = FakeTimers(files)
    interpreters = interpreters_over(files=files, timers=timers)
    observers = Observers(files=files, timers=timers)
    run = carried_out(plan(write(TIMER), ControlTimer(timer="garboard-revert", verb="enable")), interpreters, observers)
    undo = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    Executor(interpreters, observers=observers).execute(undo)
    assert timers.enabled == set()
    assert timers.log == ["enable new", "disable new", "forget garboard-revert"]
    assert files.files == {}
    assert undone(run, observers) == []


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param(
            (ControlTimer(timer="garboard-revert", verb="disable"), RemoveFile(path=TIMER)), id="the run removed it"
        ),
        pytest.param(
            (write(TIMER), ControlTimer(timer="garboard-revert", verb="enable")), id="the run gave it another time"
        ),
    ],
)
def test_timer_that_was_enabled_fires_again_at_its_former_time(actions: tuple[Action, ...]) -> None:
    files = MemoryFiles({TIMER: (0o644, b"former")}, {"/etc": 0o755, "/etc/systemd/system": 0o755})
    timers = FakeTimers(files, {"garboard-revert"})
    interpreters = interpreters_over(files=files, timers=timers)
    observers = Observers(files=files, timers=timers)
    run = carried_out(plan(*actions), interpreters, observers)
    Executor(interpreters, observers=observers).execute(
        plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    )
    assert timers.enabled == {"garboard-revert"}
    assert timers.log[-1] == "enable former"


def test_timer_that_was_about_to_be_enabled_is_left_alone() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    timers = FakeTimers(files)
    observers = Observers(files=files, timers=timers)
    run = carried_out(
        plan(write(TIMER), ControlTimer(timer="garboard-revert", verb="enable")),
        interpreters_over(files=files, timers=timers),
        observers,
    )
    timers.enabled.clear()  # killed before the service manager was asked
    assert undone(run, observers)[:1] == [RemoveFile(path=TIMER)]


AGENT = "/etc/systemd/system/konnectivity-agent.service"
LINK = ControlLink(address="10.255.0.1", link="konnectivity0", verb="add")
ENABLE = ControlUnitFile(service="konnectivity-agent", verb="enable")
REGISTER = ControlService(service="kubelet", verb="start", registers="node-2")


def test_way_to_the_cluster_stays_until_the_cluster_needs_no_change_any_more() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    units, links = FakeUnitFiles(files), FakeLinks()
    interpreters = interpreters_over(files=files, unit_files=units, links=links, services=FakeServices())
    observers = Observers(files=files, services=units, unit_files=units, links=links)
    run = carried_out(plan(LINK, write(AGENT), ENABLE, REGISTER), interpreters, observers, "elsewhere")
    actions = undone(run, observers)
    node = DeleteObject(api_version="v1", kind="Node", name="node-2", is_needed=False, may_be_left=True)
    disable, forget = (replace(ENABLE, verb=verb) for verb in ("disable", "forget"))
    assert [each for each in actions if not isinstance(each, RemoveFolder)] == [
        node, disable, replace(LINK, verb="remove"), RemoveFile(path=AGENT), forget,
    ]  # fmt: skip


@pytest.mark.parametrize("is_through_a_pod", [True, False])
def test_node_is_deleted_while_the_pod_is_there_that_leads_to_the_cluster(is_through_a_pod: bool) -> None:
    files, services, links = MemoryFiles({}, {"/var": 0o755}), FakeServices(), FakeLinks()
    start = replace(REGISTER, fills=("/var/kubelet",))
    observers = Observers(files=files, services=services, links=links, runtime=Pods())
    interpreters = interpreters_over(files=files, services=services, links=links)
    run = carried_out(plan(LINK, start) if is_through_a_pod else plan(start), interpreters, observers, "elsewhere")
    expected = [DeleteObject, RemoveSandboxes] if is_through_a_pod else [RemoveSandboxes, DeleteObject]
    found = [type(each) for each in undone(run, observers)]
    assert [each for each in found if each in expected] == expected
    assert found[0] is ControlService, "the kubelet would register the node again"


def test_agent_and_its_address_go_and_nothing_is_left_to_undo() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    units, links = FakeUnitFiles(files), FakeLinks()
    interpreters = interpreters_over(files=files, unit_files=units, links=links)
    observers = Observers(files=files, services=units, unit_files=units, links=links)
    run = carried_out(plan(LINK, write(AGENT), ENABLE), interpreters, observers)
    Executor(interpreters, observers=observers).execute(
        plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    )
    assert (units.enabled, units.running, links.addresses, files.files) == (set(), set(), {}, {})
    assert units.log[-1] == "forget konnectivity-agent"
    assert undone(run, observers) == []


def test_agent_and_address_that_were_there_before_stay() -> None:
    files = MemoryFiles({AGENT: (0o644, b"former")}, {"/etc": 0o755, "/etc/systemd/system": 0o755})
    units = FakeUnitFiles(files, {"konnectivity-agent"}, {"konnectivity-agent"})
    links = FakeLinks({"10.255.0.1": "konnectivity0"})
    interpreters = interpreters_over(files=files, unit_files=units, links=links)
    observers = Observers(files=files, services=units, unit_files=units, links=links)
    run = carried_out(plan(LINK, write(AGENT), ENABLE), interpreters, observers)
    Executor(interpreters, observers=observers).execute(
        plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    )
    assert (units.enabled, set(links.addresses)) == ({"konnectivity-agent"}, {"10.255.0.1"})
    assert units.log[-1] == "enable former"


def test_agent_that_is_disabled_and_still_runs_is_stopped() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    units = FakeUnitFiles(files)
    observers = Observers(files=files, services=units, unit_files=units)
    run = carried_out(plan(write(AGENT), ENABLE), interpreters_over(files=files, unit_files=units), observers)
    units.enabled.clear()  # killed between the two
    assert undone(run, observers)[0] == ControlUnitFile(service="konnectivity-agent", verb="disable")


def test_member_is_removed_by_the_id_that_was_recorded() -> None:
    files, members = MemoryFiles(), OneMember()
    run = carried_out(plan(ADD), interpreters_over(files=files, members=members), Observers(files=files))
    assert undone(run, Observers(files=files)) == [RemoveMember(peer_url=URL, member_id="2b")]


def test_member_that_was_being_added_once_more_goes_by_its_peer_url() -> None:
    """The id that was recorded is that of a learner which another node has removed since."""
    files, members = MemoryFiles(), OneMember()
    run = carried_out(plan(ADD), interpreters_over(files=files, members=members), Observers(files=files))
    journal = Journal(run, CODEC, Observers(files=files), run.record.progress)
    journal.begin(0, plan(ADD).steps[0])
    assert undone(run, Observers(files=files)) == [RemoveMember(peer_url=URL)]


class Watched(OneMember):
    def has(self, peer_url: str) -> bool:
        return peer_url in self.peers.values()


def test_member_that_was_there_before_stays() -> None:
    members = Watched()
    members.peers["b"] = URL
    observers = Observers(files=MemoryFiles(), members=members)
    run = carried_out(plan(ADD), interpreters_over(files=MemoryFiles(), members=members), observers)
    assert undone(run, observers) == []


class Objects(Cluster):
    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        found = self.objects.get(name)
        return found if isinstance(found, dict) else None


def put(name: str, content: Json, *, is_shared: bool = False) -> PutObject:
    return PutObject(
        api_version="v1",
        kind="ConfigMap",
        name=name,
        namespace="kube-system",
        content=content,
        keeps_other_data=is_shared,
    )


def test_objects_of_a_cluster_that_the_run_made_go_with_its_files() -> None:
    files, cluster = MemoryFiles(), Objects()
    run = carried_out(
        plan(put("a", {})),
        interpreters_over(files=files, objects=cluster),
        Observers(files=files, objects=cluster),
        "made",
    )
    assert undone(run, Observers(files=files, objects=cluster)) == []


def test_object_is_deleted_or_restored() -> None:
    files, cluster = MemoryFiles(), Objects()
    former: Json = {"data": {"x": "1"}, "metadata": {"name": "old", "uid": "u", "resourceVersion": "3"}}
    cluster.objects["old"] = former
    observers, interpreters = Observers(files=files, objects=cluster), interpreters_over(files=files, objects=cluster)
    run = carried_out(plan(put("old", {"data": {}}), put("new", {"data": {}})), interpreters, observers)
    undo = plan_undo(run.record.plan(run, CODEC), run.record, observers, run.kept)
    Executor(interpreters, observers=observers).execute(undo)
    assert cluster.objects == {"old": {"data": {"x": "1"}, "metadata": {"name": "old"}}}


def test_object_that_the_run_left_as_it_was_is_left_by_undo_too() -> None:
    """Somebody may have changed it since."""
    files, cluster = MemoryFiles(), Objects()
    cluster.objects["old"] = {"data": {"x": "1"}}
    observers, interpreters = Observers(files=files, objects=cluster), interpreters_over(files=files, objects=cluster)
    steps = [replace(put(name, {"data": {}}), keeps_existing=True) for name in ("old", "new")]
    run = carried_out(plan(*steps), interpreters, observers)
    (gone,) = undone(run, observers)
    assert isinstance(gone, DeleteObject)
    assert gone.name == "new"


@pytest.mark.parametrize("version", ["3", "4"])
def test_object_of_another_version_that_the_run_left_is_left_by_undo_too(version: str) -> None:
    files, cluster = MemoryFiles(), Objects()
    cluster.objects["old"] = {"data": {"x": "1"}, "metadata": {"name": "old", "resourceVersion": "3"}}
    observers, interpreters = Observers(files=files, objects=cluster), interpreters_over(files=files, objects=cluster)
    step = replace(put("old", {"data": {}}), keeps_existing=True, resource_version=version)
    run = carried_out(plan(step), interpreters, observers)
    assert [type(each) for each in undone(run, observers)] == ([PutObject] if version == "3" else [])


def test_objects_wait_for_the_unit_that_brings_back_the_api_server_of_this_node() -> None:
    path = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    files, cluster = MemoryFiles({path: (0o600, b"old")}), Objects()
    observers, interpreters = Observers(files=files, objects=cluster), interpreters_over(files=files, objects=cluster)
    object_first, *unit = plan(put("a", {"data": {}}), RemoveFile(path=path), write(path)).steps
    swap = Plan((object_first, *(replace(step, unit="static-pods") for step in unit)))
    run = carried_out(swap, interpreters, observers, "local")
    assert [type(each) for each in undone(run, observers)] == [RemoveFile, WriteFile, DeleteObject]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_other_files_are_as_before_when_the_pods_of_a_unit_start_again(moment: str) -> None:
    path, certificate = "/etc/kubernetes/manifests/etcd.yaml", "/etc/kubernetes/pki/etcd/server.crt"
    files = MemoryFiles({path: (0o600, b"old"), certificate: (0o644, b"old")})
    observers, interpreters = Observers(files=files), interpreters_over(files=files)
    issued, *swapped = plan(write(certificate), RemoveFile(path=path), write(path)).steps
    unit = [replace(step, unit="static-pods") for step in swapped]
    steps = [issued, *unit] if moment == "before" else [*unit, issued]
    run = carried_out(Plan(tuple(steps)), interpreters, observers)
    written = [each.path for each in undone(run, observers) if isinstance(each, RemoveFile | WriteFile)]
    assert written == [certificate, path, path]


class Snapshots:
    """An etcd whose snapshots are small."""

    def save_snapshot(self, client_url: str, write: Callable[[bytes], object]) -> str:
        write(b"snapshot")
        return "digest"

    def move_leader(self, peer_url: str, timeout_s: float) -> None:
        raise AssertionError("nobody else is to lead")


@pytest.mark.parametrize("may_last", [True, False])
def test_snapshot_stays_where_what_was_changed_after_it_may_have_no_way_back(may_last: bool) -> None:
    path, saved = "/etc/kubernetes/manifests/etcd.yaml", "/var/lib/garboard/etcd/1.db"
    files = MemoryFiles({path: (0o600, b"old")}, {"/var/lib/garboard": 0o700})
    observers, interpreters = Observers(files=files), interpreters_over(files=files, maintenance=Snapshots())
    snapshot, remove, put_back = plan(
        SaveSnapshot(path=saved, client_url="x"), RemoveFile(path=path), write(path)
    ).steps
    raised = ClusterVersionRaised(above="3.6") if may_last else None
    unit = (replace(remove, unit="static-pods"), replace(put_back, unit="static-pods", lasts_once=raised))
    run = carried_out(Plan((snapshot, *unit)), interpreters, observers)
    assert (RemoveFile(path=saved) in undone(run, observers)) is not may_last


def test_shared_object_loses_only_the_keys_of_the_run() -> None:
    files, cluster = MemoryFiles(), Objects()
    observers, interpreters = Observers(files=files, objects=cluster), interpreters_over(files=files, objects=cluster)
    run = carried_out(plan(put("shared", {"data": {"mine": "1"}}, is_shared=True)), interpreters, observers)
    (patch,) = undone(run, observers)
    assert patch == PatchObject(
        api_version="v1",
        kind="ConfigMap",
        name="shared",
        namespace="kube-system",
        content={"data": {"mine": None}},
        deletes_empty=True,
    )
    cluster.objects["shared"] = {"data": {"mine": "0", "theirs": "2"}}
    run = carried_out(plan(put("shared", {"data": {"mine": "1"}}, is_shared=True)), interpreters, observers)
    (patch,) = undone(run, observers)
    assert isinstance(patch, PatchObject)
    assert (patch.content, patch.deletes_empty) == ({"data": {"mine": "0"}}, False)


def test_object_that_serves_another_one_is_deleted_unless_that_exists() -> None:
    files, cluster = MemoryFiles(), Objects()
    observers, interpreters = Observers(files=files, objects=cluster), interpreters_over(files=files, objects=cluster)
    served = ("ConfigMap", "kube-system", "record")
    run = carried_out(plan(replace(put("role", {}), serves=served)), interpreters, observers)
    (deletion,) = undone(run, observers)
    assert isinstance(deletion, DeleteObject)
    assert deletion.unless == served


def test_run_that_removed_what_nobody_brings_back_is_not_undone() -> None:
    files = MemoryFiles()
    run = carried_out(plan(EmptyFolder(path="/var/lib/etcd")), interpreters_over(files=files), Observers(files=files))
    with pytest.raises(UndoRefused, match="nobody can bring back"):
        undone(run, Observers(files=files))


@pytest.mark.parametrize(
    ("patch", "found", "inverse"),
    [
        pytest.param({"a": 1}, {"a": 2, "b": 3}, {"a": 2}, id="changed"),
        pytest.param({"a": 1}, {"b": 3}, {"a": None}, id="added"),
        pytest.param({"m": {"x": "1", "y": "2"}}, {"m": {"x": "0"}}, {"m": {"x": "0", "y": None}}, id="nested"),
        pytest.param({"a": None}, {"a": 1}, {"a": 1}, id="removed"),
        pytest.param(
            {"taints": [{"key": "t"}]},
            {"taints": [{"key": "u"}]},
            {"taints": [{"$patch": "replace"}, {"key": "u"}]},
            id="list with merge keys",
        ),
    ],
)
def test_patch_is_taken_back(patch: Json, found: Json, inverse: Json) -> None:
    assert inverse_patch(patch, found) == inverse


class Pods:
    """A container runtime with these sandboxes; None if it does not answer."""

    def __init__(self, *ids: str, answers: bool = True) -> None:
        self.ids = ids if answers else None

    def sandboxes(self) -> tuple[str, ...] | None:
        return self.ids


FILLING = ControlService(service="kubelet", verb="start", fills=("/var/kubelet", "/var/etcd"), registers="n")
STOP, START = (ControlService(service="kubelet", verb=verb, is_needed=False) for verb in ("stop", "start"))


def _undone_kubelet_start(services: FakeServices, pods: Pods | None) -> list[Action]:
    """Carry out what `init phase kubelet-start` does on a node, and return the actions of its undo."""
    files = MemoryFiles(
        {"/var/kubelet/config": (0o600, b"former"), "/var/etcd/member": (0o600, b"")},
        {"/var": 0o755, "/var/kubelet": 0o755, "/var/etcd": 0o755},
    )
    observers = Observers(files=files, services=services, runtime=pods)
    stops = [ControlService(service="kubelet", verb="stop")] if services.running else []
    steps = plan(*stops, write("/var/kubelet/config"), FILLING)
    run = carried_out(steps, interpreters_over(files=files, services=services), observers)
    files.files["/var/kubelet/pods"] = (0o600, b"of a pod that was scheduled since")
    return undone(run, observers)


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(Pods("a", "b"), id="pods"),
        pytest.param(Pods(answers=False), id="the runtime does not answer"),
        pytest.param(None, id="a journal that says nothing of pods"),
    ],
)
def test_kubelet_that_ran_before_runs_again_and_its_pods_stay(pods: Pods | None) -> None:
    former = WriteFile(path="/var/kubelet/config", content=b"former", mode=0o600, is_secret=True)
    assert _undone_kubelet_start(FakeServices({"kubelet"}), pods) == [STOP, former, START]


def test_pods_of_a_kubelet_that_ran_in_vain_go() -> None:
    """As on a machine whose package starts the kubelet over and over before there is a configuration."""
    kinds = [type(each) for each in _undone_kubelet_start(FakeServices({"kubelet"}), Pods())]
    assert kinds.count(Unmount) == 2
    assert RemoveSandboxes in kinds


def test_pods_that_a_stopped_kubelet_had_left_stay() -> None:
    actions = _undone_kubelet_start(FakeServices(), Pods("a"))
    assert RemoveSandboxes(keeps=("a",)) in actions
    assert not [each for each in actions if isinstance(each, Unmount)]


@pytest.mark.parametrize("pods", [Pods(answers=False), None])
def test_pods_stay_where_nobody_said_which_there_were(pods: Pods | None) -> None:
    actions = _undone_kubelet_start(FakeServices(), pods)
    assert not [each for each in actions if isinstance(each, RemoveSandboxes | Unmount)]


def test_what_was_mounted_before_the_run_stays_mounted() -> None:
    before = {"/var/kubelet/disk", "/var/etcd/member", "/var/other"}
    files = MemoryFiles({}, {"/var": 0o755, "/var/kubelet": 0o755, "/var/etcd": 0o755}, mounts=set(before))
    observers = Observers(files=files, services=FakeServices(), runtime=Pods())
    run = carried_out(plan(FILLING), interpreters_over(files=files, services=FakeServices()), observers)
    files.mounts |= {"/var/kubelet/pods/a", "/var/kubelet/disk/b"}
    actions = undone(run, observers)
    assert [each for each in actions if isinstance(each, Unmount)] == [
        Unmount(path="/var/kubelet", keeps=("/var/kubelet/disk",)),
        Unmount(path="/var/etcd", keeps=("/var/etcd/member",)),
    ]
    for each in actions:
        if isinstance(each, Unmount):
            files.unmount(each.path, keeps=each.keeps)
    assert files.mounts == before


def test_folders_are_emptied_and_unmounted_where_their_paths_lead_when_undo_is_planned() -> None:
    """A link that comes into the path until then is refused, instead of being followed."""
    files = MemoryFiles({}, {"/var": 0o755}, links={"/var/kubelet": "/disk/kubelet"})
    observers = Observers(files=files, services=FakeServices(), runtime=Pods())
    made = MakeFolder(path="/var/kubelet/data", mode=0o700)
    run = carried_out(plan(FILLING, made), interpreters_over(files=files, services=FakeServices()), observers)
    files.folders |= {"/var/kubelet": 0o755, "/var/etcd": 0o755}
    files.files |= {"/var/kubelet/x": (0o600, b""), "/var/kubelet/data/x": (0o600, b"")}
    actions = undone(run, observers)
    assert {each.path for each in actions if isinstance(each, Unmount)} == {"/disk/kubelet", "/var/etcd"}
    emptied = [each for each in actions if isinstance(each, EmptyFolder)]
    assert {each.path for each in emptied} == {"/disk/kubelet", "/disk/kubelet/data", "/var/etcd"}
    assert all(each.is_resolved for each in emptied)
