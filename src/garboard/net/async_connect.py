"""Opening a connection that takes a proxy, or begins at the entrance of a tunnel, from an event loop."""

import asyncio
import socket

from garboard.net.connect import ProxyFailed, Route, open_connection


async def connected_along(route: Route, timeout_s: float) -> socket.socket:
    """Return a connection along a route; it is opened in a thread, since asking a proxy blocks."""
    if route.entrance is None and route.proxy is not None and route.proxy.scheme == "https":
        # The socket would speak TLS already, and an event loop starts TLS on plain ones only.
        raise ProxyFailed(f"the proxy {route.proxy} speaks TLS, which is not supported here; name it with http://")
    connecting = asyncio.get_running_loop().run_in_executor(None, _opened, route, timeout_s)
    try:
        connection = await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_close_unwanted)
        raise
    connection.setblocking(False)
    return connection


def _opened(route: Route, timeout_s: float) -> socket.socket:
    connection = open_connection(route, timeout_s)
    assert isinstance(connection, socket.socket), "only a proxy that speaks TLS gives anything else"
    return connection


def _close_unwanted(connecting: "asyncio.Future[socket.socket]") -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
