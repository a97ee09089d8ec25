import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.change.confirming import (
    SLOT_S,
    Arming,
    Confirmation,
    MoveKind,
    RunPhase,
    SeenPart,
    arming_text,
    due_at,
    next_move,
    read_arming,
    revision_deadline,
)
from garboard.errors import BadDocument

NOW = datetime(2031, 5, 4, 3, 0, tzinfo=UTC)
NODES = ["cp1", "cp2", "cp3", "w1"]
MEMBERS = {each: f"https://{each}:2379" for each in NODES[:3]}


def armed(node: str = "cp1", *, etcd: bool = True, until_s: float = 3600.0) -> Arming:
    return Arming(
        revision=3,
        digest="d",
        node=node,
        nodes=NODES,
        until=NOW + timedelta(seconds=until_s),
        members=MEMBERS,
        restarts_members=etcd,
    )


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("run", "confirmation", "after_s", "expected"),
    [
        pytest.param("unconfirmed", "awaited", -1.0, "wait", id="there is time"),
        pytest.param("unconfirmed", "given", -1.0, "keep", id="confirmed"),
        pytest.param("unconfirmed", "given", 500.0, "keep", id="a late confirmation counts until something is undone"),
        pytest.param("unconfirmed", "awaited", 0.0, "revert", id="nobody confirmed"),
        pytest.param("unconfirmed", "unknown", 0.0, "revert", id="nobody can be asked"),
        pytest.param("cut-short", "unknown", -1.0, "wait", id="killed: somebody may resume it"),
        pytest.param("cut-short", "unknown", 0.0, "revert", id="killed, and nobody resumed it"),
        pytest.param("cut-short", "given", 0.0, "revert", id="half a change is never kept"),
        pytest.param("half-back", "given", 0.0, "revert", id="half taken back is never kept"),
        pytest.param("running", "given", 500.0, "wait", id="a command is at work"),
        pytest.param("none", "unknown", -1.0, "wait", id="armed, and about to begin"),
        pytest.param("none", "unknown", 3600.0, "disarm", id="it never began"),
        pytest.param("kept", "given", 0.0, "disarm", id="kept"),
        pytest.param("kept", "unknown", 0.0, "wait", id="kept, and nobody can be told"),
        pytest.param("reverted", "awaited", 0.0, "disarm", id="taken back"),
        pytest.param("reverted", "unknown", 9999.0, "wait", id="taken back, and nobody can be told"),
    ],
)
def test_first_node_decides(run: RunPhase, confirmation: Confirmation, after_s: float, expected: str) -> None:
    seen = SeenPart(run=run, confirmation=confirmation, deadline=NOW)
    assert next_move(armed(), seen, at(after_s)).kind == expected


@pytest.mark.parametrize(
    ("node", "etcd", "after_s", "waits"),
    [
        pytest.param("cp2", True, 119.0, True, id="not yet"),
        pytest.param("cp2", True, 120.0, False, id="its slot"),
        pytest.param("cp2", True, 149.0, False, id="the end of the moments that are on time"),
        pytest.param("cp2", True, 151.0, True, id="late: another one may begin"),
        pytest.param("cp2", True, 300.0, False, id="late: between those that are on time"),
        pytest.param("cp1", True, 300.0, True, id="late: in every slot another one"),
        pytest.param("cp2", False, 151.0, False, id="late, and no member goes away"),
        pytest.param("w1", True, 359.0, True, id="a worker comes in its order"),
        pytest.param("w1", True, 1000.0, False, id="a worker that is late takes no member away"),
    ],
)
def test_each_has_its_moments(node: str, etcd: bool, after_s: float, waits: bool) -> None:
    seen = SeenPart(run="unconfirmed", deadline=NOW)
    assert (next_move(armed(node, etcd=etcd), seen, at(after_s)).kind == "wait") is waits


@pytest.mark.parametrize(
    ("down_for_s", "own_down_for_s", "expected"),
    [
        pytest.param({}, 0.0, "revert", id="all are up"),
        pytest.param({"cp2": 1.0}, 0.0, "wait", id="another member is down"),
        pytest.param({"cp2": 119.0, "cp3": 500.0}, 0.0, "wait", id="one of them may come back"),
        pytest.param({"cp2": 120.0}, 0.0, "revert", id="it has waited for one slot"),
        pytest.param({"cp2": 1.0}, 5.0, "wait", id="its own is just starting"),
        pytest.param({"cp2": 1.0}, 30.0, "revert", id="its own is down: nothing is taken away"),
    ],
)
def test_member_that_is_down_is_waited_for(down_for_s: dict[str, float], own_down_for_s: float, expected: str) -> None:
    seen = SeenPart(run="unconfirmed", deadline=NOW, down_for_s=down_for_s, own_down_for_s=own_down_for_s)
    assert next_move(armed(), seen, at(1.0)).kind == expected


def test_deadline_of_the_revision_counts_only_until_that_of_the_arming() -> None:
    own = armed("cp2", until_s=600.0)
    assert due_at(own, None, NOW) == at(600.0 + SLOT_S)
    assert due_at(own, NOW, NOW) == at(SLOT_S)
    assert due_at(own, at(9999.0), NOW) == at(600.0 + SLOT_S)
    assert due_at(own, NOW, at(600.0)) == at(600.0 + SLOT_S), "those who were away count from there"
    assert revision_deadline(own, NOW, 300.0) == at(300.0)
    assert revision_deadline(own, NOW, 900.0) == at(600.0), "nodes that did not hear of it go back then"


@given(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), st.booleans(), st.floats(0, 1e6))
def test_arming_outlives_being_written(nodes: list[str], etcd: bool, after_s: float) -> None:
    arming = Arming(
        revision=1, digest="x", node=nodes[-1], nodes=nodes, until=at(after_s), members={}, restarts_members=etcd
    )
    assert read_arming(arming_text(arming), source="f") == arming


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"revision": 1}', b"\xff"])
def test_arming_that_says_something_else_is_refused(text: bytes) -> None:
    with pytest.raises(BadDocument, match=r"armed\.json"):
        read_arming(text, source="armed.json")


# A cluster whose API server answers nobody, so that there is no Lease: nodes know the time, and which members answer.
# Clocks are off by up to 5 s. A revert needs a few seconds until the member has gone, and up to a minute in all.

_CLOCK_OFF_S, _GOES_AFTER_S, _BACK_AFTER_S, _BOOTS_S = 5, (2, 15), (20, 60), (10, 80)
_STARTS_S = (1, 20)


@dataclass
class Node:
    """A control plane: whether its machine and its member are up, and how far taking back has come."""

    arming: Arming
    offset_s: float
    deadline: datetime | None
    phase: RunPhase = "unconfirmed"
    boots_at_s: int = 0  # the machine is off until then
    member_up_at_s: int = 0
    goes_at_s: int | None = None  # while it takes back: its member goes away then, and is back at `back_at_s`
    back_at_s: int | None = None
    is_gone: bool = False  # by taking back
    looks_at_s: int = 0
    first_seen_down: dict[str, int] = field(default_factory=dict)
    went_over_dead: bool = False
    decided_at_s: int = 0
    killed_at_s: int = -(10**9)

    def is_on(self, now_s: int) -> bool:
        return now_s >= self.boots_at_s

    def has_member(self, now_s: int) -> bool:
        return self.is_on(now_s) and now_s >= self.member_up_at_s and not self.is_gone


class Cluster:
    """Nodes that decide by `next_move` alone, second by second; it remembers where quorum was lost by taking back."""

    def __init__(self, count: int, chance: random.Random, *, knowing: float) -> None:
        self.chance, self.losses = chance, list[str]()
        names = [f"cp{number}" for number in range(1, count + 1)]
        members = {each: f"https://{each}:2379" for each in names}
        until = at(count * SLOT_S * chance.uniform(1, 3))
        self.nodes = {
            name: Node(
                Arming(
                    revision=1, digest="d", node=name, nodes=names, until=until, members=members, restarts_members=True
                ),
                offset_s=chance.uniform(-_CLOCK_OFF_S, _CLOCK_OFF_S),
                deadline=NOW if chance.random() < knowing else None,
            )
            for name in names
        }  # fmt: skip

    def up(self, now_s: int) -> int:
        return sum(each.has_member(now_s) for each in self.nodes.values())

    def has_quorum(self, now_s: int) -> bool:
        return self.up(now_s) > len(self.nodes) // 2

    def kill(self, name: str, now_s: int, off_s: int) -> None:
        node = self.nodes[name]
        node.killed_at_s, node.boots_at_s = now_s, now_s + off_s
        node.member_up_at_s = node.boots_at_s + self.chance.randint(*_STARTS_S)
        node.looks_at_s = node.boots_at_s + 1
        node.first_seen_down = {}
        if node.goes_at_s is not None:  # its member stays away if its manifest had gone, until it is put back
            node.phase, node.goes_at_s, node.back_at_s = "half-back", None, None

    def tick(self, now_s: int) -> None:
        for name, node in self.nodes.items():
            if not node.is_on(now_s):
                continue
            if node.goes_at_s is not None:
                self._take_back(node, now_s)
            elif now_s >= node.looks_at_s and node.phase != "reverted":
                self._decide(name, node, now_s)

    def _take_back(self, node: Node, now_s: int) -> None:
        assert node.goes_at_s is not None
        assert node.back_at_s is not None
        if now_s >= node.goes_at_s and not node.is_gone:
            had = self.has_quorum(now_s)
            node.is_gone = True
            was_killed = any(each.killed_at_s >= node.decided_at_s for each in self.nodes.values())  # nobody can know
            if had and not self.has_quorum(now_s) and not was_killed and not node.went_over_dead:
                self.losses.append(f"{node.arming.node} at {now_s} s")
        if now_s >= node.back_at_s:
            node.phase, node.goes_at_s, node.is_gone = "reverted", None, False

    def _decide(self, name: str, node: Node, now_s: int) -> None:
        down = {each for each, other in self.nodes.items() if not other.has_member(now_s)}
        node.first_seen_down = {each: node.first_seen_down.get(each, now_s) for each in down}
        down_for_s = {each: float(now_s - since) for each, since in node.first_seen_down.items()}
        own_down_for_s = down_for_s.pop(name, 0.0)
        seen = SeenPart(run=node.phase, deadline=node.deadline, down_for_s=down_for_s, own_down_for_s=own_down_for_s)
        move = next_move(node.arming, seen, at(now_s + node.offset_s))
        if move.kind == MoveKind.REVERT:
            node.decided_at_s = now_s
            node.went_over_dead = any(each >= SLOT_S for each in down_for_s.values())
            node.goes_at_s = now_s + self.chance.randint(*_GOES_AFTER_S)
            node.back_at_s = node.goes_at_s + self.chance.randint(*_BACK_AFTER_S)
        node.looks_at_s = now_s + max(1, round(move.wait_s))

    @property
    def is_settled(self) -> bool:
        return all(each.phase == "reverted" for each in self.nodes.values())


@pytest.mark.parametrize("count", [3, 5])
@given(chance=st.randoms(use_true_random=False), knowing=st.sampled_from([0.0, 0.7, 1.0]))
def test_nodes_alone_take_a_change_back_and_never_lose_quorum_by_that(
    count: int, chance: random.Random, knowing: float
) -> None:
    """One machine at a time is killed, and boots again; also in the middle of taking back."""
    cluster = Cluster(count, chance, knowing=knowing)
    kill_at_s = chance.randint(-60, 300)
    for now_s in range(-60, 6 * 3600):
        if now_s == kill_at_s:
            off_s = chance.randint(*_BOOTS_S)
            cluster.kill(chance.choice(sorted(cluster.nodes)), now_s, off_s)
            kill_at_s = now_s + off_s + _STARTS_S[1] + chance.randint(60, 600)
        cluster.tick(now_s)
        if cluster.is_settled:
            break
    assert cluster.is_settled
    assert cluster.losses == []


@given(chance=st.randoms(use_true_random=False), count=st.sampled_from([3, 5]))
def test_member_that_is_dead_for_good_holds_nobody_up(chance: random.Random, count: int) -> None:
    cluster = Cluster(count, chance, knowing=1.0)
    dead = chance.choice(sorted(cluster.nodes))
    cluster.kill(dead, -60, 10**9)
    for now_s in range(-60, 2 * 3600):
        cluster.tick(now_s)
    assert all(each.phase == "reverted" for name, each in cluster.nodes.items() if name != dead)


@given(chance=st.randoms(use_true_random=False), off_s=st.integers(60, 4000))
def test_nodes_that_all_boot_long_after_the_deadline_still_go_back_one_by_one(
    chance: random.Random, off_s: int
) -> None:
    cluster = Cluster(3, chance, knowing=0.5)
    for name in cluster.nodes:
        cluster.kill(name, -60, off_s + chance.randint(0, 60))
    for now_s in range(-60, off_s + 2 * 3600):
        cluster.tick(now_s)
        if cluster.is_settled:
            break
    assert cluster.is_settled
    assert cluster.losses == []
