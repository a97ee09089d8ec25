"""What a soak calls wrong: bytes, connections without an excuse, and what a server did not give back."""

from dataclasses import replace

import pytest

from tools.harness.soak.content import Header, Kind, address_of, piece
from tools.harness.soak.findings import (
    FEW_DESCRIPTORS,
    MEMORY_KEPT,
    SLACK_S,
    Absences,
    Broken,
    ClientCounts,
    ServerUse,
    SoakResult,
)

EMPTY = ServerUse(descriptors=17, resident_bytes=30_000_000, processes=1)
WITH_AGENTS = ServerUse(descriptors=117, resident_bytes=40_000_000, processes=1)


def absences(*spans: tuple[float, float]) -> Absences:
    """Of agent 1; agent 2 never was away."""
    made = Absences()
    for left, came in spans:
        made.left(1, left)
        made.came(1, came)
    made.came(2, 0.0)
    return made


def result(*broken: Broken, **changes: object) -> SoakResult:
    clean = SoakResult(
        seed=1, minutes=1, agents=2, agent_processes=1, workers=1, kills={"agents": 1},
        absences=absences((100.0, 110.0)),
        clients=ClientCounts(opened=10, whole=9, most=5, bytes_checked=1000, round_trips_ms=[1.0, 2.0],
                             broken=list(broken)),
        empty=(EMPTY, EMPTY), with_agents=(WITH_AGENTS, WITH_AGENTS), most_bytes=50_000_000, idle_cpu=0.01,
        busy_cpu=0.2, left={"http_connections": 0.0}, load="1.0",
    )  # fmt: skip
    return replace(clean, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("broken", "is_excused"),
    [
        pytest.param(Broken(1, 50, 101, "cut"), True, id="its agent was away"),
        pytest.param(Broken(1, 50, 110 + SLACK_S, "refused: 500"), True, id="its agent had just come back"),
        pytest.param(Broken(1, 50, 90, "cut"), False, id="its agent was there"),
        pytest.param(Broken(1, 50, 120, "refused: 500"), False, id="its agent was back"),
        pytest.param(Broken(2, 50, 101, "cut"), False, id="another agent was away"),
        pytest.param(Broken(1, 50, 101, "wrong: bytes 1 to 2"), False, id="wrong bytes have no excuse"),
        pytest.param(Broken(1, 50, 90, "stuck: it did not end in time"), False, id="it never ended"),
    ],
)
def test_broken_connection_is_excused_only_by_the_absence_of_its_own_agent(broken: Broken, is_excused: bool) -> None:
    assert (result(broken).problems() == []) == is_excused


def test_agent_that_has_not_come_back_excuses_what_broke_since() -> None:
    made = absences()
    made.left(1, 100.0)
    assert made.excuse(Broken(1, 50, 500, "refused: 500"))
    assert not made.excuse(Broken(1, 50, 90, "cut"))
    assert made.count == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"left": {"queued_bytes": 5.0}}, "queued_bytes is 5", id="a metric"),
        pytest.param(
            {"with_agents": (WITH_AGENTS, replace(WITH_AGENTS, descriptors=118 + FEW_DESCRIPTORS))},
            "with all agents connected",
            id="descriptors of connections",
        ),
        pytest.param(
            {"empty": (EMPTY, replace(EMPTY, descriptors=18 + FEW_DESCRIPTORS))},
            "with nobody connected, it had 17 descriptors",
            id="descriptors of links",
        ),
        pytest.param(
            {"empty": (EMPTY, replace(EMPTY, resident_bytes=EMPTY.resident_bytes + MEMORY_KEPT + 5_000_001))},
            "with nobody connected, the server had 29 MiB",
            id="memory",
        ),
        pytest.param({"clients": ClientCounts(opened=5)}, "no connection ended as it should", id="nothing happened"),
    ],
)
def test_what_the_server_keeps_is_a_problem(changes: dict[str, object], words: str) -> None:
    assert result().problems() == []
    [problem] = result(**changes).problems()
    assert words in problem


def test_table_counts_what_broke_by_reason() -> None:
    table = result(Broken(1, 50, 101, "cut"), Broken(1, 50, 102, "refused: 500"), Broken(2, 50, 101, "cut")).table()
    assert "| cut / refused / neither by a kill | 2 / 1 / 1 |" in table
    assert "| wrong bytes | 0 connections |" in table


def test_counts_of_clients_survive_the_way_between_processes() -> None:
    counts = ClientCounts(1, 2, 3, 4, [0.5], [Broken(1, 2.0, 3.0, "cut")])
    assert ClientCounts.from_json(counts.to_json()) == counts


def test_content_differs_by_offset_and_place_and_can_be_asked_for_in_any_pieces() -> None:
    whole = piece(5, 0, 3 << 20)
    assert whole == b"".join(piece(5, at, 100_000) for at in range(0, 3 << 20, 100_000))[: 3 << 20]
    assert piece(6, 0, 100) == whole[1:101] != whole[:100]
    header = Header(Kind.UPLOAD, 5, 100)
    assert Header.decode(header.encode()) == header


def test_every_agent_has_an_address_of_its_own_on_loopback() -> None:
    addresses = {address_of(number) for number in range(1000)}
    assert len(addresses) == 1000
    assert all(address.startswith("127.") and not address.endswith((".0", ".255")) for address in addresses)
