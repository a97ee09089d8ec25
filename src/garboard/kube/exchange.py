"""One connection to the API server: requests and answers as bytes, and how a connection ends."""

import http.client
import select
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime

from garboard.documents import Json
from garboard.errors import ClusterUnreachable
from garboard.kube.access import Access
from garboard.kube.errors import broken, unreachable
from garboard.kube.requests import ApiRequest, read_date, read_retry_after
from garboard.net.connect import ProxyFailed
from garboard.net.https import ProxiedHttps
from garboard.values import dataclass

_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer of the API server; `date` is its header of that name."""

    status: int
    data: bytes
    date: str
    retry_after_s: float | None

    def read(self, request: ApiRequest) -> dict[str, Json]:
        """Return the object in the answer to a request; raises if it is a failure."""
        return request.read(self.status, self.data, self.retry_after_s)


class ApiConnection:
    """A connection that is opened when it is needed, kept between requests, and opened again after it has ended."""

    def __init__(self, access: Access, timeout_s: float, environment: Mapping[str, str]) -> None:
        self.server_time: datetime | None = None
        self._server = access.server
        self._prefix = access.prefix
        self._token = access.token
        self._http = ProxiedHttps(access.route(environment), access.tls(), timeout_s)

    def close(self) -> None:
        self._http.close()

    def exchange(self, request: ApiRequest) -> ApiAnswer:
        """Send a request, once, and return the answer, whatever its status."""
        was_idle = self._open()
        try:
            headers = request.headers(self._token)
            self._http.request(request.method, self._prefix + request.target, request.body, headers)
            with self._http.getresponse() as answer:
                return self._received(answer)
        except (http.client.HTTPException, OSError) as error:
            self._http.close()
            # Of an idle connection the next request learns at once that it has ended, unless somebody is silent.
            has_ended = not isinstance(error, TimeoutError)
            raise broken(self._server, error, was_idle=was_idle and has_ended) from error
        except BaseException:  # such as a signal: what is left of the answer belongs to nobody
            self._http.close()
            raise

    def _received(self, answer: http.client.HTTPResponse) -> ApiAnswer:
        date = answer.headers.get("Date") or ""
        self.server_time = read_date(date) or self.server_time
        wait_s = read_retry_after(answer.headers.get("Retry-After"), read_date(date) or datetime.now(UTC))
        return ApiAnswer(answer.status, answer.read(_MAX_BYTES), date, wait_s)

    def _open(self) -> bool:
        """Open the connection unless it is open; return whether it was."""
        if self._http.sock is not None and not _has_ended(self._http.sock.fileno()):
            return True
        self._http.close()
        try:
            self._http.connect()
        except OSError as error:
            self._http.close()
            raise _not_opened(self._server, error) from error
        return False


def _not_opened(server: str, error: OSError) -> ClusterUnreachable:
    """A load balancer without a server behind it accepts, and ends the connection at once: that may pass."""
    is_hung_up = isinstance(error, ConnectionError | ssl.SSLEOFError) and not isinstance(error, ConnectionRefusedError)
    if is_hung_up and not isinstance(error, ProxyFailed):
        return broken(server, error, is_untouched=True)
    return unreachable(server, error)


def _has_ended(descriptor: int) -> bool:
    """Say whether an idle connection is of no use: the server sends nothing unasked, unless it ends it."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
