"""The small server of pages: what it makes of a request, and what becomes of clients that take too long."""

import asyncio
from contextlib import suppress
from http import HTTPStatus

import pytest

from garboard.tunnel.web import Page, PageRequest, read_request, serve_requests


@pytest.mark.parametrize(
    ("head", "request_"),
    [
        pytest.param(
            b"GET /a?b=c&d HTTP/1.1\r\nHost: x:1\r\nACCEPT:  y \r\n\r\n",
            PageRequest("GET", "/a", "b=c&d", {"host": "x:1", "accept": "y"}),
            id="a usual one",
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
            PageRequest("GET", "/", "", {"host": "a,b"}),
            id="a field twice",
        ),
        pytest.param(b"\r\n\r\n", PageRequest("", "", "", {}), id="nothing"),
    ],
)
def test_request_is_read(head: bytes, request_: PageRequest) -> None:
    assert read_request(head) == request_


def test_fields_of_a_request_are_not_shown() -> None:
    assert "secret" not in repr(read_request(b"GET / HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"))


def test_client_that_does_not_read_its_answer_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.tunnel.web.REQUEST_TIMEOUT_S", 1.0)
    answered = asyncio.Event()

    async def large(_request: PageRequest) -> Page:
        answered.set()
        return Page(HTTPStatus.OK, "x" * (64 << 20))  # more than any socket holds

    async def scenario() -> None:
        async with serve_requests("127.0.0.1", 0, large) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await answered.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            async with asyncio.timeout(60):
                while any(not each.done() for each in others):
                    await asyncio.sleep(0.05)
            read = 0
            async with asyncio.timeout(60):
                with suppress(ConnectionError):
                    while part := await reader.read(1 << 20):
                        read += len(part)
            assert read < 64 << 20
            writer.close()

    asyncio.run(scenario())


def test_answer_has_the_fields_that_a_page_gives_it() -> None:
    async def guarded(_request: PageRequest) -> Page:
        return Page(HTTPStatus.NO_CONTENT, "", fields=(("X-Guard", "yes"),))

    async def scenario() -> bytes:
        async with serve_requests("127.0.0.1", 0, guarded) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(60):
                found = await reader.read()
            writer.close()
            return found

    assert b"\r\nX-Guard: yes\r\n" in asyncio.run(scenario())
