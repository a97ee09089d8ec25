"""Links of a gRPC port, and those that come when it is closed."""

import asyncio
from typing import Any

from garboard.rpc import Limits
from garboard.tunnel.server.grpc_port import GrpcPort


class Wire(asyncio.Transport):
    """A connection that notes whether it was cut."""

    def __init__(self) -> None:
        super().__init__()
        self.is_cut = False

    def abort(self) -> None:
        self.is_cut = True

    def close(self) -> None:
        return

    def write(self, data: Any) -> None:
        return

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def is_closing(self) -> bool:
        return self.is_cut


def test_link_whose_handshake_ends_when_the_port_is_closed_is_cut() -> None:
    """It would stay otherwise, with a server that is no more: its agent believes that it has that server."""

    async def scenario() -> None:
        port = GrpcPort("/AgentService/Connect", lambda _link, _call: None, 60.0, limits=Limits())
        early, late = Wire(), Wire()
        port.accept().connection_made(early)
        assert (len(port.links), early.is_cut) == (1, False)
        shaking = port.accept()
        closing = asyncio.create_task(port.close())
        await asyncio.sleep(0)
        shaking.connection_made(late)
        assert late.is_cut
        closing.cancel()

    asyncio.run(scenario())
