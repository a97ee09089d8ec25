"""Whether an agent dials once more, and how soon."""

import pytest

from garboard.tunnel.agent.seeking import Address, Met, Need, Outcome, Pace, need_of
from garboard.tunnel.wire.packets import ServersResponse

A, B = ("10.0.0.1", 8091), ("10.0.0.2", 8091)


def told(server: str, *present: int, workers: int = 2, count: int = 2) -> ServersResponse:
    return ServersResponse(server, count, workers, tuple(f"{server}-{each}" for each in present))


STOCK_A, STOCK_B = Met(A), Met(B)


@pytest.mark.parametrize(
    ("met", "wanted", "addresses", "reached", "need"),
    [
        pytest.param({}, 1, [A], [], Need.DIAL, id="nobody was met"),
        pytest.param({"s": STOCK_A}, 1, [A], [A], Need.NOTHING, id="everybody is there"),
        pytest.param({"s": STOCK_A}, 2, [A], [A], Need.DIAL, id="another one behind the only address"),
        pytest.param({"s": STOCK_B}, 2, [A, B], [B], Need.DIAL, id="an address that led to nobody"),
        pytest.param({"s": STOCK_A}, 2, [A, B], [A], Need.ANSWER, id="the other address has the one that is missing"),
        pytest.param({"s": STOCK_A}, 4, [A, B], [A], Need.DIAL, id="one address cannot have all that are missing"),
        pytest.param({"s": STOCK_A, "t": STOCK_B}, 1, [A, B], [A, B], Need.NOTHING, id="more than were announced"),
        pytest.param({"s-0": Met(A, told("s", 0))}, 2, [A], [A], Need.ANSWER, id="a worker that is away"),
        pytest.param({"s-0": Met(A, told("s", 0, 1))}, 2, [A], [A], Need.DIAL, id="a worker that is there"),
        pytest.param({"s-0": Met(A, told("s", 0))}, 4, [A], [A], Need.DIAL, id="a server that nobody told of"),
        pytest.param({"s-0": Met(A, told("s", 0))}, 4, [A, B], [A], Need.ANSWER, id="a server at another address"),
        pytest.param({"s-0": Met(B, told("s", 0, 1)), "t": STOCK_A}, 3, [A, B], [A, B], Need.ANSWER,
                     id="a worker that is there, but at another address"),
    ],
)  # fmt: skip
def test_address_is_dialled_while_it_may_lead_to_a_server_that_is_missing(
    met: dict[str, Met], wanted: int, addresses: list[Address], reached: list[Address], need: Need
) -> None:
    assert need_of(A, met, wanted=wanted, addresses=addresses, reached=reached) is need


def test_dials_come_in_haste_until_three_times_the_count_were_duplicates_in_a_row() -> None:
    pace = Pace(1.0, 10.0)
    assert [pace.after(Outcome.DUPLICATE, Need.DIAL, 2) for _ in range(5)] == [0.1] * 5
    assert pace.after(Outcome.NEW, Need.DIAL, 2) == 0.1
    assert [pace.after(Outcome.DUPLICATE, Need.DIAL, 2) for _ in range(5)] == [0.1] * 5
    waits = [pace.after(Outcome.DUPLICATE, Need.DIAL, 2) for _ in range(8)]
    assert waits[:3] == [1.0, 1.5, 2.25]
    assert waits[-1] == 10.0
    pace.reset()
    assert pace.after(Outcome.DUPLICATE, Need.DIAL, 2) == 0.1


def test_failures_are_retried_with_growing_pauses() -> None:
    pace = Pace(1.0, 2.0)
    assert [pace.after(Outcome.FAILED, Need.DIAL, 3) for _ in range(4)] == [1.0, 1.5, 2.0, 2.0]
    assert pace.after(Outcome.NEW, Need.NOTHING, 3) == 1.0
    assert pace.after(Outcome.FAILED, Need.DIAL, 3) == 1.0
