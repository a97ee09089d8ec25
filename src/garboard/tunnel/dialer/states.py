"""One endpoint connection as the end that dials it sees it: its states, and the one table of its changes."""

from enum import Enum, auto
from typing import Final


class ConnectionState(Enum):
    __hash__ = object.__hash__  # a key of the table below: the hash of a name costs a call

    DIALLING = auto()
    OPEN = auto()
    DONE = auto()


class ConnectionTrigger(Enum):
    __hash__ = object.__hash__

    DIALLED = auto()
    DIAL_FAILED = auto()
    DIAL_CANCELLED = auto()  # DIAL_CLS
    CLOSE_REQUESTED = auto()  # CLOSE_REQ
    ENDPOINT_CLOSED = auto()
    STALLED = auto()  # the endpoint takes nothing of what waits for it
    PEER_CLOSED = auto()  # CLOSE_RSP: the other side is gone already
    PEER_CUT = auto()  # CLOSE_RSP with an error: the other side did not end as it should have
    PEER_LOST = auto()


class ConnectionAction(Enum):
    __hash__ = object.__hash__

    SEND_ACCEPTED = auto()
    SEND_REFUSED = auto()
    SEND_CLOSED = auto()
    FLUSH_AND_CLOSE = auto()
    FLUSH_AND_RESET = auto()  # an upload that was cut must not look whole
    CUT = auto()
    STOP_DIAL = auto()
    FORGET = auto()  # nothing more goes to the peer


# For every change of a connection: looking up a member takes longer.
DIALLING: Final = ConnectionState.DIALLING
OPEN: Final = ConnectionState.OPEN
DONE: Final = ConnectionState.DONE
DIALLED: Final = ConnectionTrigger.DIALLED
CLOSE_REQUESTED: Final = ConnectionTrigger.CLOSE_REQUESTED
ENDPOINT_CLOSED: Final = ConnectionTrigger.ENDPOINT_CLOSED

S, T, A = ConnectionState, ConnectionTrigger, ConnectionAction

# What is not in the table changes nothing.
TRANSITIONS: Final[
    dict[tuple[ConnectionState, ConnectionTrigger], tuple[ConnectionState, tuple[ConnectionAction, ...]]]
] = {
    (S.DIALLING, T.DIALLED): (S.OPEN, (A.SEND_ACCEPTED,)),
    (S.DIALLING, T.DIAL_FAILED): (S.DONE, (A.SEND_REFUSED,)),
    (S.DIALLING, T.DIAL_CANCELLED): (S.DONE, (A.STOP_DIAL,)),
    (S.DIALLING, T.PEER_LOST): (S.DONE, (A.STOP_DIAL,)),
    # The upload's tail is still on its way to the endpoint: it is written before the socket closes.
    (S.OPEN, T.CLOSE_REQUESTED): (S.DONE, (A.FLUSH_AND_CLOSE, A.SEND_CLOSED, A.FORGET)),
    (S.OPEN, T.ENDPOINT_CLOSED): (S.DONE, (A.SEND_CLOSED, A.FORGET)),
    (S.OPEN, T.STALLED): (S.DONE, (A.CUT, A.SEND_CLOSED, A.FORGET)),
    (S.OPEN, T.PEER_CLOSED): (S.DONE, (A.FLUSH_AND_CLOSE, A.FORGET)),
    (S.OPEN, T.PEER_CUT): (S.DONE, (A.FLUSH_AND_RESET, A.FORGET)),
    (S.OPEN, T.PEER_LOST): (S.DONE, (A.FLUSH_AND_RESET,)),
    # The dial and its cancellation crossed each other.
    (S.DONE, T.DIALLED): (S.DONE, (A.CUT, A.FORGET)),
}


class EndpointConnection:
    """One connection to an endpoint; compared by identity."""

    __slots__ = ("address", "client", "connect_id", "random", "state")

    def __init__(self, address: str, random: int, connect_id: int, client: str = "") -> None:
        self.address = address
        self.client = client  # who asks for it, as the peer tells
        self.random = random
        self.connect_id = connect_id
        self.state = DIALLING

    def __repr__(self) -> str:
        return f"<EndpointConnection {self.connect_id} to {self.address}, {self.state.name}>"
