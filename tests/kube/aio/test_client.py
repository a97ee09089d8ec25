"""The asyncio client beside a server of the library h2: what is sent, what is repeated, and how watches end."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from garboard.errors import BadDocument, ClusterUnreachable
from garboard.kube import Access, ConnectionBroken, ObjectRef, PatchFormat, ServerBusy, VersionExpired
from garboard.kube.aio import AioKubeClient, Bookmark, Changed, ObjectSelection, TimerHandle, WatchEvent
from garboard.net.proxies import ProxyAddress
from tests.support.kube.h2_server import Asked, H2Server, Handler, h2_server
from tests.support.net.proxy_server import ProxyServer, serving_proxy
from tools.harness.certificates import Certificates

MAPS = ObjectSelection(kind="ConfigMap", namespace="n")
PATH = "/api/v1/namespaces/n/configmaps"
REF = ObjectRef("ConfigMap", "n", "a")


class SkippingClock:
    """A clock on which no pause takes time, but for what others do meanwhile; it keeps the pauses."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.pauses: list[float] = []

    def now_s(self) -> float:
        return self.seconds

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> TimerHandle:
        self.pauses.append(delay_s)
        self.seconds += delay_s
        return asyncio.get_running_loop().call_soon(callback)


@dataclass
class Scene:
    server: H2Server
    client: AioKubeClient
    clock: SkippingClock
    certificates: Certificates
    accesses: list[Access] = field(default_factory=list)  # what is read from now on; the last one stays


Scenario = Callable[[Scene], Awaitable[None]]


def play(
    certificates: Certificates, handler: Handler, scenario: Scenario, *, speaks: str = "h2", **options: Any
) -> None:
    max_streams = options.pop("max_streams", 100)

    async def within() -> None:
        async with (
            h2_server(certificates, handler, max_streams=max_streams, speaks=speaks) as server,
            scene(server, certificates, **options) as on,
            asyncio.timeout(120),
        ):
            await scenario(on)

    asyncio.run(within())


@asynccontextmanager
async def scene(server: H2Server, certificates: Certificates, **options: Any) -> AsyncIterator[Scene]:
    accesses = [server.access(certificates)]

    def find_access() -> Access:
        return accesses.pop(0) if len(accesses) > 1 else accesses[0]

    clock = SkippingClock()
    given = {"clock": clock, "environment": {}, "jitter": lambda: 0.0, "timeout_s": 60.0, **options}
    async with AioKubeClient(find_access, **given) as client:
        yield Scene(server, client, clock, certificates, accesses)


def status(code: int, reason: str, message: str = "because") -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message}).encode()


def event(type_: str, **content: Any) -> bytes:
    return json.dumps({"type": type_, "object": content}).encode() + b"\n"


def changed(version: int, kind: str = "ADDED", **more: Any) -> bytes:
    return event(kind, kind="ConfigMap", metadata={"name": f"m{version}", "resourceVersion": str(version)}, **more)


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def scripted(*replies: tuple[int, bytes] | Handler) -> Handler:
    """Answer one request after the other."""
    waiting = list(replies)

    async def handler(asked: Asked) -> None:
        reply = waiting.pop(0)
        if isinstance(reply, tuple):
            await asked.answer(*reply)
        else:
            await reply(asked)

    return handler


def watching(*parts: bytes, ends: bool = True) -> Handler:
    async def handler(asked: Asked) -> None:
        asked.begin()
        for each in parts:
            await asked.send(each)
        if ends:
            await asked.send(b"", ends=True)

    return handler


async def read_all(client: AioKubeClient) -> list[WatchEvent]:
    async with client.watch(MAPS, "0") as events:
        return [each async for each in events]


async def hung_up(asked: Asked) -> None:
    asked.hang_up()


async def refused(asked: Asked) -> None:
    asked.refuse()


def test_many_watches_and_requests_share_one_connection(certificates: Certificates) -> None:
    async def handler(asked: Asked) -> None:
        if "watch=true" not in asked.query:
            await asked.answer(200)
            return
        asked.begin()
        await asked.send(changed(1))
        await forever()

    async def scenario(on: Scene) -> None:
        seen: list[Any] = []
        all_began = asyncio.Event()

        async def follow() -> None:
            async with on.client.watch(MAPS, "0") as events:
                async for each in events:
                    seen.append(each)
                    if len(seen) == 30:
                        all_began.set()

        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(follow()) for _ in range(30)]
            await all_began.wait()
            await asyncio.gather(*(on.client.require(REF) for _ in range(30)))
            for each in watches:
                each.cancel()
        assert on.client.connections_opened == on.server.connections == 1

    play(certificates, handler, scenario)


def test_another_connection_is_opened_where_all_streams_are_taken(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        async with on.client.watch(MAPS, "0"), on.client.watch(MAPS, "0"):
            await on.client.require(REF)
            assert on.server.connections == 2

    silent = watching(ends=False)
    play(certificates, scripted(silent, silent, (200, b"{}")), scenario, max_streams=2)


def test_request_says_who_asks_and_what_a_watch_wants(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        async with on.client.watch(replace(MAPS, labels="a=b"), "17") as events:
            assert [each async for each in events] == []
        (asked,) = on.server.asked
        assert asked.headers["authorization"] == "Bearer one"
        assert sorted(asked.query.split("&")) == [
            "allowWatchBookmarks=true", "labelSelector=a%3Db", "resourceVersion=17", "timeoutSeconds=300", "watch=true",
        ]  # fmt: skip

    play(certificates, watching(), scenario)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_events_are_whole_however_they_arrive(certificates: Certificates, size: int) -> None:
    told = [
        changed(1),
        event("BOOKMARK", metadata={"resourceVersion": "5"}),
        changed(6, "DELETED", data={"x": "é" * 99}),
    ]
    text = b"".join(told)

    async def scenario(on: Scene) -> None:
        async with on.client.watch(MAPS, "0") as events:
            seen = [each async for each in events]
        assert [type(each) for each in seen] == [Changed, Bookmark, Changed]
        assert seen[1] == Bookmark("5")
        assert isinstance(seen[2], Changed)
        assert seen[2].type == "DELETED"
        assert seen[2].content["data"] == {"x": "é" * 99}

    play(certificates, watching(*(text[at : at + size] for at in range(0, len(text), size))), scenario)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((410, status(410, "Expired")), VersionExpired),
        (watching(event("ERROR", kind="Status", code=410, reason="Expired", message="too old")), VersionExpired),
        (watching(event("ERROR", kind="Status", code=504, reason="Timeout", message="too large")), ServerBusy),
        ((503, status(503, "ServiceUnavailable")), ServerBusy),
        (watching(changed(1)[:-9]), ConnectionBroken),
        (hung_up, ConnectionBroken),
    ],
    ids=["gone at once", "gone later", "too large", "busy", "cut within an event", "hung up"],
)
def test_watch_ends_with_what_went_wrong(certificates: Certificates, reply: Any, error: type[Exception]) -> None:
    async def scenario(on: Scene) -> None:
        with pytest.raises(error):
            await read_all(on.client)

    play(certificates, scripted(reply), scenario)


def test_what_is_cancelled_gives_its_stream_up_and_nothing_else(certificates: Certificates) -> None:
    began = asyncio.Event()

    async def handler(asked: Asked) -> None:
        if asked.line.endswith("/b"):
            began.set()
            await forever()
        await asked.answer(200)

    async def scenario(on: Scene) -> None:
        waiting = asyncio.ensure_future(on.client.require(ObjectRef("ConfigMap", "n", "b")))
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await on.client.require(REF)
        assert on.server.given_up == [f"GET {PATH}/b"]
        assert on.server.connections == 1

    play(certificates, handler, scenario)


def test_server_that_leaves_lets_its_watches_go_on(certificates: Certificates) -> None:
    told = asyncio.Event()

    async def leaving(asked: Asked) -> None:
        asked.begin()
        asked.say_goodbye()
        await asked.send(changed(1))
        await told.wait()
        await asked.send(changed(2), ends=True)

    async def scenario(on: Scene) -> None:
        async with on.client.watch(MAPS, "0") as events:
            await anext(events)
            await on.client.require(REF)
            told.set()
            assert len([each async for each in events]) == 1
        assert on.server.connections == 2

    play(certificates, scripted(leaving, (200, b"{}")), scenario)


def test_create_that_was_not_taken_is_sent_again(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        assert await on.client.create(REF, {"metadata": {"name": "a"}}) == {"made": True}
        assert on.server.lines == [f"POST {PATH}"] * 2

    play(certificates, scripted(refused, (201, b'{"made": true}')), scenario)


def test_create_whose_answer_was_lost_is_looked_for(certificates: Certificates) -> None:
    held = b'{"metadata": {"name": "a", "uid": "u"}, "data": {"x": "1"}}'

    async def scenario(on: Scene) -> None:
        made = await on.client.create(REF, {"metadata": {"name": "a"}, "data": {"x": "1"}})
        assert made == json.loads(held)
        assert on.server.lines == [f"POST {PATH}", f"GET {PATH}/a"]

    play(certificates, scripted(hung_up, (200, held)), scenario)


def test_change_that_cannot_be_told_from_none_is_not_repeated(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        with pytest.raises(ConnectionBroken):
            await on.client.patch(REF, [{"op": "remove", "path": "/data"}], PatchFormat.JSON)
        assert on.server.lines == [f"PATCH {PATH}/a"]

    play(certificates, scripted(hung_up), scenario)


def test_busy_server_is_asked_again_when_it_wants(certificates: Certificates) -> None:
    async def busy(asked: Asked) -> None:
        await asked.answer(429, status(429, "TooManyRequests"), retry_after="7")

    async def scenario(on: Scene) -> None:
        assert await on.client.require(REF) == {"kind": "ConfigMap"}
        assert on.clock.pauses == [0.25, 7.0]
        assert on.server.connections == 1

    replies = ((503, status(503, "ServiceUnavailable")), busy, (200, b'{"kind": "ConfigMap"}'))
    play(certificates, scripted(*replies), scenario)


def test_patience_ends(certificates: Certificates) -> None:
    async def handler(asked: Asked) -> None:
        await asked.answer(503, status(503, "ServiceUnavailable"))

    async def scenario(on: Scene) -> None:
        with pytest.raises(ServerBusy):
            await on.client.require(REF)
        assert on.clock.seconds <= 20.0
        assert len(on.server.asked) == len(on.clock.pauses) + 1

    play(certificates, handler, scenario, patience_s=20.0)


def page(*names: str, more: str = "", version: str = "9") -> bytes:
    metadata = {"resourceVersion": version, **({"continue": more} if more else {})}
    return json.dumps({"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]}).encode()


def test_list_whose_pages_expired_is_read_as_a_whole(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        found: Any = await on.client.list_objects(MAPS)
        assert (found.version, [each["metadata"]["name"] for each in found.items]) == ("12", ["a", "b", "c"])
        assert [each["kind"] for each in found.items] == ["ConfigMap"] * 3
        assert [each.query for each in on.server.asked] == ["limit=2", "limit=2&continue=t", ""]

    replies = ((200, page("a", "b", more="t")), (410, status(410, "Expired")), (200, page("a", "b", "c", version="12")))
    play(certificates, scripted(*replies), scenario, page_size=2)


def test_list_is_of_the_version_of_its_first_page(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        found = await on.client.list_objects(MAPS)
        assert (found.version, len(found.items)) == ("9", 3)

    play(certificates, scripted((200, page("a", "b", more="t")), (200, page("c", version="11"))), scenario)


def test_reader_that_does_not_read_holds_back_its_own_watch_only(certificates: Certificates) -> None:
    sent = 0

    async def handler(asked: Asked) -> None:
        nonlocal sent
        if "watch=true" not in asked.query:
            await asked.answer(200)
            return
        asked.begin()
        for version in range(400):
            await asked.send(changed(version, data={"x": "y" * 10_000}))
            sent += 1
        await asked.send(b"", ends=True)

    async def scenario(on: Scene) -> None:
        async with on.client.watch(MAPS, "0") as events:
            await anext(events)
            for _ in range(50):
                await on.client.require(REF)
            assert sent < 300, "the server waits for the window, which is a quarter of all events"
            assert len([each async for each in events]) == 399

    play(certificates, handler, scenario)


def test_token_is_read_again_after_a_minute(certificates: Certificates) -> None:
    async def handler(asked: Asked) -> None:
        await asked.answer(200)

    async def scenario(on: Scene) -> None:
        on.accesses.append(replace(on.accesses[0], token="two"))
        for seconds in (0.0, 30.0, 31.0):
            on.clock.seconds += seconds
            await on.client.require(REF)
        tokens = [each.headers["authorization"] for each in on.server.asked]
        assert tokens == ["Bearer one", "Bearer one", "Bearer two"]
        assert on.server.connections == 1

    play(certificates, handler, scenario)


def test_access_that_cannot_be_read_for_a_moment_is_kept(certificates: Certificates) -> None:
    async def handler(asked: Asked) -> None:
        await asked.answer(200)

    async def scenario(on: Scene) -> None:
        known, failures = on.accesses[0], [BadDocument("half written", hint="h")]

        def find_access() -> Access:
            if reads and failures:
                raise failures.pop()
            reads.append(1)
            return replace(known, token=f"token-{len(reads)}")

        reads: list[int] = []
        async with AioKubeClient(find_access, clock=on.clock, environment={}) as client:
            for _ in range(3):
                await client.require(REF)
                on.clock.seconds += 61.0
        tokens = [each.headers["authorization"] for each in on.server.asked]
        assert tokens == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]

    play(certificates, handler, scenario)


def test_new_certificates_need_a_new_connection_and_the_old_one_is_closed(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        async with on.client.watch(MAPS, "0") as events:
            await anext(events)
            on.accesses[:] = [replace(on.accesses[0], credential=b"", token="two")]
            on.clock.seconds += 61.0
            await on.client.require(REF)
            assert on.server.connections == 2
            assert len(on.server.peers) == 2, "the watch goes on where it is"
        while len(on.server.peers) > 1:
            await asyncio.sleep(0)

    play(certificates, scripted(watching(changed(1), ends=False), (200, b"{}")), scenario)


def test_server_without_http2_is_told_apart(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        with pytest.raises(ClusterUnreachable, match="does not speak HTTP/2") as told:
            await on.client.require(REF)
        assert "proxy" in (told.value.hint or "")

    play(certificates, scripted(), scenario, speaks="http/1.1")


def test_silent_server_is_given_up(certificates: Certificates) -> None:
    async def silent(_asked: Asked) -> None:
        await forever()

    async def scenario(on: Scene) -> None:
        with pytest.raises(ConnectionBroken, match="did not answer in time"):
            await on.client.require(REF)

    play(certificates, silent, scenario, timeout_s=0.2, patience_s=0.1)


def test_untrusted_server_is_told_at_once(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        on.accesses[0] = replace(on.accesses[0], ca=b"")
        with pytest.raises(ClusterUnreachable, match="certificate that is not trusted"):
            await on.client.require(REF)
        assert on.clock.pauses == []

    play(certificates, scripted(), scenario)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_connection_takes_the_proxy_of_the_kubeconfig(certificates: Certificates, scheme: str) -> None:
    async def handler(asked: Asked) -> None:
        await asked.answer(200, b'{"kind": "ConfigMap"}')

    async def scenario(on: Scene) -> None:
        proxy = ProxyServer(on.server.port)
        with serving_proxy(proxy, proxy.accept_connect if scheme == "http" else proxy.accept_socks):
            on.accesses[0] = replace(on.accesses[0], proxy=ProxyAddress(scheme, "127.0.0.1", proxy.port))
            assert await on.client.require(REF) == {"kind": "ConfigMap"}
            await on.client.close()
        assert len(proxy.asked) == 1

    play(certificates, handler, scenario)


def test_proxy_that_speaks_tls_is_refused(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        on.accesses[0] = replace(on.accesses[0], proxy=ProxyAddress("https", "127.0.0.1", 1))
        with pytest.raises(ClusterUnreachable, match="speaks TLS, which is not supported here"):
            await on.client.require(REF)

    play(certificates, scripted(), scenario)


def test_nobody_listens(certificates: Certificates) -> None:
    async def scenario(on: Scene) -> None:
        on.accesses[0] = replace(on.accesses[0], port=1, server="https://127.0.0.1:1")
        with pytest.raises(ClusterUnreachable, match="refused the connection"):
            await on.client.require(REF)

    play(certificates, scripted(), scenario)
