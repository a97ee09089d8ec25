"""HTTP/2 and gRPC without I/O, with a blocking driver here (unary calls) and an asyncio one in `garboard.rpc.aio`.

The sans-I/O layers take bytes and return events (`ClientEndpoint`, `ServerEndpoint`); the drivers add sockets, timers
and errors in words. What the messages mean is left to the callers; `wire` helps them with protobuf.
"""

from garboard.rpc.blocking import BlockingClient
from garboard.rpc.calls import Call, CallListener, ClientCall, ServerCall
from garboard.rpc.endpoint import ClientEndpoint, RpcConfig, ServerEndpoint
from garboard.rpc.errors import PeerUnreachable, RpcFailed, SendQueueFull
from garboard.rpc.keepalive import KeepaliveConfig
from garboard.rpc.limits import Http2Config, Limits, Rate
from garboard.rpc.metadata import Metadata
from garboard.rpc.status import OK, Status, StatusCode
from garboard.rpc.targets import Target, TcpTarget, UnixTarget, client_tls, parse_unix_target, server_tls

__all__ = [
    "OK",
    "BlockingClient",
    "Call",
    "CallListener",
    "ClientCall",
    "ClientEndpoint",
    "Http2Config",
    "KeepaliveConfig",
    "Limits",
    "Metadata",
    "PeerUnreachable",
    "Rate",
    "RpcConfig",
    "RpcFailed",
    "SendQueueFull",
    "ServerCall",
    "ServerEndpoint",
    "Status",
    "StatusCode",
    "Target",
    "TcpTarget",
    "UnixTarget",
    "client_tls",
    "parse_unix_target",
    "server_tls",
]
