"""`change confirm`: the confirmation is written into the record, and every node says when it has disarmed."""

from collections.abc import Callable
from datetime import UTC, datetime

from garboard.change.outcomes import ChangeRolledBack
from garboard.errors import ClusterUnreachable, GarboardError, NotReady
from garboard.node.change_cluster import ChangeCluster, StoredTarget
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import ChangeTarget, moment
from garboard.retry import CLOCK
from garboard.values import dataclass

_LOOK_EVERY_S = 1.0
_CONFLICTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmResult:
    """Which revision was confirmed, and the nodes that have not disarmed, each with what it says instead."""

    revision: int
    is_confirmed: bool
    armed: dict[str, str]

    @property
    def is_settled(self) -> bool:
        return self.is_confirmed and not self.armed


def confirm_change(
    cluster: ChangeCluster,
    report: Callable[[str], None],
    *,
    wait_s: float,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], None] = CLOCK.sleep,
) -> ConfirmResult:
    """Confirm the change that waits for it, and wait until all of its nodes have disarmed."""
    target = _require(cluster.target()).target
    if not target.confirmed:
        if missing := _not_done(cluster, target):
            return ConfirmResult(revision=target.revision, is_confirmed=False, armed=missing)
        target = _write(cluster, now)
        report(f"[confirm] revision {target.revision} is confirmed; waiting until its nodes have disarmed")
    left_s = wait_s
    while True:
        armed = _armed(cluster, target)
        if left_s <= 0 or not armed or set(armed.values()) <= {"reverted"}:
            return ConfirmResult(revision=target.revision, is_confirmed=True, armed=armed)
        left_s -= _LOOK_EVERY_S
        sleep(_LOOK_EVERY_S)


def _require(stored: StoredTarget | None) -> StoredTarget:
    """Refuse a change that nobody can confirm any more, or that needs no confirmation."""
    target = stored.target if stored else None
    if stored is None or target is None or not target.confirm_within_seconds:
        raise NotReady(
            "no change waits to be confirmed",
            hint="garboard change status shows the last one",
            error_class="nothing-to-confirm",
        )
    if target.state in ("reverting", "reverted"):
        raise ChangeRolledBack(
            f"revision {target.revision} is {target.state}: nobody had confirmed it until {until_of(target)}",
            hint="garboard change status shows its nodes; the change can be made again when all have gone back",
        )
    return stored


def _not_done(cluster: ChangeCluster, target: ChangeTarget) -> dict[str, str]:
    record = ChangeRecord(target=target, reports=cluster.reports(target))
    return {each.node: each.state for each in record.left}


def _write(cluster: ChangeCluster, now: Callable[[], datetime]) -> ChangeTarget:
    for _ in range(_CONFLICTS):
        stored = _require(cluster.target())
        moved = stored.target.moved("committed", now(), confirmed=True)
        if stored.target.confirmed or cluster.replace(stored, moved):
            return moved
    raise GarboardError("the record of the change is being written by others", hint="give the command again")


def _armed(cluster: ChangeCluster, target: ChangeTarget) -> dict[str, str]:
    """Return the nodes that have not said that they have disarmed; all of them while nobody answers."""
    try:
        reports = cluster.reports(target)
    except ClusterUnreachable as error:
        return dict.fromkeys(target.nodes, error.message)
    said = {each: reports[each].result if each in reports else "pending" for each in target.nodes}
    return {node: result for node, result in said.items() if result != "confirmed"}


def until_of(target: ChangeTarget) -> str:
    """Return until when a change can be confirmed: the deadline, or that of its arming before all nodes are done."""
    return target.confirm_by or target.armed_until or moment(datetime.fromtimestamp(0, UTC))
