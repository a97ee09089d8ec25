"""One tunnel as the end that asks for connections sees it, and the one table of its states.

That end is the server for connections of API servers, and the agent for connections of its node. "Agent" is here the
peer that dials, at the other end of a Connect stream; for connections of a node it is a server.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NamedTuple


class TunnelState(Enum):
    __hash__ = object.__hash__  # a key of the table below: the hash of a name costs a call

    IDLE = auto()  # the frontend has not dialled
    DIALLING = auto()
    OPEN = auto()
    CLOSING = auto()  # the agent was asked to close and has not answered; what it still sends is dropped or delivered
    DONE = auto()


class TunnelTrigger(Enum):
    __hash__ = object.__hash__

    DIALLED = auto()  # by the frontend, and an agent was found
    NO_AGENT = auto()
    ACCEPTED = auto()
    REFUSED = auto()
    EXPIRED = auto()  # no answer within the time for it
    FRONTEND_CLOSED = auto()  # CLOSE_REQ, or the end of what the client sends
    FRONTEND_GAVE_UP = auto()  # DIAL_CLS
    FRONTEND_GONE = auto()  # nobody listens any more
    FRONTEND_CUT = auto()  # the same, and what it sent was not all that it wanted to
    AGENT_CLOSED = auto()
    AGENT_LOST = auto()
    STALLED = auto()  # the frontend takes nothing of what waits for it
    CONFUSED = auto()  # DATA under the id of another connection


class TunnelAction(Enum):
    __hash__ = object.__hash__

    REQUEST_DIAL = auto()
    CANCEL_DIAL = auto()
    REQUEST_CLOSE = auto()
    REPORT_CUT = auto()  # CLOSE_RSP with an error, which stock agents would ignore
    SEND_ACCEPTED = auto()
    SEND_REFUSED = auto()
    SEND_CLOSED = auto()
    FORGET = auto()  # nothing more goes to the agent
    CUT = auto()  # what waits to be sent is dropped, and the close goes out without it


S, T, A = TunnelState, TunnelTrigger, TunnelAction
# Compared for all that a client sends and for every change: looking up a member takes longer.
IDLE: Final = TunnelState.IDLE
DIALLING: Final = TunnelState.DIALLING
OPEN: Final = TunnelState.OPEN
CLOSING: Final = TunnelState.CLOSING
DONE: Final = TunnelState.DONE
DIALLED: Final = TunnelTrigger.DIALLED
ACCEPTED: Final = TunnelTrigger.ACCEPTED
FRONTEND_CLOSED: Final = TunnelTrigger.FRONTEND_CLOSED
FRONTEND_GONE: Final = TunnelTrigger.FRONTEND_GONE
AGENT_CLOSED: Final = TunnelTrigger.AGENT_CLOSED
AGENT_LOST: Final = TunnelTrigger.AGENT_LOST

# What is not in the table changes nothing: a late answer, a second close, a packet for what is over.
TRANSITIONS: Final[dict[tuple[TunnelState, TunnelTrigger], tuple[TunnelState, tuple[TunnelAction, ...]]]] = {
    (S.IDLE, T.DIALLED): (S.DIALLING, (A.REQUEST_DIAL,)),
    (S.IDLE, T.NO_AGENT): (S.DONE, (A.SEND_REFUSED,)),
    (S.IDLE, T.FRONTEND_GONE): (S.DONE, ()),
    (S.DIALLING, T.ACCEPTED): (S.OPEN, (A.SEND_ACCEPTED,)),
    (S.DIALLING, T.REFUSED): (S.DONE, (A.SEND_REFUSED,)),
    (S.DIALLING, T.EXPIRED): (S.DONE, (A.CANCEL_DIAL, A.SEND_REFUSED)),
    (S.DIALLING, T.FRONTEND_CLOSED): (S.DONE, (A.CANCEL_DIAL,)),
    (S.DIALLING, T.FRONTEND_GAVE_UP): (S.DONE, (A.CANCEL_DIAL,)),
    (S.DIALLING, T.FRONTEND_GONE): (S.DONE, (A.CANCEL_DIAL,)),
    # Nothing was sent yet: another agent may do it as well.
    (S.DIALLING, T.AGENT_LOST): (S.DIALLING, (A.REQUEST_DIAL,)),
    (S.DIALLING, T.NO_AGENT): (S.DONE, (A.SEND_REFUSED,)),
    (S.OPEN, T.FRONTEND_CLOSED): (S.CLOSING, (A.REQUEST_CLOSE,)),
    # The answer and the client's change of mind crossed each other.
    (S.OPEN, T.FRONTEND_GAVE_UP): (S.CLOSING, (A.REQUEST_CLOSE,)),
    (S.OPEN, T.FRONTEND_GONE): (S.CLOSING, (A.REQUEST_CLOSE,)),
    (S.OPEN, T.FRONTEND_CUT): (S.DONE, (A.REPORT_CUT, A.FORGET)),
    (S.OPEN, T.AGENT_CLOSED): (S.DONE, (A.SEND_CLOSED, A.FORGET)),
    (S.OPEN, T.AGENT_LOST): (S.DONE, (A.SEND_CLOSED,)),
    (S.OPEN, T.STALLED): (S.CLOSING, (A.REQUEST_CLOSE, A.SEND_CLOSED)),
    (S.OPEN, T.CONFUSED): (S.CLOSING, (A.REQUEST_CLOSE, A.SEND_CLOSED)),
    (S.CLOSING, T.AGENT_CLOSED): (S.DONE, (A.SEND_CLOSED, A.FORGET)),
    (S.CLOSING, T.AGENT_LOST): (S.DONE, (A.SEND_CLOSED,)),
    (S.CLOSING, T.EXPIRED): (S.DONE, (A.CUT, A.SEND_CLOSED, A.FORGET)),
    (S.CLOSING, T.STALLED): (S.CLOSING, (A.SEND_CLOSED,)),
}


class FlushProgress(NamedTuple):
    """How far a tunnel has come: messages that wait for the agent, bytes that the client took and that wait for it."""

    unsent_messages: int
    delivered_bytes: int
    queued_bytes: int

    @property
    def is_waiting(self) -> bool:
        return bool(self.unsent_messages or self.queued_bytes)


class Tunnel:
    """The connection of one frontend; compared by identity."""

    __slots__ = ("address", "backend", "client", "connect_id", "dial_id", "dialled_at", "is_over_for_frontend",
                 "moved_at", "progress", "protocol", "random", "state")  # fmt: skip

    def __init__(self) -> None:
        self.state = IDLE
        self.backend: Backend | None = None
        self.protocol = ""
        self.address = ""
        self.client = ""  # who asked for it, where the agent is told
        self.random = 0  # the frontend's number for the dial
        self.dial_id = 0  # ours, towards the agent: the same unless another dial there has it
        self.connect_id = 0
        self.dialled_at = 0.0
        self.is_over_for_frontend = False  # it got its last packet, or is gone
        self.progress: FlushProgress | None = None  # while it closes: what was seen of it last, and when that changed
        self.moved_at = 0.0

    def __repr__(self) -> str:
        return f"<Tunnel {self.address} {self.state.name} connectID={self.connect_id}>"


_DRAINING: Final = 1
_RETIRED: Final = 2


class Backend:
    """One Connect stream, and the connections that its peer dialled for us."""

    def __init__(self, peer: str) -> None:
        self.peer = peer  # as it is named in messages, such as "agent a1"
        self.takes_cuts = False  # it resets an endpoint whose client was cut, as our own ends do
        # Of several, the one with the least is chosen: draining ones come last but for those that do not answer.
        self.reluctance = 0
        self.on_reluctance: Callable[[Backend, int], None] | None = None  # called with what it was before
        self.pending: dict[int, Tunnel] = {}  # dials the peer has not answered, by their id
        self.open: dict[int, Tunnel] = {}  # by connectID, which a peer counts per stream

    @property
    def is_draining(self) -> bool:
        return bool(self.reluctance & _DRAINING)

    @is_draining.setter
    def is_draining(self, value: bool) -> None:
        self._set(_DRAINING, value)

    @property
    def is_retired(self) -> bool:
        """It left a dial without an answer, and has answered none since."""
        return bool(self.reluctance & _RETIRED)

    @is_retired.setter
    def is_retired(self, value: bool) -> None:
        self._set(_RETIRED, value)

    def _set(self, flag: int, value: bool) -> None:
        before = self.reluctance
        self.reluctance = before | flag if value else before & ~flag
        if self.reluctance != before and self.on_reluctance is not None:
            self.on_reluctance(self, before)

    def __repr__(self) -> str:
        return f"<Backend {self.peer}>"
