"""One tunnelled connection as the end that was asked for it sees it, and the one table of its states.

That end is the server for connections of API servers, and the agent for connections of its node. Here an "agent" is
whoever dials for it: the peer at the other end of a Connect stream.
"""

from enum import Enum, auto
from typing import Final


class State(Enum):
    __hash__ = object.__hash__  # a key of the table below: the hash of a name costs a call

    IDLE = auto()  # the front end has not dialled
    DIALLING = auto()
    OPEN = auto()
    CLOSING = auto()  # the agent was asked to close and has not answered; what it still sends is dropped or delivered
    DONE = auto()


class Trigger(Enum):
    __hash__ = object.__hash__

    DIALLED = auto()  # by the front end, and an agent was found
    NO_AGENT = auto()
    ACCEPTED = auto()
    REFUSED = auto()
    EXPIRED = auto()  # the time of the state is over
    FRONT_CLOSED = auto()  # CLOSE_REQ, or the end of what the client sends
    FRONT_GAVE_UP = auto()  # DIAL_CLS
    FRONT_GONE = auto()  # nobody listens any more
    AGENT_CLOSED = auto()
    AGENT_LOST = auto()
    STALLED = auto()  # the front end takes nothing of what waits for it
    CONFUSED = auto()  # DATA under the id of another connection


class Action(Enum):
    __hash__ = object.__hash__

    ASK_DIAL = auto()
    CANCEL_DIAL = auto()
    ASK_CLOSE = auto()
    TELL_ACCEPTED = auto()
    TELL_REFUSED = auto()
    TELL_CLOSED = auto()
    FORGET = auto()  # nothing more goes to the agent
    CUT = auto()  # what waits to be sent is dropped, and the close goes out without it


S, T, A = State, Trigger, Action
OPEN: Final = State.OPEN  # asked for all that a client sends, and a member looked up costs a call

# What is not in the table changes nothing: a late answer, a second close, a packet for what is over.
TRANSITIONS: Final[dict[tuple[State, Trigger], tuple[State, tuple[Action, ...]]]] = {
    (S.IDLE, T.DIALLED): (S.DIALLING, (A.ASK_DIAL,)),
    (S.IDLE, T.NO_AGENT): (S.DONE, (A.TELL_REFUSED,)),
    (S.IDLE, T.FRONT_GONE): (S.DONE, ()),
    (S.DIALLING, T.ACCEPTED): (S.OPEN, (A.TELL_ACCEPTED,)),
    (S.DIALLING, T.REFUSED): (S.DONE, (A.TELL_REFUSED,)),
    (S.DIALLING, T.EXPIRED): (S.DONE, (A.CANCEL_DIAL, A.TELL_REFUSED)),
    (S.DIALLING, T.FRONT_CLOSED): (S.DONE, (A.CANCEL_DIAL,)),
    (S.DIALLING, T.FRONT_GAVE_UP): (S.DONE, (A.CANCEL_DIAL,)),
    (S.DIALLING, T.FRONT_GONE): (S.DONE, (A.CANCEL_DIAL,)),
    # Nothing was sent yet: another agent may do it as well.
    (S.DIALLING, T.AGENT_LOST): (S.DIALLING, (A.ASK_DIAL,)),
    (S.DIALLING, T.NO_AGENT): (S.DONE, (A.TELL_REFUSED,)),
    (S.OPEN, T.FRONT_CLOSED): (S.CLOSING, (A.ASK_CLOSE,)),
    # The answer and the client's change of mind crossed each other.
    (S.OPEN, T.FRONT_GAVE_UP): (S.CLOSING, (A.ASK_CLOSE,)),
    (S.OPEN, T.FRONT_GONE): (S.CLOSING, (A.ASK_CLOSE,)),
    (S.OPEN, T.AGENT_CLOSED): (S.DONE, (A.TELL_CLOSED, A.FORGET)),
    (S.OPEN, T.AGENT_LOST): (S.DONE, (A.TELL_CLOSED,)),
    (S.OPEN, T.STALLED): (S.CLOSING, (A.ASK_CLOSE, A.TELL_CLOSED)),
    (S.OPEN, T.CONFUSED): (S.CLOSING, (A.ASK_CLOSE, A.TELL_CLOSED)),
    (S.CLOSING, T.AGENT_CLOSED): (S.DONE, (A.TELL_CLOSED, A.FORGET)),
    (S.CLOSING, T.AGENT_LOST): (S.DONE, (A.TELL_CLOSED,)),
    (S.CLOSING, T.EXPIRED): (S.DONE, (A.CUT, A.TELL_CLOSED, A.FORGET)),
    (S.CLOSING, T.STALLED): (S.CLOSING, (A.TELL_CLOSED,)),
}


class Tunnel:
    """One connection of a front end; compared by identity."""

    __slots__ = ("address", "backend", "connect_id", "dial_id", "dialled_at", "is_over_for_front", "protocol", "random",
                 "state")  # fmt: skip

    def __init__(self) -> None:
        self.state = State.IDLE
        self.backend: Backend | None = None
        self.protocol = ""
        self.address = ""
        self.random = 0  # the front end's name for the dial
        self.dial_id = 0  # ours, towards the agent: the same unless another dial there has it
        self.connect_id = 0
        self.dialled_at = 0.0
        self.is_over_for_front = False  # it was told so, or is gone: it hears nothing more

    def __repr__(self) -> str:
        return f"<Tunnel {self.address} {self.state.name} connectID={self.connect_id}>"


class Backend:
    """One Connect stream, and the connections that its peer dialled for us."""

    def __init__(self, peer: str) -> None:
        self.peer = peer  # as it is named in messages, such as "agent a1"
        self.is_draining = False
        self.pending: dict[int, Tunnel] = {}  # dials the peer has not answered, by their id
        self.open: dict[int, Tunnel] = {}  # by connectID, which a peer counts per stream

    def __repr__(self) -> str:
        return f"<Backend {self.peer}>"
