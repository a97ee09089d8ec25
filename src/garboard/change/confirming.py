"""What a node does with its part of a change that nobody has confirmed yet: wait, keep it, or take it back. Pure.

Nodes take their parts back one after the other, also if no API server answers and they know nothing of each other but
what time it is. So the moments at which one may begin are fixed: the node at place 2 of the revision begins two slots
after the deadline. Beginning is what takes a member of etcd away; a node that finds another member down waits for that
one, and what missed its own moment begins between those of the others, at moments that it shares with no other member.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from garboard.change.outcomes import ChangeBlocked
from garboard.change.plan import ChangePlan
from garboard.errors import BadDocument
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.phases.node.records import RECORD
from garboard.values import dataclass

SLOT_S = 120.0
NODE_BUDGET_S = 300
LOOK_EVERY_S = 15.0
_LOOK_AT_MEMBERS_EVERY_S = 2.0
# What begins within the first quarter of a slot has taken its member away before the third quarter begins, in which
# those begin that are late.
_OPEN, _LATE = 0.25, 0.5

# ConfigMaps that pods of every node read when they start.
_OF_ADDONS = ("kube-proxy", "coredns")

# What became of the run of this node: it has not begun, a process works on it, none does and it is not whole, it waits
# to be confirmed, it is being taken back and no process works on that; or it is closed.
RunPhase: TypeAlias = Literal["none", "running", "cut-short", "unconfirmed", "half-back", "kept", "reverted"]
# What the cluster says: nobody has confirmed it yet, somebody has, or no API server answers.
Confirmation: TypeAlias = Literal["awaited", "given", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmTimes:
    """How long a change waits to be confirmed, how long its rollout may take (0: by its nodes), and the slots."""

    confirm_s: int = 0
    rollout_s: int = 0
    slot_s: int = int(SLOT_S)


class Arming(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a node writes down before the first write of a change that has to be confirmed, as a file of its own.

    It is all that taking the change back needs to know of the cluster: nobody may be there to ask.
    """

    revision: int
    digest: str
    node: str
    nodes: list[str]  # those that the revision touches, in its order
    until: datetime  # taken back then if no deadline was seen by that time; the same for all nodes
    members: dict[str, str]  # of etcd: the client URL of each, by the names of nodes
    certificates_dir: str = DEFAULT_CERTIFICATES_DIR  # where clients of etcd find theirs
    after: int = 0  # the number of the last run of the node before
    restarts_members: bool = False  # the change restarts members of etcd, and so does taking it back
    slot_seconds: float = SLOT_S

    @property
    def place(self) -> int:
        """How many nodes begin before this one."""
        return self.nodes.index(self.node) if self.node in self.nodes else len(self.nodes)

    @property
    def touched_members(self) -> tuple[str, ...]:
        """The nodes whose members of etcd go away while they take the change back, in order."""
        return tuple(each for each in self.nodes if each in self.members) if self.restarts_members else ()

    @property
    def other_members(self) -> dict[str, str]:
        """The members that have to be up before that of this node goes away; none if it stays."""
        is_needed = self.node in self.touched_members
        return {node: url for node, url in self.members.items() if node != self.node} if is_needed else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPart:
    """What a node has found out about its part and about the cluster, as far as anybody answered."""

    run: RunPhase
    confirmation: Confirmation = "unknown"
    deadline: datetime | None = None  # that of the revision, once all nodes are green
    down_for_s: Mapping[str, float] = field(default_factory=dict)  # other nodes whose members of etcd do not answer
    own_down_for_s: float = 0.0  # how long the member of this node has not answered; 0: it does


class MoveKind(StrEnum):
    """What to do next; `disarm` removes the timer and its files."""

    WAIT = "wait"
    KEEP = "keep"
    REVERT = "revert"
    DISARM = "disarm"


@dataclass(frozen=True, slots=True)
class Move:
    """What a node does next, and why; it looks again after `wait_s`."""

    kind: MoveKind
    why: str
    wait_s: float = 0.0


def next_move(arming: Arming, seen: SeenPart, now: datetime) -> Move:
    """Return what a node does next. A confirmation counts as long as nothing has been taken back."""
    match seen.run:
        case "kept" | "reverted" if seen.confirmation == "unknown":
            return _wait(LOOK_EVERY_S, f"the change was {seen.run}, and no API server answers to be told")
        case "kept" | "reverted":
            return Move(MoveKind.DISARM, f"the change was {seen.run}")
        case "running":
            return _wait(LOOK_EVERY_S, "a command is at work on this node")
        case "none":
            if now >= arming.until:
                return Move(MoveKind.DISARM, "the change has not begun on this node")
            return _wait(_seconds(arming.until - now), "the change has not begun on this node")
        case "unconfirmed" if seen.confirmation == "given":
            return Move(MoveKind.KEEP, "the change was confirmed")
        case "unconfirmed" | "cut-short" | "half-back":
            return _when_due(arming, seen, now)


def due_at(arming: Arming, deadline: datetime | None, now: datetime) -> datetime:
    """Return when a node begins at the earliest to take its part back."""
    return _anchor(arming, deadline, now) + timedelta(seconds=arming.place * arming.slot_seconds)


def _when_due(arming: Arming, seen: SeenPart, now: datetime) -> Move:
    waits_s = _until_turn_s(arming, seen, now)
    if waits_s > 0:
        return _wait(waits_s, "nobody has confirmed the change yet")
    awaited = [each for each, down_s in seen.down_for_s.items() if down_s < arming.slot_seconds]
    if awaited and not _has_nothing_to_lose(arming, seen):
        named = ", ".join(awaited)
        return Move(MoveKind.WAIT, f"the member of etcd on {named} does not answer", _LOOK_AT_MEMBERS_EVERY_S)
    return Move(MoveKind.REVERT, "nobody confirmed the change in time")


def _has_nothing_to_lose(arming: Arming, seen: SeenPart) -> bool:
    """Whether the member of this node stays, or is away anyway and not just about to come."""
    touched = arming.touched_members
    is_alone = len(touched) < 2 or arming.node not in touched
    return is_alone or seen.own_down_for_s >= _OPEN * arming.slot_seconds


def _until_turn_s(arming: Arming, seen: SeenPart, now: datetime) -> float:
    """Return how long it takes until this node may begin; 0 if it may begin now."""
    slot_s = arming.slot_seconds
    since_s = (now - _anchor(arming, seen.deadline, now)).total_seconds()
    place, touched = arming.place, arming.touched_members
    on_time_s = since_s - place * slot_s
    if on_time_s < 0:
        return -on_time_s
    if _has_nothing_to_lose(arming, seen) or on_time_s < _OPEN * slot_s:
        return 0.0
    # Late: between the moments of those that are on time, in every slot another member.
    number, rank = max(int(since_s // slot_s), place + 1), touched.index(arming.node)
    while number % len(touched) != (rank + 1) % len(touched) or since_s >= (number + _LATE + _OPEN) * slot_s:
        number += 1
    return max(0.0, (number + _LATE) * slot_s - since_s)


def _anchor(arming: Arming, deadline: datetime | None, now: datetime) -> datetime:
    """Return the moment from which slots are counted.

    A node that was away while the deadline was set knows only that of its arming; when that has come, all count
    from there, so that no two grids of slots overlap.
    """
    is_near = now >= arming.until - timedelta(seconds=_LATE * arming.slot_seconds)
    return arming.until if deadline is None or is_near else min(deadline, arming.until)


def _wait(seconds: float, why: str) -> Move:
    return Move(MoveKind.WAIT, why, min(LOOK_EVERY_S, seconds))


def _seconds(span: timedelta) -> float:
    return span.total_seconds()


def revision_deadline(arming: Arming, green_at: datetime, confirm_within_s: float) -> datetime:
    """Return until when a revision can be confirmed whose last node was green at a moment."""
    return min(green_at + timedelta(seconds=confirm_within_s), arming.until)


def armed_until(now: datetime, nodes: int, within: ConfirmTimes) -> datetime:
    """Return until when the nodes of a change that begins now are armed, whatever they hear of a deadline."""
    rollout_s = within.rollout_s or nodes * (NODE_BUDGET_S + within.slot_s)
    return now + timedelta(seconds=rollout_s + within.confirm_s)


def refuse_unconfirmable(plan: ChangePlan) -> None:
    """Refuse to have a change confirmed that no node could take back by itself."""
    kept = (*_OF_ADDONS, RECORD)  # of patches a node takes back what they did, and not that they are recorded
    objects = [each.name for each in plan.objects if each.kind in ("DaemonSet", "Deployment") or each.name in kept]
    pods = [step.title for each in plan.nodes for step in each.steps if step.phase == "kube-proxy"]
    if found := [*objects, *pods]:
        raise ChangeBlocked(
            f"this cannot be taken back by the nodes themselves: {', '.join(dict.fromkeys(found))}",
            hint="nothing was changed; leave --confirm-within out, or change the rest first",
        )


def arming_text(arming: Arming) -> bytes:
    return msgspec.json.format(msgspec.json.encode(arming)) + b"\n"


def read_arming(text: bytes, *, source: str) -> Arming:
    """Return what a node has written down; a file that says something else is refused."""
    try:
        return msgspec.json.decode(text, type=Arming)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadDocument(
            f"{source}: {error}",
            hint="garboard status shows the run, garboard undo takes it back, garboard runs confirm keeps it",
            error_class="bad-arming",
        ) from error
