"""The end that asks for connections, without I/O: packets of agents and frontends come in, packets for them go out.

Every method returns what is to be sent, in order. Sockets, buffers and timers are left to the modules
around it.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from garboard.tunnel.frontend.effects import (
    STEPS,
    Accepted,
    Doubt,
    FrontendEffect,
    ToAgent,
    ToFrontend,
    close_unknown,
)
from garboard.tunnel.frontend.states import (
    ACCEPTED,
    AGENT_CLOSED,
    AGENT_LOST,
    CLOSING,
    DIALLED,
    DIALLING,
    DONE,
    FRONTEND_CLOSED,
    FRONTEND_GONE,
    IDLE,
    OPEN,
    Backend,
    FlushProgress,
    Tunnel,
    TunnelTrigger,
)
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet, decode_packet, encode_packet, peek_data

NO_AGENT: Final = "No agent available"
LOST_WHILE_DIALLING: Final = "the agent's connection was lost while it dialled"
DIAL_TIMEOUT: Final = "dial timeout: the agent did not answer in time"
TOO_MANY: Final = "too many connections: a quota of the tunnel is used up"
FRONTEND_CUT: Final = "the client's connection was cut"
CLOSE_TIMEOUT: Final = "the connection stood still while it was closed"
STALLED: Final = "closed alone: it took no data while the other connections waited"


class Routes(Protocol):
    """The connected streams, and the choice of one for a destination."""

    def add(self, backend: Backend) -> None: ...

    def remove(self, backend: Backend) -> None: ...

    def find(self, address: str) -> Backend | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelTimeouts:
    """How long a peer may take to answer a dial or a close, and how long nothing may move on one that closes."""

    dial_s: float = 30.0
    close_s: float = 10.0
    stall_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelQuota:
    """How many connections and unanswered dials a peer may have, and all peers together."""

    open_per_peer: int = 10_000
    pending_per_peer: int = 1_000
    open: int = 40_000
    pending: int = 4_000


class DialCounts:
    """How dials went, for the metrics."""

    def __init__(self) -> None:
        self.dial_failures: dict[str, int] = {}
        self.dial_seconds: Callable[[float], None] = lambda _seconds: None

    def dial_failed(self, reason: str) -> None:
        self.dial_failures[reason] = self.dial_failures.get(reason, 0) + 1


class FrontendProtocol:
    """Joins frontends with agents."""

    def __init__(
        self,
        routes: Routes,
        *,
        clock: Callable[[], float],
        timeouts: TunnelTimeouts | None = None,
        progress_of: Callable[[Tunnel], FlushProgress] = lambda _tunnel: FlushProgress(0, 0, 0),
        quota: TunnelQuota | None = None,
    ) -> None:
        self._routes = routes
        self._quota = quota or TunnelQuota()
        self._open = 0
        self.pending_dials = 0
        self._progress_of = progress_of
        self.counts = DialCounts()
        self._clock = clock
        self._timeouts = timeouts or TunnelTimeouts()
        self._deadlines: dict[Tunnel, float] = {}  # of tunnels that wait for an agent's answer
        self._handlers: dict[type, Callable[[Backend, Any], list[FrontendEffect]]] = {
            packets.Data: self._data_of_unknown,
            packets.DialResponse: self._dial_answered,
            packets.CloseResponse: self._close_answered,
            packets.CloseRequest: self._close_requested,
            packets.CloseDial: self._dial_given_up,
            packets.Drain: self._drained,
        }

    # Agents.

    def agent_joined(self, backend: Backend) -> None:
        self._routes.add(backend)

    def agent_left(self, backend: Backend) -> list[FrontendEffect]:
        """The stream is gone, and with it what it carried; dials that it had not answered go to another agent."""
        self._routes.remove(backend)
        out: list[FrontendEffect] = []
        opened, pending = list(backend.open.values()), list(backend.pending.values())
        self._open -= len(opened)
        backend.open.clear()
        backend.pending.clear()
        for tunnel in opened:
            out += self._move(tunnel, AGENT_LOST, f"the connection to {backend.peer} was lost")
        for tunnel in pending:
            tunnel.backend = self._routes.find(tunnel.address)
            if tunnel.backend is None:
                self.counts.dial_failed("backend_close")
                out += self._move(tunnel, TunnelTrigger.NO_AGENT, LOST_WHILE_DIALLING)
            else:
                out += self._move(tunnel, AGENT_LOST)
        return out

    def agent_sent(self, backend: Backend, packet: Packet) -> list[FrontendEffect]:
        """One packet of an agent that is not DATA for an open connection."""
        handle = self._handlers.get(type(packet))
        return handle(backend, packet) if handle is not None else []  # the stock server ignores the rest as well

    def _data_of_unknown(self, backend: Backend, packet: packets.Data) -> list[FrontendEffect]:
        return [close_unknown(backend, packet.connect_id)] if packet.connect_id else []

    def _close_answered(self, backend: Backend, packet: packets.CloseResponse) -> list[FrontendEffect]:
        tunnel = backend.open.get(packet.connect_id)
        return self._move(tunnel, AGENT_CLOSED, packet.error) if tunnel else []

    def _dial_given_up(self, backend: Backend, packet: packets.CloseDial) -> list[FrontendEffect]:
        tunnel = backend.pending.get(packet.random)
        return self._move(tunnel, TunnelTrigger.REFUSED, "the agent gave the dial up") if tunnel else []

    def _drained(self, backend: Backend, _packet: packets.Drain) -> list[FrontendEffect]:
        backend.is_draining = True
        return []

    def _close_requested(self, backend: Backend, packet: packets.CloseRequest) -> list[FrontendEffect]:
        """CLOSE_REQ of an agent, as early drafts of KEP-2025 send it; stock agents never do."""
        tunnel = backend.open.get(packet.connect_id)
        if tunnel is None:
            return []
        answer = ToAgent(backend, encode_packet(packets.CloseResponse("", packet.connect_id)), tunnel)
        return [answer, *self._move(tunnel, AGENT_CLOSED)]

    def _dial_answered(self, backend: Backend, answer: packets.DialResponse) -> list[FrontendEffect]:
        tunnel = backend.pending.get(answer.random)
        if backend.reluctance:
            backend.is_retired = False
        if tunnel is None:
            self.counts.dial_failed("unrecognized_response")
            return [close_unknown(backend, answer.connect_id)] if answer.connect_id else []
        if answer.error.endswith(packets.STOPPING) and (other := self._other_than(backend, tunnel)) is not None:
            del backend.pending[answer.random]
            tunnel.backend = other
            return self._move(tunnel, AGENT_LOST)
        if answer.error or not answer.connect_id:
            self.counts.dial_failed("error_response")
            return self._move(tunnel, TunnelTrigger.REFUSED, answer.error or "the agent gave the connection no id")
        if answer.connect_id in backend.open:
            self.counts.dial_failed("error_response")
            return self._move(tunnel, TunnelTrigger.REFUSED, "the agent gave the connection an id that is taken")
        self.counts.dial_seconds(self._clock() - tunnel.dialled_at)
        tunnel.connect_id = answer.connect_id
        backend.open[answer.connect_id] = tunnel
        self._open += 1
        return [Accepted(tunnel, backend), *self._move(tunnel, ACCEPTED)]

    def _other_than(self, backend: Backend, tunnel: Tunnel) -> Backend | None:
        """Who may dial in place of a peer that stops; it and DRAIN crossed the dial."""
        backend.is_draining = True
        other = self._routes.find(tunnel.address)
        return other if other is not None and not other.is_draining else None

    # Frontends.

    def dial(self, tunnel: Tunnel, request: packets.DialRequest, via: Backend | None = None) -> list[FrontendEffect]:
        """The one dial of a frontend, through the best agent or through this one."""
        if tunnel.state is not IDLE:
            error = "this stream has dialled already: open another for another connection"
            return [ToFrontend(tunnel, packets.DialResponse(error, 0, request.random))]
        tunnel.protocol, tunnel.address, tunnel.random = request.protocol, request.address, request.random
        tunnel.dialled_at = self._clock()
        tunnel.backend = via or self._routes.find(request.address)
        if tunnel.backend is None:
            self.counts.dial_failed("no_agent")
            return self._move(tunnel, TunnelTrigger.NO_AGENT, NO_AGENT)
        if self._is_over_quota(tunnel.backend):
            self.counts.dial_failed("quota")
            return self._move(tunnel, TunnelTrigger.NO_AGENT, TOO_MANY)
        return self._move(tunnel, DIALLED)

    def _is_over_quota(self, backend: Backend) -> bool:
        quota = self._quota
        return (
            len(backend.pending) >= quota.pending_per_peer
            or len(backend.open) >= quota.open_per_peer
            or self.pending_dials >= quota.pending
            or self._open >= quota.open
        )

    def frontend_sent(self, tunnel: Tunnel, message: bytes) -> list[FrontendEffect]:
        """One packet of a gRPC frontend. Raises `BadWire`."""
        quick = peek_data(message)
        if quick is not None:
            return self._frontend_data(tunnel, quick[0], message)
        match decode_packet(message):
            case packets.Data(connect_id):
                return self._frontend_data(tunnel, connect_id, message)
            case packets.DialRequest() as request:
                return self.dial(tunnel, request)
            case packets.CloseRequest(connect_id):
                return self.frontend_closed(tunnel, connect_id)
            case packets.CloseDial(random) if random == tunnel.random:
                self._count_abandoned(tunnel)
                return self._move(tunnel, TunnelTrigger.FRONTEND_GAVE_UP)
        return []

    def carrier_of(self, tunnel: Tunnel) -> Backend | None:
        """The agent that takes data of the tunnel now."""
        return tunnel.backend if tunnel.state is OPEN else None

    def frontend_closed(self, tunnel: Tunnel, connect_id: int = 0) -> list[FrontendEffect]:
        if tunnel.state is IDLE:
            return [ToFrontend(tunnel, packets.CloseResponse("backend uninitialized", connect_id))]
        self._count_abandoned(tunnel)
        return self._move(tunnel, FRONTEND_CLOSED)

    def frontend_gone(self, tunnel: Tunnel, *, was_cut: bool = False) -> list[FrontendEffect]:
        """The frontend's stream or socket is no more; `was_cut` if it was reset or failed."""
        self._count_abandoned(tunnel)
        tunnel.is_over_for_frontend = True
        if was_cut and tunnel.state is OPEN and tunnel.backend is not None and tunnel.backend.takes_cuts:
            return self._move(tunnel, TunnelTrigger.FRONTEND_CUT, FRONTEND_CUT)
        return self._move(tunnel, FRONTEND_GONE)

    def frontend_stalled(self, tunnel: Tunnel) -> list[FrontendEffect]:
        return self._move(tunnel, TunnelTrigger.STALLED, STALLED)

    def _frontend_data(self, tunnel: Tunnel, connect_id: int, message: bytes) -> list[FrontendEffect]:
        backend = self.carrier_of(tunnel)
        if backend is not None and connect_id == tunnel.connect_id:
            return [ToAgent(backend, message, tunnel)]
        if tunnel.state is IDLE:
            return [ToFrontend(tunnel, packets.CloseResponse("backend not initialized", connect_id))]
        if backend is None:
            return []
        error = "mismatched connection IDs"
        out = self._move(tunnel, TunnelTrigger.CONFUSED, error)
        return [*out, ToFrontend(tunnel, packets.CloseResponse(error, connect_id))]

    def _count_abandoned(self, tunnel: Tunnel) -> None:
        if tunnel.state is DIALLING:
            self.counts.dial_failed("frontend_close")

    # Time.

    def expire(self) -> list[FrontendEffect]:
        """End the tunnels that have waited too long for an agent."""
        now = self._clock()
        out: list[FrontendEffect] = []
        for tunnel in [each for each, until in self._deadlines.items() if until <= now]:
            if tunnel.state is DIALLING:
                self.counts.dial_failed("backend_dial_timeout")
                out += self._retire(tunnel.backend)
                out += self._move(tunnel, TunnelTrigger.EXPIRED, DIAL_TIMEOUT)
            elif self._stands_still(tunnel, now):
                out += self._move(tunnel, TunnelTrigger.EXPIRED, CLOSE_TIMEOUT)
            else:
                self._deadlines[tunnel] = now + self._timeouts.close_s
        return out

    def _retire(self, backend: Backend | None) -> list[FrontendEffect]:
        """An agent bounds its own dials, so one that says nothing at all may be gone: others are chosen before it."""
        if backend is None:
            return []
        backend.is_retired = True
        return [Doubt(backend)]

    def _stands_still(self, tunnel: Tunnel, now: float) -> bool:
        """Whether a tunnel that closes has come no further for too long: a slow reader may take its time."""
        seen = self._progress_of(tunnel)
        if seen != tunnel.progress:
            tunnel.progress, tunnel.moved_at = seen, now
            return False
        return now - tunnel.moved_at >= (self._timeouts.stall_s if seen.is_waiting else self._timeouts.close_s)

    # Transitions.

    def _move(self, tunnel: Tunnel, trigger: TunnelTrigger, error: str = "") -> list[FrontendEffect]:
        before = tunnel.state
        following = STEPS.get((before, trigger))
        if following is None:
            return []
        state, makers = following
        tunnel.state = state
        self.pending_dials += (state is DIALLING) - (before is DIALLING)
        if state is not before or trigger is AGENT_LOST:
            self._index(tunnel)
        out: list[FrontendEffect] = []
        for to_frontend, to_agent in makers:
            if to_frontend is not None:
                effect = to_frontend(tunnel, error)
                if effect is not None:
                    out.append(effect)
            elif to_agent is not None and tunnel.backend is not None:
                out.append(to_agent(tunnel, tunnel.backend, error))
        return out

    def _index(self, tunnel: Tunnel) -> None:
        """Bring pending dials, open connections and deadlines in step with the new state."""
        backend, state = tunnel.backend, tunnel.state
        if backend is not None and state is DIALLING:
            tunnel.dial_id = tunnel.random
            while tunnel.dial_id in backend.pending:
                tunnel.dial_id = secrets.randbits(63)
            backend.pending[tunnel.dial_id] = tunnel
            self._deadlines.setdefault(tunnel, tunnel.dialled_at + self._timeouts.dial_s)
            return
        self._deadlines.pop(tunnel, None)
        if backend is not None and backend.pending.get(tunnel.dial_id) is tunnel:
            del backend.pending[tunnel.dial_id]
        if state is CLOSING:
            tunnel.progress, tunnel.moved_at = self._progress_of(tunnel), self._clock()
            self._deadlines[tunnel] = tunnel.moved_at + self._timeouts.close_s
        elif backend is not None and state is DONE and backend.open.get(tunnel.connect_id) is tunnel:
            del backend.open[tunnel.connect_id]
            self._open -= 1
