"""The health and admin ports, and the dashboard's: pages over HTTP/1.1, one request per connection.

There is one server for all of them (`serve_requests`): heads and the time for an answer are bounded, and of too many
clients at once the oldest makes room.
"""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from garboard.errors import NotReady
from garboard.lazy import lazy_module
from garboard.values import Json

if TYPE_CHECKING:
    from garboard import documents
else:  # most programs run for months and are never asked for JSON
    documents = lazy_module("garboard.documents")

REQUEST_TIMEOUT_S: Final = 60.0
MAX_REQUESTS: Final = 50  # at once; the oldest makes room, so that silent clients do not keep a probe out
MAX_REQUEST_BYTES: Final = 64 * 1024


TLS_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Page:
    status: HTTPStatus
    text: str
    location: str = ""  # where to look instead
    kind: str = "text/plain; charset=utf-8"
    fields: tuple[tuple[str, str], ...] = ()  # of the head, beside those that every answer has


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request; names of fields are in lower case, and the values of one that comes twice are joined by commas."""

    method: str
    path: str
    query: str
    fields: Mapping[str, str] = field(repr=False)  # there may be a token among them


def json_page(content: Json) -> Page:
    return Page(HTTPStatus.OK, documents.write_json(content), kind="application/json")


PageMaker = Callable[[bool], Page]  # the flag: whether the query says `verbose`
Question = Callable[[Mapping[str, str]], Awaitable[Page]]  # the query, each word once
OK: Final = Page(HTTPStatus.OK, "ok")


@contextlib.asynccontextmanager
async def serve_pages(
    host: str, port: int, pages: Mapping[str, PageMaker], questions: Mapping[str, Question] | None = None
) -> AsyncIterator[int]:
    """Serve while the context is open; the port is yielded, since 0 takes any free one.

    A page is made at once, the answer to a question may take a while.
    """

    async def answer(request: PageRequest) -> Page:
        path = request.path
        if path in (questions or {}):
            return await (questions or {})[path](dict(parse_qsl(request.query)))
        maker = pages.get(path)
        if maker is None:
            return Page(HTTPStatus.NOT_FOUND, "404 page not found\n")
        return maker("verbose" in request.query.split("&") or "verbose=" in request.query)

    async with serve_requests(host, port, answer) as bound:
        yield bound


@contextlib.asynccontextmanager
async def serve_requests(
    host: str,
    port: int,
    answer: Callable[[PageRequest], Awaitable[Page]],
    *,
    tls: ssl.SSLContext | None = None,
    most: int = MAX_REQUESTS,
) -> AsyncIterator[int]:
    """Serve while the context is open: requests that only read; the port is yielded, since 0 takes any free one."""

    waiting: dict[asyncio.StreamWriter, None] = {}  # for their answers, the oldest first

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(waiting) >= most:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.transport.abort()
        waiting[writer] = None
        writer.transport.set_write_buffer_limits(0)  # an answer is written once the client has taken it
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                writer.write(await _response(await reader.readuntil(b"\r\n\r\n"), answer))
                await writer.drain()
        except (
            OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, asyncio.CancelledError,
        ):  # fmt: skip  # cancelled is one that is still held when the server ends
            writer.transport.abort()
        finally:
            waiting.pop(writer, None)
            writer.close()

    limit_s = TLS_TIMEOUT_S if tls is not None else None
    try:
        server = await asyncio.start_server(
            serve, host or None, port, limit=MAX_REQUEST_BYTES, ssl=tls, ssl_handshake_timeout=limit_s
        )
    except OSError as error:
        raise cannot_listen(f"{host or '*'}:{port}", error) from error
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


def cannot_listen(place: str, error: OSError) -> NotReady:
    return NotReady(
        f"cannot listen on {place}: {os.strerror(error.errno) if error.errno else error}",
        hint="see who has the address (`ss -lntp`, `ss -lxp`), or choose another",
        error_class="cannot-listen",
    )


async def _response(head: bytes, answer: Callable[[PageRequest], Awaitable[Page]]) -> bytes:
    request = read_request(head)
    if request.method not in ("GET", "HEAD"):
        page = Page(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered here")
    else:
        page = await answer(request)
    body = page.text.encode()
    fields = [
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *([f"Location: {page.location}"] if page.location else []),
        *(f"{name}: {value}" for name, value in page.fields),
    ]
    return "\r\n".join([*fields, "", ""]).encode() + (b"" if request.method == "HEAD" else body)


def read_request(head: bytes) -> PageRequest:
    """Return what the head of a request says; what makes no sense in it asks for nothing that there is."""
    line, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = line.partition(" ")
    path, _, query = rest.partition(" ")[0].partition("?")
    fields: dict[str, str] = {}
    for each in lines:
        name, colon, value = each.partition(":")
        if colon:
            key = name.lower()
            fields[key] = f"{fields[key]},{value.strip()}" if key in fields else value.strip()
    return PageRequest(method, path, query, fields)
