"""The blocking driver: unary calls and streamed answers, one at a time, for plain synchronous code."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from garboard.net.connect import Connection, Route, open_connection, start_tls
from garboard.retry import Deadline
from garboard.rpc.calls import CallEnded, ClientCall, MessagesReceived
from garboard.rpc.endpoint import ClientEndpoint, RpcConfig
from garboard.rpc.errors import NotHttp2, PeerUnreachable, RpcFailed, unreachable
from garboard.rpc.events import GoingAway
from garboard.rpc.metadata import Metadata
from garboard.rpc.status import Status, StatusCode
from garboard.rpc.targets import TcpTarget, UnixTarget, authority_of

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
        deadline = Deadline.after(timeout_s)
        with self._lock:
            try:
                ended, messages = self._attempt(method, request, metadata, deadline)
                if ended.is_unprocessed and deadline.left_s() > 0:
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

    def server_stream(
        self,
        method: str,
        request: bytes,
        take: Callable[[bytes], object],
        *,
        idle_s: float = CALL_TIMEOUT_S,
        metadata: Metadata = (),
    ) -> None:
        """Pass every message of the answer to `take`, as it comes. Raises `PeerUnreachable` or `RpcFailed`.

        The whole may take long; `idle_s` is how long the peer may be silent. What `take` raises ends the call.
        """
        with self._lock:
            try:
                ended = self._usable(Deadline.after(idle_s)).stream(method, request, metadata, take, idle_s)
            except BaseException:
                self._close()
                raise
        if not ended.status.is_ok:
            raise RpcFailed(method, ended.status)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _attempt(
        self, method: str, request: bytes, metadata: Metadata, deadline: Deadline
    ) -> tuple[CallEnded, list[bytes]]:
        return self._usable(deadline).call(method, request, metadata, deadline)

    def _usable(self, deadline: Deadline) -> "_Link":
        if self._link is None or not self._link.is_usable():
            self._close()
            connect_within = Deadline.after(min(deadline.left_s(), self._connect_timeout_s))
            self._link = _Link(self._target, self._config, connect_within)
        return self._link


class _Link:
    """One connected socket and the endpoint on it."""

    def __init__(self, target: UnixTarget | TcpTarget, config: RpcConfig, deadline: Deadline) -> None:
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

    def call(
        self, method: str, request: bytes, metadata: Metadata, deadline: Deadline
    ) -> tuple[CallEnded, list[bytes]]:
        timeout_s = max(deadline.left_s(), 0.001)
        call = self._start(method, request, metadata, timeout_s)
        messages: list[bytes] = []
        return self._finish(call, messages.append, lambda: deadline, timeout_s), messages

    def stream(
        self, method: str, request: bytes, metadata: Metadata, take: Callable[[bytes], object], idle_s: float
    ) -> CallEnded:
        call = self._start(method, request, metadata, None)
        silent_until = Deadline.after(idle_s)

        def taking(message: bytes) -> None:
            nonlocal silent_until
            take(message)
            silent_until = Deadline.after(idle_s)

        return self._finish(call, taking, lambda: silent_until, idle_s)

    def _start(self, method: str, request: bytes, metadata: Metadata, timeout_s: float | None) -> ClientCall:
        call = self._endpoint.start_call(method, metadata=metadata, timeout_s=timeout_s)
        call.send(request)
        call.end_sending()
        return call

    def _finish(
        self, call: ClientCall, take: Callable[[bytes], object], deadline: Callable[[], Deadline], timeout_s: float
    ) -> CallEnded:
        farewell = ""
        while True:
            data = self._exchange(call, deadline(), timeout_s)
            if not data:
                reason = f"{self._target} closed the connection{farewell}"
                raise PeerUnreachable(reason, hint="look at the log of the peer", error_class="connection-lost")
            for event in self._endpoint.receive_data(data):
                if isinstance(event, MessagesReceived) and event.call is call:
                    for message in event.messages:
                        take(message)
                        call.consume(len(message))
                elif isinstance(event, CallEnded) and event.call is call:
                    with contextlib.suppress(OSError):
                        self._flush(deadline())
                    return event
                elif isinstance(event, GoingAway):
                    farewell = f" ({event.code.name} {event.debug})".replace(" )", ")")

    def _exchange(self, call: ClientCall, deadline: Deadline, timeout_s: float) -> bytes:
        """Send what is due, and return what the peer says next; nothing if it hung up."""
        try:
            # A peer that hung up may have said why before.
            with contextlib.suppress(BrokenPipeError, ssl.SSLEOFError):
                self._flush(deadline)
            return self._receive(deadline)
        except TimeoutError as error:
            status = Status(StatusCode.DEADLINE_EXCEEDED, f"no answer from {self._target} within {timeout_s:.1f} s")
            call.abort(status)
            hint = "the peer is reached but slow: look at its log and load"
            raise RpcFailed(call.method, status, hint=hint) from error
        except ssl.SSLError as error:
            # The handshake is over: a peer that does not accept our certificate sends an alert, and others just break.
            is_refused = "ALERT" in (error.reason or "")
            raise unreachable(self._target, error if is_refused else ConnectionResetError()) from error
        except OSError as error:
            raise unreachable(self._target, error) from error

    def _flush(self, deadline: Deadline) -> None:
        while data := self._endpoint.data_to_send():
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(data)

    def _receive(self, deadline: Deadline) -> bytes:
        self._socket.settimeout(_left(deadline))
        return self._socket.recv(READ_BYTES)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._endpoint.http.close()
            self._socket.settimeout(0)
            self._socket.send(self._endpoint.data_to_send())
        self._socket.close()


def _left(deadline: Deadline) -> float:
    """Return what is left for a socket to wait; once nothing is, raise what a socket would."""
    left_s = deadline.left_s()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _connect(target: UnixTarget | TcpTarget, deadline: Deadline) -> Connection:
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


def _connect_tcp(target: TcpTarget, deadline: Deadline) -> Connection:
    raw = open_connection(Route(target.host, target.port, target.proxy), _left(deadline))
    if target.tls is None:
        return raw
    raw.settimeout(_left(deadline))
    secure = start_tls(raw, target.tls, target.server_name or target.host)
    if secure.selected_alpn_protocol() != "h2":
        secure.close()
        raise NotHttp2
    return secure
