"""What the protocol of the end that asks wants done: packets for agents and frontends, and which action makes which."""

from collections.abc import Callable
from typing import Final, NamedTuple

from garboard.tunnel.frontend.states import TRANSITIONS, Backend, Tunnel, TunnelAction, TunnelState
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet, encode_packet


class ToAgent(NamedTuple):
    """Send to the agent, behind what the tunnel has sent before; without a tunnel as soon as possible."""

    backend: Backend
    message: bytes
    tunnel: Tunnel | None


class ToFrontend(NamedTuple):
    tunnel: Tunnel
    packet: Packet


class Accepted(NamedTuple):
    """The connection is open on the backend: data may flow."""

    tunnel: Tunnel
    backend: Backend


class Cut(NamedTuple):
    """Drop what the tunnel has queued, and send this message instead."""

    tunnel: Tunnel
    backend: Backend
    message: bytes


class Doubt(NamedTuple):
    """The backend left a dial without an answer: see whether its peer is still there."""

    backend: Backend


class ForgetTunnel(NamedTuple):
    """The connection is over for the agent."""

    tunnel: Tunnel
    backend: Backend


FrontendEffect = ToAgent | ToFrontend | Accepted | Cut | Doubt | ForgetTunnel


def _request_dial(tunnel: Tunnel, backend: Backend, _error: str) -> FrontendEffect:
    request = packets.DialRequest(tunnel.protocol, tunnel.address, tunnel.dial_id, tunnel.client)
    return ToAgent(backend, encode_packet(request), None)


def _cancel_dial(tunnel: Tunnel, backend: Backend, _error: str) -> FrontendEffect:
    return ToAgent(backend, encode_packet(packets.CloseDial(tunnel.dial_id)), None)


def _request_close(tunnel: Tunnel, backend: Backend, _error: str) -> FrontendEffect:
    return ToAgent(backend, encode_packet(packets.CloseRequest(tunnel.connect_id)), tunnel)


def _report_cut(tunnel: Tunnel, backend: Backend, error: str) -> FrontendEffect:
    return ToAgent(backend, encode_packet(packets.CloseResponse(error, tunnel.connect_id)), tunnel)


def _cut(tunnel: Tunnel, backend: Backend, error: str) -> FrontendEffect:
    return Cut(tunnel, backend, encode_packet(packets.CloseResponse(error, tunnel.connect_id)))


def _forget(tunnel: Tunnel, backend: Backend, _error: str) -> FrontendEffect:
    return ForgetTunnel(tunnel, backend)


def _send_accepted(tunnel: Tunnel, _error: str) -> FrontendEffect:
    return ToFrontend(tunnel, packets.DialResponse("", tunnel.connect_id, tunnel.random))


def _send_refused(tunnel: Tunnel, error: str) -> FrontendEffect:
    tunnel.is_over_for_frontend = True
    return ToFrontend(tunnel, packets.DialResponse(error, 0, tunnel.random))


def _send_closed(tunnel: Tunnel, error: str) -> FrontendEffect | None:
    if tunnel.is_over_for_frontend:
        return None
    tunnel.is_over_for_frontend = True
    return ToFrontend(tunnel, packets.CloseResponse(error, tunnel.connect_id))


_TOWARDS_AGENT: Final[dict[TunnelAction, Callable[[Tunnel, Backend, str], FrontendEffect]]] = {
    TunnelAction.REQUEST_DIAL: _request_dial,
    TunnelAction.CANCEL_DIAL: _cancel_dial,
    TunnelAction.REQUEST_CLOSE: _request_close,
    TunnelAction.REPORT_CUT: _report_cut,
    TunnelAction.CUT: _cut,
    TunnelAction.FORGET: _forget,
}
_TOWARDS_FRONTEND: Final[dict[TunnelAction, Callable[[Tunnel, str], FrontendEffect | None]]] = {
    TunnelAction.SEND_ACCEPTED: _send_accepted,
    TunnelAction.SEND_REFUSED: _send_refused,
    TunnelAction.SEND_CLOSED: _send_closed,
}


class Steps(NamedTuple):
    """What a transition leads to: the next state, and what is done, in order, each towards one of the two sides."""

    state: TunnelState
    makers: tuple[
        tuple[
            Callable[[Tunnel, str], FrontendEffect | None] | None,
            Callable[[Tunnel, Backend, str], FrontendEffect] | None,
        ],
        ...,
    ]


# The table of `states` with what makes the effects in place of their names: looked up once, and not for every packet.
STEPS: Final = {
    before: Steps(after, tuple((_TOWARDS_FRONTEND.get(action), _TOWARDS_AGENT.get(action)) for action in actions))
    for before, (after, actions) in TRANSITIONS.items()
}


def close_unknown(backend: Backend, connect_id: int) -> ToAgent:
    return ToAgent(backend, encode_packet(packets.CloseRequest(connect_id)), None)
