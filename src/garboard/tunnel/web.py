"""The health and admin ports: a few pages over plain HTTP, one request per connection."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Page:
    status: HTTPStatus
    text: str
    location: str = ""  # where to look instead
    kind: str = "text/plain; charset=utf-8"


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

    waiting: dict[asyncio.StreamWriter, None] = {}  # for their answers, the oldest first

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(waiting) >= MAX_REQUESTS:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.transport.abort()
        waiting[writer] = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(head, pages, questions or {}))
                await writer.drain()
        waiting.pop(writer, None)
        writer.close()

    try:
        server = await asyncio.start_server(answer, host or None, port, limit=MAX_REQUEST_BYTES)
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


async def _response(head: bytes, pages: Mapping[str, PageMaker], questions: Mapping[str, Question]) -> bytes:
    line = head.partition(b"\r\n")[0].decode("latin-1")
    method, _, rest = line.partition(" ")
    path, _, query = rest.partition(" ")[0].partition("?")
    maker = pages.get(path)
    if method not in ("GET", "HEAD"):
        page = Page(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered here")
    elif path in questions:
        page = await questions[path](dict(parse_qsl(query)))
    elif maker is None:
        page = Page(HTTPStatus.NOT_FOUND, "404 page not found\n")
    else:
        page = maker("verbose" in query.split("&") or "verbose=" in query)
    body = page.text.encode()
    fields = [
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *([f"Location: {page.location}"] if page.location else []),
    ]
    return "\r\n".join([*fields, "", ""]).encode() + (b"" if method == "HEAD" else body)
