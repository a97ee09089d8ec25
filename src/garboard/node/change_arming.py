"""A node that is armed: the files and the timer that take an unconfirmed change back, whatever becomes of garboard.

They are written by a small run of their own, before the run of the change begins, and go with another one when that
run is closed. So an undo of the change does not take its own timer away, and goes on after a kill.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from garboard.change.configuration import read_configuration
from garboard.change.confirming import Arming, RunPhase, arming_text, read_arming
from garboard.change.engine_plan import etcd_url, replaced_pods
from garboard.change.plan import NodeChange
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import MakeFolder, Plan, RemoveFile, Step, WriteFile
from garboard.errors import NotReady
from garboard.host.processes import find_program
from garboard.manifests.etcd import CLIENT_PORT
from garboard.manifests.timers import TimedCommand
from garboard.model.paths import ADMIN_CONF, DEFAULT_CERTIFICATES_DIR, KUBELET_CONF
from garboard.node.change_guard import ARMED
from garboard.node.runs import Run, Runs
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, carry_out
from garboard.phases.node.timers import plan_timer, plan_timer_removal
from garboard.phases.revision import ChangeTarget, NodeReport
from garboard.phases.static_pods import ETCD

FOLDER = posixpath.dirname(ARMED)
TIMER = "garboard-change-confirm"
ARM, DISARM = "change arm", "change disarm"
WATCH = ("change", "watch")
_PROGRAM = "garboard"
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_PHASE = "confirm"


def read_armed(node: LocalNode) -> Arming | None:
    """Return what this node is armed for; None if it is not."""
    data = node.machine.read(ARMED)
    return None if data is None else read_arming(data, source=ARMED)


def arm(
    node: LocalNode,
    target: ChangeTarget,
    node_name: str,
    members: Mapping[str, str],
    *,
    restarts_members: bool,
    certificates_dir: str = DEFAULT_CERTIFICATES_DIR,
) -> datetime | None:
    """Arm this node for a change, and return until when its run waits; None if nobody has to confirm the change.

    `members` are the client URLs of etcd by the names of nodes, and `restarts_members` says whether the change
    restarts any. The caller holds the node lock, and begins the run of the change afterwards.
    """
    if not target.confirm_within_seconds:
        return None
    arming = Arming(
        revision=target.revision,
        digest=target.digest,
        node=node_name,
        nodes=[*target.nodes],
        until=datetime.fromisoformat(target.armed_until),
        members={**members},
        certificates_dir=certificates_dir,
        after=node.runs.next_number() - 1,
        restarts_members=restarts_members,
        slot_seconds=target.revert_slot_seconds,
    )
    _carry_out(Plan(tuple(plan_arming(arming, own_program()))), node, node_name, ARM)
    return arming.until


@contextmanager
def armed(
    node: LocalNode, target: ChangeTarget, node_name: str, snapshot: ClusterSnapshot, parts: Iterable[NodeChange]
) -> Iterator[datetime | None]:
    """Arm this node around the run of a change, for as long as that waits; it is disarmed if the run does not begin.

    The caller holds the node lock.
    """
    pods = [pod for part in parts for pod in replaced_pods(part)]
    confirm_by = arm(
        node,
        target,
        node_name,
        {each.name: url for each in snapshot.control_planes if (url := etcd_url(each, int(CLIENT_PORT)))},
        restarts_members=any(pod.component == ETCD for pod in pods),
        certificates_dir=read_configuration(snapshot).cluster.certificates_dir,
    )
    try:
        yield confirm_by
    except BaseException:
        arming = read_armed(node)
        if arming is not None and run_of(node.runs, arming) is None:
            _carry_out(Plan(plan_disarming(arming, None, "the change has not begun")), node, node_name, DISARM)
        raise


def waits_to_be_confirmed(node: LocalNode) -> bool:
    """Whether this node is armed, and has done its part of the change."""
    arming = read_armed(node)
    return arming is not None and phase_of(node.runs, arming)[0] == "unconfirmed"


def plan_arming(arming: Arming, program: str) -> tuple[Step, ...]:
    """Plan the files and the timer of a change that has to be confirmed."""
    timed = TimedCommand(
        name=TIMER,
        summary=f"keep or take back revision {arming.revision} of this cluster",
        command=(program, *WATCH),
        at=arming.until,
        every_s=15,
    )
    steps = (
        Step(MakeFolder(path=FOLDER, mode=_FOLDER_MODE), "what has to be known when nobody can be asked"),
        Step(WriteFile(path=ARMED, content=arming_text(arming), mode=_FILE_MODE), "the node may be alone by then"),
        *plan_timer(timed, "the change is taken back unless somebody confirms it"),
    )
    return tuple(replace(step, phase=_PHASE, node=arming.node) for step in steps)


def plan_disarming(arming: Arming, report: NodeReport | None, why: str) -> tuple[Step, ...]:
    """Plan that nothing watches the change any more, and that this is said on the Node."""
    disable, *others = plan_timer_removal(TIMER, why)
    told = [Step(report.as_patch(arming.node), "garboard change confirm waits for it")] if report else []
    steps = (disable, *told, *others, Step(RemoveFile(path=ARMED), why))
    return tuple(replace(step, phase=_PHASE, node=arming.node) for step in steps)


def disarm(node: LocalNode, arming: Arming, report: NodeReport | None, why: str) -> None:
    """Remove the files and the timer, and say on the Node what became of the change."""
    with node.reserved(DISARM, is_whole=False):
        _carry_out(Plan(plan_disarming(arming, report, why)), node, arming.node, DISARM)


def settle_arming(node: LocalNode) -> None:
    """End a run that was arming or disarming this node when it was killed; the node lock must not be held."""
    if any(each.header.command in (ARM, DISARM) for each in node.runs.open()):
        Transactions(node.runs, node.reporter).resume(RunOptions(command="resume"))


def phase_of(runs: Runs, arming: Arming) -> tuple[RunPhase, str]:
    """Return what became of the run that a node was armed for, and its name."""
    found = run_of(runs, arming)
    name = found.header.run if found else ""
    if runs.lock_holder():
        return "running", name
    if found is None:
        return "none", ""
    if found.record.is_closed:
        return ("reverted" if found.record.state in ("reverted", "undone") else "kept"), name
    if any(each.header.undoes == name for each in runs.open()):
        return "half-back", name
    return ("unconfirmed" if found.record.is_unconfirmed else "cut-short"), name


def run_of(runs: Runs, arming: Arming) -> Run | None:
    """Return the run that began after a node was armed, and waits to be confirmed when it is done."""
    later = (each for each in runs.all() if each.header.number > arming.after and each.header.is_to_confirm)
    return next(later, None)


def own_kubeconfig(node: LocalNode) -> str:
    """Return the kubeconfig of this node: an administrator's where there is one, else that of its kubelet."""
    return ADMIN_CONF if node.machine.read(ADMIN_CONF) is not None else KUBELET_CONF


def own_program() -> str:
    """Return what a unit starts: garboard, by its absolute path."""
    found = find_program(_PROGRAM)
    if found is None:
        raise NotReady(
            f"there is no program {_PROGRAM} on the PATH, and a unit starts it by its path",
            hint="install garboard as /usr/bin/garboard or /usr/local/bin/garboard",
        )
    return str(found.absolute())


def _carry_out(plan: Plan, node: LocalNode, node_name: str, command: str) -> None:
    settings = RunSettings(kubeconfig=own_kubeconfig(node), node_name=node_name)
    carry_out(plan, node, settings, RunOptions(command=command, is_whole=False))
