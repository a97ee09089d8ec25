"""The asyncio driver of `garboard.rpc`: clients and servers with streams, both on protocols of the event loop.

Coroutines use `AioClient.call` and the handlers of `serve`; code that cannot afford a task per call sets a
`CallListener` on it and hears of it in callbacks.
"""

from garboard.rpc.aio.call import AioClientCall, AioServerCall
from garboard.rpc.aio.client import AioClient
from garboard.rpc.aio.link import AioLink
from garboard.rpc.aio.server import AioServer, Handler, serve

__all__ = ["AioClient", "AioClientCall", "AioLink", "AioServer", "AioServerCall", "Handler", "serve"]
