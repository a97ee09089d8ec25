import pytest

from garboard.rpc.streams import TRANSITIONS, Stream, StreamState, Trigger
from garboard.rpc.violations import ErrorCode, StreamViolation

T = Trigger


def stream_after(*triggers: Trigger) -> Stream:
    stream = Stream(1, send_window=10, receive_window=10)
    for trigger in triggers:
        stream.apply(trigger)
    return stream


@pytest.mark.parametrize(
    ("triggers", "state"),
    [
        pytest.param((T.SEND_HEADERS, T.SEND_END), StreamState.HALF_CLOSED_LOCAL, id="client has said all"),
        pytest.param((T.RECEIVE_HEADERS, T.RECEIVE_END), StreamState.HALF_CLOSED_REMOTE, id="server has heard all"),
        pytest.param(
            (T.SEND_HEADERS, T.SEND_END, T.RECEIVE_HEADERS, T.RECEIVE_END), StreamState.CLOSED, id="whole call"
        ),
        pytest.param((T.SEND_HEADERS, T.RECEIVE_RESET), StreamState.CLOSED, id="reset by the peer"),
        pytest.param((T.SEND_HEADERS, T.RECEIVE_END, T.SEND_DATA), StreamState.HALF_CLOSED_REMOTE, id="still sending"),
    ],
)
def test_stream_reaches_the_state_of_the_rfc(triggers: tuple[Trigger, ...], state: StreamState) -> None:
    assert stream_after(*triggers).state is state


def test_data_after_the_peers_end_is_the_peers_mistake() -> None:
    stream = stream_after(T.RECEIVE_HEADERS, T.RECEIVE_END)
    with pytest.raises(StreamViolation) as caught:
        stream.apply(T.RECEIVE_DATA)
    assert caught.value.code is ErrorCode.STREAM_CLOSED


def test_sending_after_our_end_is_a_bug() -> None:
    with pytest.raises(RuntimeError):
        stream_after(T.SEND_HEADERS, T.SEND_END).apply(T.SEND_DATA)


def test_nothing_leaves_the_closed_state() -> None:
    assert [state for state, _ in TRANSITIONS if state is StreamState.CLOSED] == []


def test_every_reset_closes() -> None:
    resets = (T.SEND_RESET, T.RECEIVE_RESET)
    assert {after for (_, trigger), after in TRANSITIONS.items() if trigger in resets} == {StreamState.CLOSED}
