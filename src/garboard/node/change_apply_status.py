"""How far a change is: what is left on which node, waiting for that, and saying that all is done."""

from collections.abc import Iterator
from datetime import datetime

from garboard.change.history import NO_REVISIONS
from garboard.change.outcomes import ChangeRolledBack
from garboard.documents import Json
from garboard.engine import PutObject
from garboard.node.change_record import read_record
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.reporter import Reporter
from garboard.node.tokens import find_kubeconfig
from garboard.phases.change_record import ChangeRecord
from garboard.retry import CLOCK, Clock, Pauses, wait_until

_PAUSES = Pauses.every(3.0)
_NODES_WITHIN_S = 24 * 3600.0


def shown_left(record: ChangeRecord) -> str:
    """Return the commands that are left, in the order of the nodes."""
    left = record.left
    if not left:
        return "nothing is left to do\n"
    width = max(len(each.node) for each in left)
    lines = "".join(f"  on {each.node:{width}}  {each.command}\n" for each in left)
    done = len(record.states) - len(left)
    return (
        f"\n{done} of {len(record.states)} nodes are done. The others follow in this order:\n\n{lines}\n"
        "garboard change status shows how far they are.\n"
    )


def status_document(record: ChangeRecord) -> dict[str, Json]:
    """Return how far the last change is, as plain data."""
    target = record.target
    if target is None:
        return {"revision": None, "state": "none", "nodes": []}
    revision = record.revisions.get(target.revision)
    return {
        "revision": target.revision,
        "digest": target.digest,
        "state": _state(record),
        "parent": target.parent,
        "author": target.author,
        "message": revision.message if revision else "",
        "request": revision.request if revision else "",
        "canary": target.canary,
        "startedAt": target.started_at,
        "changedAt": target.changed_at,
        "confirmBy": target.confirm_by,
        "confirmed": target.confirmed,
        "unconfirmed": target.is_unconfirmed,
        "nodes": [{"node": each.node, "state": each.state, "command": each.command} for each in record.states],
    }


def _state(record: ChangeRecord) -> str:
    """Return the state of the target; what all nodes have is committed, whether anybody has written that or not."""
    assert record.target is not None
    is_done = record.target.state == "rolling" and record.is_rolled_out
    return "committed" if is_done else record.target.state


def status_text(record: ChangeRecord) -> str:
    target = record.target
    if target is None:
        return NO_REVISIONS
    revision = record.revisions.get(target.revision)
    why = f": {revision.message}" if revision and revision.message else ""
    lines = [f"revision {target.revision} by {target.author or 'somebody'}{why}", f"  {_state(record)}"]
    lines[-1] += f", begun {target.started_at}" if target.started_at else ""
    if target.is_unconfirmed:
        until = f" until {target.confirm_by}" if target.confirm_by else ""
        lines.append(f"  waits to be confirmed{until}: garboard change confirm")
    return "\n".join([*lines, *_node_lines(record)]) + "\n"


def _node_lines(record: ChangeRecord) -> Iterator[str]:
    width = max((len(each.node) for each in record.states), default=0)
    for each in record.states:
        command = f"  {each.command}" if each.command else ""
        yield f"  {each.node:{width}}  {each.state:7}{command}".rstrip()


def wait_for_nodes(
    cluster: NodeCluster, reporter: Reporter, *, timeout_s: float = _NODES_WITHIN_S, clock: Clock = CLOCK
) -> None:
    """Wait until every node has done its part; one that has failed ends it."""
    told = ""

    def problem() -> str | None:
        nonlocal told
        record = read_record(cluster)
        failed = [each.node for each in record.left if each.state == "failed"]
        if failed:
            raise ChangeRolledBack(
                f"{', '.join(failed)} has failed, and was taken back; the others are as they were",
                hint="garboard change status; garboard change rollback REV takes the nodes that are done back, too",
            )
        left = ", ".join(each.node for each in record.left)
        if left and left != told:
            reporter.report(f"[change] waiting for {left}")
            told = left
        return f"{left} have not followed" if left else None

    found = wait_until(problem, timeout_s=timeout_s, pauses=_PAUSES, clock=clock)
    if found is not None:
        raise ChangeRolledBack(found, hint="garboard change status has the commands")


def settle(cluster: NodeCluster, now: datetime) -> bool:
    """Say in the target that every node has it, if that is so and nobody has said it yet."""
    record = read_record(cluster)
    target = record.target
    if target is None or target.state != "rolling" or record.left:
        return False
    moved = target.moved("committed", now)
    cluster.put(PutObject.of(moved.as_object().content, resource_version=record.target_version))
    return True


def read_record_of(kubeconfig: str | None) -> ChangeRecord:
    """Return what the cluster of a kubeconfig, or of the first that is there, has recorded."""
    with find_kubeconfig(kubeconfig).connect() as client:
        return read_record(client)
