"""One endpoint connection as the end that dials it sees it: its states, and the one table of its changes."""

from enum import Enum, auto
from typing import Final


class State(Enum):
    __hash__ = object.__hash__  # a key of the table below: the hash of a name costs a call

    DIALLING = auto()
    OPEN = auto()
    DONE = auto()


class Trigger(Enum):
    __hash__ = object.__hash__

    DIALLED = auto()
    DIAL_FAILED = auto()
    DIAL_CANCELLED = auto()  # DIAL_CLS
    CLOSE_ASKED = auto()  # CLOSE_REQ
    ENDPOINT_CLOSED = auto()
    STALLED = auto()  # the endpoint takes nothing of what waits for it
    PEER_CLOSED = auto()  # CLOSE_RSP: the other side is gone already
    PEER_LOST = auto()


class Action(Enum):
    __hash__ = object.__hash__

    TELL_ACCEPTED = auto()
    TELL_REFUSED = auto()
    TELL_CLOSED = auto()
    FLUSH_AND_CLOSE = auto()
    CUT = auto()
    STOP_DIAL = auto()
    FORGET = auto()  # nothing more goes to the peer


S, T, A = State, Trigger, Action

# What is not in the table changes nothing.
TRANSITIONS: Final[dict[tuple[State, Trigger], tuple[State, tuple[Action, ...]]]] = {
    (S.DIALLING, T.DIALLED): (S.OPEN, (A.TELL_ACCEPTED,)),
    (S.DIALLING, T.DIAL_FAILED): (S.DONE, (A.TELL_REFUSED,)),
    (S.DIALLING, T.DIAL_CANCELLED): (S.DONE, (A.STOP_DIAL,)),
    (S.DIALLING, T.PEER_LOST): (S.DONE, (A.STOP_DIAL,)),
    # The upload's tail is still on its way to the endpoint: it is written before the socket closes.
    (S.OPEN, T.CLOSE_ASKED): (S.DONE, (A.FLUSH_AND_CLOSE, A.TELL_CLOSED, A.FORGET)),
    (S.OPEN, T.ENDPOINT_CLOSED): (S.DONE, (A.TELL_CLOSED, A.FORGET)),
    (S.OPEN, T.STALLED): (S.DONE, (A.CUT, A.TELL_CLOSED, A.FORGET)),
    (S.OPEN, T.PEER_CLOSED): (S.DONE, (A.FLUSH_AND_CLOSE, A.FORGET)),
    (S.OPEN, T.PEER_LOST): (S.DONE, (A.FLUSH_AND_CLOSE,)),
    # The dial and its cancellation crossed each other.
    (S.DONE, T.DIALLED): (S.DONE, (A.CUT, A.FORGET)),
}


class Connection:
    """One connection to an endpoint; compared by identity."""

    __slots__ = ("address", "connect_id", "random", "state")

    def __init__(self, address: str, random: int, connect_id: int) -> None:
        self.address = address
        self.random = random
        self.connect_id = connect_id
        self.state = State.DIALLING

    def __repr__(self) -> str:
        return f"<Connection {self.connect_id} to {self.address}, {self.state.name}>"
