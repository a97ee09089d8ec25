"""The blocking driver: unary calls, one at a time, for plain synchronous code."""

import contextlib
import socket
import ssl
import threading
import time
from types import TracebackType
from typing import Final, Self

from garboard.rpc.calls import CallEnded, ClientCall, MessagesReceived
from garboard.rpc.endpoint import ClientEndpoint, RpcConfig
from garboard.rpc.errors import PeerUnreachable, RpcFailed
from garboard.rpc.events import GoingAway
from garboard.rpc.metadata import Metadata
from garboard.rpc.status import Status, StatusCode
from garboard.rpc.targets import TcpTarget, UnixTarget, authority_of
from garboard.rpc.unreachable import NotHttp2, unreachable

READ_BYTES: Final = 64 * 1024
CONNECT_TIMEOUT_S: Final = 10.0
CALL_TIMEOUT_S: Final = 120.0


class BlockingClient:
    """Calls methods of one peer; connects on first use and again when the peer went away in between.

    Calls from several threads wait for each other.
    """

    def __init__(
        self,
        target: UnixTarget | TcpTarget,
        *,
        config: RpcConfig | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._target = target
        self._config = config or RpcConfig()
        self._connect_timeout_s = connect_timeout_s
        self._link: _Link | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def unary(
        self, method: str, request: bytes, *, timeout_s: float = CALL_TIMEOUT_S, metadata: Metadata = ()
    ) -> bytes:
        """The answer to one request. Raises `PeerUnreachable` or `RpcFailed`."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            try:
                ended, messages = self._attempt(method, request, metadata, deadline)
                if ended.is_unprocessed and time.monotonic() < deadline:
                    self._close()
                    ended, messages = self._attempt(method, request, metadata, deadline)
            except BaseException:
                self._close()
                raise
        if not ended.status.is_ok:
            raise RpcFailed(method, ended.status)
        if len(messages) != 1:
            raise RpcFailed(method, Status(StatusCode.INTERNAL, f"{len(messages)} answers where one was due"))
        return messages[0]

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _attempt(
        self, method: str, request: bytes, metadata: Metadata, deadline: float
    ) -> tuple[CallEnded, list[bytes]]:
        if self._link is None or not self._link.is_usable():
            self._close()
            connect_by = min(deadline, time.monotonic() + self._connect_timeout_s)
            self._link = _Link(self._target, self._config, connect_by)
        return self._link.call(method, request, metadata, deadline)


class _Link:
    """One connected socket and the endpoint on it."""

    def __init__(self, target: UnixTarget | TcpTarget, config: RpcConfig, deadline: float) -> None:
        self._target = target
        scheme = "https" if isinstance(target, TcpTarget) and target.tls else "http"
        self._endpoint = ClientEndpoint(authority=authority_of(target), scheme=scheme, config=config)
        try:
            self._socket = _connect(target, deadline)
        except OSError as error:
            raise unreachable(target, error) from error

    def is_usable(self) -> bool:
        """Whether a new call can go out; takes in what the peer said since the last one."""
        self._socket.settimeout(0)
        try:
            while True:
                data = self._socket.recv(READ_BYTES)
                if not data:
                    return False
                self._endpoint.receive_data(data)
        except (BlockingIOError, ssl.SSLWantReadError):
            return self._endpoint.http.can_open_stream
        except OSError:
            return False

    def call(self, method: str, request: bytes, metadata: Metadata, deadline: float) -> tuple[CallEnded, list[bytes]]:
        timeout_s = max(deadline - time.monotonic(), 0.001)
        call = self._endpoint.start_call(method, metadata=metadata, timeout_s=timeout_s)
        call.send(request)
        call.end_sending()
        try:
            return self._finish(call, deadline)
        except TimeoutError as error:
            status = Status(StatusCode.DEADLINE_EXCEEDED, f"no answer from {self._target} within {timeout_s:.1f} s")
            call.abort(status)
            raise RpcFailed(method, status, hint="the peer is reached but slow: look at its log and load") from error
        except OSError as error:
            raise unreachable(self._target, error) from error

    def _finish(self, call: ClientCall, deadline: float) -> tuple[CallEnded, list[bytes]]:
        messages: list[bytes] = []
        farewell = ""
        while True:
            # A peer that hung up may have said why before.
            with contextlib.suppress(BrokenPipeError):
                self._flush(deadline)
            data = self._receive(deadline)
            if not data:
                reason = f"{self._target} closed the connection{farewell}"
                raise PeerUnreachable(reason, hint="look at the log of the peer", error_class="connection-lost")
            for event in self._endpoint.receive_data(data):
                if isinstance(event, MessagesReceived) and event.call is call:
                    messages += event.messages
                    for message in event.messages:
                        call.consume(len(message))
                elif isinstance(event, CallEnded) and event.call is call:
                    with contextlib.suppress(OSError):
                        self._flush(deadline)
                    return event, messages
                elif isinstance(event, GoingAway):
                    farewell = f" ({event.code.name} {event.debug})".replace(" )", ")")

    def _flush(self, deadline: float) -> None:
        while data := self._endpoint.data_to_send():
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(data)

    def _receive(self, deadline: float) -> bytes:
        self._socket.settimeout(_left(deadline))
        return self._socket.recv(READ_BYTES)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._endpoint.http.close()
            self._socket.settimeout(0)
            self._socket.send(self._endpoint.data_to_send())
        self._socket.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connect(target: UnixTarget | TcpTarget, deadline: float) -> socket.socket:
    if isinstance(target, TcpTarget):
        return _connect_tcp(target, deadline)
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        raw.settimeout(_left(deadline))
        raw.connect(target.path)
    except BaseException:
        raw.close()
        raise
    return raw


def _connect_tcp(target: TcpTarget, deadline: float) -> socket.socket:
    raw = socket.create_connection((target.host, target.port), timeout=_left(deadline))
    try:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.tls is None:
            return raw
        raw.settimeout(_left(deadline))
        secure = target.tls.wrap_socket(raw, server_hostname=target.server_name or target.host)
    except BaseException:
        raw.close()
        raise
    if secure.selected_alpn_protocol() != "h2":
        secure.close()
        raise NotHttp2
    return secure
