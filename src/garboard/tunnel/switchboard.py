"""The end that asks for connections, without I/O: packets of agents and front ends come in, packets for them go out.

Every method returns what is to be sent, in order. Sockets, buffers and the clock's ticking are left to the modules
around it.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from garboard.tunnel import packets
from garboard.tunnel.packets import Packet, decode_packet, encode_packet, peek_data
from garboard.tunnel.tunnels import TRANSITIONS, Action, Backend, State, Trigger, Tunnel

NO_AGENT: Final = "No agent available"
AGENT_LOST: Final = "the agent's connection was lost while it dialled"
DIAL_TIMEOUT: Final = "dial timeout: the agent did not answer in time"
STALLED: Final = "closed alone: it took no data while the other connections waited"


class ToAgent(NamedTuple):
    """Send to the agent, behind what the tunnel has sent before; without a tunnel as soon as possible."""

    backend: Backend
    message: bytes
    tunnel: Tunnel | None


class ToFront(NamedTuple):
    tunnel: Tunnel
    packet: Packet


class Accepted(NamedTuple):
    """The connection is open on the backend: data may flow."""

    tunnel: Tunnel
    backend: Backend


class Cut(NamedTuple):
    """Drop what the tunnel still wanted to send, and say this instead."""

    tunnel: Tunnel
    backend: Backend
    message: bytes


class Forget(NamedTuple):
    """The connection is over for the agent."""

    tunnel: Tunnel
    backend: Backend


Effect = ToAgent | ToFront | Accepted | Cut | Forget


class Routes(Protocol):
    """The streams there are, and the choice among them."""

    def add(self, backend: Backend) -> None: ...

    def remove(self, backend: Backend) -> None: ...

    def find(self, address: str) -> Backend | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long the server waits."""

    dial_s: float = 30.0
    close_s: float = 10.0


class Counts:
    """What happened, for the metrics."""

    def __init__(self) -> None:
        self.dial_failures: dict[str, int] = {}
        self.dial_seconds: Callable[[float], None] = lambda _seconds: None

    def dial_failed(self, reason: str) -> None:
        self.dial_failures[reason] = self.dial_failures.get(reason, 0) + 1


class Switchboard:
    """Connects front ends with agents."""

    def __init__(self, routes: Routes, *, clock: Callable[[], float], times: Times | None = None) -> None:
        self._routes = routes
        self.counts = Counts()
        self._clock = clock
        self._times = times or Times()
        self._deadlines: dict[Tunnel, float] = {}  # of tunnels that wait for an agent's answer
        self._takers: dict[type, Callable[[Backend, Any], list[Effect]]] = {
            packets.Data: self._data_for_nobody,
            packets.DialResponse: self._dial_answered,
            packets.CloseResponse: self._agent_closed,
            packets.CloseRequest: self._agent_asks_close,
            packets.CloseDial: self._dial_given_up,
            packets.Drain: self._drained,
        }

    # Agents.

    def agent_joined(self, backend: Backend) -> None:
        self._routes.add(backend)

    def agent_left(self, backend: Backend) -> list[Effect]:
        """The stream is gone, and with it what it carried; dials that it had not answered go to another agent."""
        self._routes.remove(backend)
        out: list[Effect] = []
        opened, pending = list(backend.open.values()), list(backend.pending.values())
        backend.open.clear()
        backend.pending.clear()
        for tunnel in opened:
            out += self._move(tunnel, Trigger.AGENT_LOST, f"the connection to {backend.peer} was lost")
        for tunnel in pending:
            tunnel.backend = self._routes.find(tunnel.address)
            if tunnel.backend is None:
                self.counts.dial_failed("backend_close")
                out += self._move(tunnel, Trigger.NO_AGENT, AGENT_LOST)
            else:
                out += self._move(tunnel, Trigger.AGENT_LOST)
        return out

    def agent_said(self, backend: Backend, packet: Packet) -> list[Effect]:
        """One packet of an agent that is not DATA for an open connection."""
        take = self._takers.get(type(packet))
        return take(backend, packet) if take is not None else []  # the stock server ignores the rest as well

    def _data_for_nobody(self, backend: Backend, packet: packets.Data) -> list[Effect]:
        return [_close_unknown(backend, packet.connect_id)] if packet.connect_id else []

    def _agent_closed(self, backend: Backend, packet: packets.CloseResponse) -> list[Effect]:
        tunnel = backend.open.get(packet.connect_id)
        return self._move(tunnel, Trigger.AGENT_CLOSED, packet.error) if tunnel else []

    def _dial_given_up(self, backend: Backend, packet: packets.CloseDial) -> list[Effect]:
        tunnel = backend.pending.get(packet.random)
        return self._move(tunnel, Trigger.REFUSED, "the agent gave the dial up") if tunnel else []

    def _drained(self, backend: Backend, _packet: packets.Drain) -> list[Effect]:
        backend.is_draining = True
        return []

    def _agent_asks_close(self, backend: Backend, packet: packets.CloseRequest) -> list[Effect]:
        """Drafts of the direction from nodes close so; stock agents never do."""
        tunnel = backend.open.get(packet.connect_id)
        if tunnel is None:
            return []
        answer = ToAgent(backend, encode_packet(packets.CloseResponse("", packet.connect_id)), tunnel)
        return [answer, *self._move(tunnel, Trigger.AGENT_CLOSED)]

    def _dial_answered(self, backend: Backend, answer: packets.DialResponse) -> list[Effect]:
        tunnel = backend.pending.get(answer.random)
        if tunnel is None:
            self.counts.dial_failed("unrecognized_response")
            return [_close_unknown(backend, answer.connect_id)] if answer.connect_id else []
        if answer.error or not answer.connect_id:
            self.counts.dial_failed("error_response")
            return self._move(tunnel, Trigger.REFUSED, answer.error or "the agent gave the connection no id")
        if answer.connect_id in backend.open:
            self.counts.dial_failed("error_response")
            return self._move(tunnel, Trigger.REFUSED, "the agent gave the connection an id that is taken")
        self.counts.dial_seconds(self._clock() - tunnel.dialled_at)
        tunnel.connect_id = answer.connect_id
        backend.open[answer.connect_id] = tunnel
        return [Accepted(tunnel, backend), *self._move(tunnel, Trigger.ACCEPTED)]

    # Front ends.

    def dial(self, tunnel: Tunnel, request: packets.DialRequest, via: Backend | None = None) -> list[Effect]:
        """The one dial of a front end's stream, through the best agent or through this one."""
        if tunnel.state is not State.IDLE:
            error = "this stream has dialled already: open another for another connection"
            return [ToFront(tunnel, packets.DialResponse(error, 0, request.random))]
        tunnel.protocol, tunnel.address, tunnel.random = request.protocol, request.address, request.random
        tunnel.dialled_at = self._clock()
        tunnel.backend = via or self._routes.find(request.address)
        if tunnel.backend is None:
            self.counts.dial_failed("no_agent")
            return self._move(tunnel, Trigger.NO_AGENT, NO_AGENT)
        return self._move(tunnel, Trigger.DIALLED)

    def front_said(self, tunnel: Tunnel, message: bytes) -> list[Effect]:
        """One packet of a gRPC front end. Raises `BadWire`."""
        quick = peek_data(message)
        if quick is not None:
            return self._front_data(tunnel, quick[0], message)
        match decode_packet(message):
            case packets.Data(connect_id):
                return self._front_data(tunnel, connect_id, message)
            case packets.DialRequest() as request:
                return self.dial(tunnel, request)
            case packets.CloseRequest(connect_id):
                return self.front_closed(tunnel, connect_id)
            case packets.CloseDial(random) if random == tunnel.random:
                self._count_abandoned(tunnel)
                return self._move(tunnel, Trigger.FRONT_GAVE_UP)
        return []

    def carrier_of(self, tunnel: Tunnel) -> Backend | None:
        """The agent that takes data of the tunnel now."""
        return tunnel.backend if tunnel.state is State.OPEN else None

    def front_closed(self, tunnel: Tunnel, connect_id: int = 0) -> list[Effect]:
        if tunnel.state is State.IDLE:
            return [ToFront(tunnel, packets.CloseResponse("backend uninitialized", connect_id))]
        self._count_abandoned(tunnel)
        return self._move(tunnel, Trigger.FRONT_CLOSED)

    def front_gone(self, tunnel: Tunnel) -> list[Effect]:
        """The front end's stream or socket is no more."""
        self._count_abandoned(tunnel)
        tunnel.is_over_for_front = True
        return self._move(tunnel, Trigger.FRONT_GONE)

    def front_stalled(self, tunnel: Tunnel) -> list[Effect]:
        return self._move(tunnel, Trigger.STALLED, STALLED)

    def _front_data(self, tunnel: Tunnel, connect_id: int, message: bytes) -> list[Effect]:
        backend = self.carrier_of(tunnel)
        if backend is not None and connect_id == tunnel.connect_id:
            return [ToAgent(backend, message, tunnel)]
        if tunnel.state is State.IDLE:
            return [ToFront(tunnel, packets.CloseResponse("backend not initialized", connect_id))]
        if backend is None:
            return []
        error = "mismatched connection IDs"
        out = self._move(tunnel, Trigger.CONFUSED, error)
        return [*out, ToFront(tunnel, packets.CloseResponse(error, connect_id))]

    def _count_abandoned(self, tunnel: Tunnel) -> None:
        if tunnel.state is State.DIALLING:
            self.counts.dial_failed("frontend_close")

    # Time.

    def expire(self) -> list[Effect]:
        """What has waited too long for an agent ends."""
        now = self._clock()
        out: list[Effect] = []
        for tunnel in [each for each, until in self._deadlines.items() if until <= now]:
            if tunnel.state is State.DIALLING:
                self.counts.dial_failed("backend_dial_timeout")
            out += self._move(tunnel, Trigger.EXPIRED, DIAL_TIMEOUT if tunnel.state is State.DIALLING else "")
        return out

    @property
    def pending_dials(self) -> int:
        return sum(tunnel.state is State.DIALLING for tunnel in self._deadlines)

    # The table's arrows.

    def _move(self, tunnel: Tunnel, trigger: Trigger, error: str = "") -> list[Effect]:
        before = tunnel.state
        following = TRANSITIONS.get((before, trigger))
        if following is None:
            return []
        tunnel.state, actions = following
        if tunnel.state is not before or trigger is Trigger.AGENT_LOST:
            self._file(tunnel)
        out: list[Effect] = []
        for action in actions:
            tell = _TOWARDS_FRONT.get(action)
            if tell is not None:
                effect = tell(tunnel, error)
                if effect is not None:
                    out.append(effect)
            elif tunnel.backend is not None:
                out.append(_TOWARDS_AGENT[action](tunnel, tunnel.backend, error))
        return out

    def _file(self, tunnel: Tunnel) -> None:
        """Keep the registers in step with the new state."""
        backend, state = tunnel.backend, tunnel.state
        if backend is not None and state is State.DIALLING:
            tunnel.dial_id = tunnel.random
            while tunnel.dial_id in backend.pending:
                tunnel.dial_id = secrets.randbits(63)
            backend.pending[tunnel.dial_id] = tunnel
            self._deadlines.setdefault(tunnel, tunnel.dialled_at + self._times.dial_s)
            return
        self._deadlines.pop(tunnel, None)
        if backend is not None and backend.pending.get(tunnel.dial_id) is tunnel:
            del backend.pending[tunnel.dial_id]
        if state is State.CLOSING:
            self._deadlines[tunnel] = self._clock() + self._times.close_s
        elif backend is not None and state is State.DONE and backend.open.get(tunnel.connect_id) is tunnel:
            del backend.open[tunnel.connect_id]


def _ask_dial(tunnel: Tunnel, backend: Backend, _error: str) -> Effect:
    return ToAgent(backend, encode_packet(packets.DialRequest(tunnel.protocol, tunnel.address, tunnel.dial_id)), None)


def _cancel_dial(tunnel: Tunnel, backend: Backend, _error: str) -> Effect:
    return ToAgent(backend, encode_packet(packets.CloseDial(tunnel.dial_id)), None)


def _ask_close(tunnel: Tunnel, backend: Backend, _error: str) -> Effect:
    return ToAgent(backend, encode_packet(packets.CloseRequest(tunnel.connect_id)), tunnel)


def _cut(tunnel: Tunnel, backend: Backend, _error: str) -> Effect:
    return Cut(tunnel, backend, encode_packet(packets.CloseResponse("", tunnel.connect_id)))


def _forget(tunnel: Tunnel, backend: Backend, _error: str) -> Effect:
    return Forget(tunnel, backend)


def _tell_accepted(tunnel: Tunnel, _error: str) -> Effect:
    return ToFront(tunnel, packets.DialResponse("", tunnel.connect_id, tunnel.random))


def _tell_refused(tunnel: Tunnel, error: str) -> Effect:
    tunnel.is_over_for_front = True
    return ToFront(tunnel, packets.DialResponse(error, 0, tunnel.random))


def _tell_closed(tunnel: Tunnel, error: str) -> Effect | None:
    if tunnel.is_over_for_front:
        return None
    tunnel.is_over_for_front = True
    return ToFront(tunnel, packets.CloseResponse(error, tunnel.connect_id))


_TOWARDS_AGENT: Final[dict[Action, Callable[[Tunnel, Backend, str], Effect]]] = {
    Action.ASK_DIAL: _ask_dial,
    Action.CANCEL_DIAL: _cancel_dial,
    Action.ASK_CLOSE: _ask_close,
    Action.CUT: _cut,
    Action.FORGET: _forget,
}
_TOWARDS_FRONT: Final[dict[Action, Callable[[Tunnel, str], Effect | None]]] = {
    Action.TELL_ACCEPTED: _tell_accepted,
    Action.TELL_REFUSED: _tell_refused,
    Action.TELL_CLOSED: _tell_closed,
}


def _close_unknown(backend: Backend, connect_id: int) -> ToAgent:
    return ToAgent(backend, encode_packet(packets.CloseRequest(connect_id)), None)
