"""The dashboard over HTTP: who gets what, what is refused, and what changes while somebody looks."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from garboard.errors import NotReady
from garboard.fleet.dashboard import overview_of
from garboard.kube.resources import Resource
from garboard.node.fleet.dashboard import watching
from garboard.node.fleet.dashboard.serving import DashboardOptions, DashboardPages, _own_certificate, _tls
from garboard.node.fleet.dashboard.viewers import Viewers
from garboard.node.fleet.dashboard.watching import FleetWatch
from garboard.tunnel.web import serve_requests
from tests.support.fleet.dashboard_fleet import EVERYTHING, LOG, pool
from tests.support.fleet.reviewing_cluster import ALICE, BOB, ReviewingCluster
from tests.support.kube.fake_cluster import lost
from tools.harness.certificates import make_certificates

PREFIX = "/secret"


@dataclass
class Answer:
    status: int
    fields: dict[str, str]
    text: str


@dataclass
class Served:
    """A dashboard that is being served, and its fleet."""

    cluster: ReviewingCluster
    watch: FleetWatch
    port: int
    tls: ssl.SSLContext | None = None
    hosts: list[str] = field(default_factory=list)

    async def get(self, target: str, method: str = "GET", **fields: str) -> Answer:
        named = {"Host": f"127.0.0.1:{self.port}", **{key.replace("_", "-"): value for key, value in fields.items()}}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return await self.send(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode())

    async def send(self, data: bytes) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, limit=1 << 22)
        try:
            writer.write(data)
            async with asyncio.timeout(60):
                return read_answer(await reader.read())
        finally:
            writer.close()


def read_answer(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    return Answer(int(line.split()[1]), dict(each.split(": ", 1) for each in lines), body.decode())


@asynccontextmanager
async def served(
    *, for_others: bool = False, held_s: float = 0.3, namespace: str = "", most: int = 50
) -> AsyncIterator[Served]:
    """Serve the example fleet, with its objects listed."""
    cluster = ReviewingCluster()
    for each in EVERYTHING:
        cluster.put(each["kind"], each)
    watch, hosts = FleetWatch(cluster, namespace), list[str]()
    work = asyncio.create_task(watch.run())
    viewers = Viewers(cluster) if for_others else None
    pages = DashboardPages(
        watch, viewers=viewers, prefix="" if for_others else PREFIX, hosts=None if for_others else hosts, held_s=held_s
    )
    try:
        async with asyncio.timeout(60):
            while not watch.is_synced:
                await asyncio.sleep(0)
        async with serve_requests("127.0.0.1", 0, pages.answer, most=most) as port:
            hosts.append(f"127.0.0.1:{port}")
            yield Served(cluster, watch, port, hosts=hosts)
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


def told(story: Callable[[Served], Awaitable[None]], **how: Any) -> None:
    async def scenario() -> None:
        async with served(**how) as each:
            await story(each)

    asyncio.run(scenario())


def test_own_dashboard_is_behind_a_path_that_nobody_else_knows() -> None:
    async def story(server: Served) -> None:
        page = await server.get(f"{PREFIX}/")
        assert page.status == 200
        assert "ManifestPatchNoMatch" in page.text
        assert page.fields["Content-Type"] == "text/html; charset=utf-8"
        for path in ("/", "/fragment", "/dashboard.js", "/secreT/", "/secret", "", "/secret/x", "/healthz"):
            refused = await server.get(path or "*")
            assert (refused.status, refused.text) == (404, "there is no such page\n"), path

    told(story)


@pytest.mark.parametrize(
    "host", ["evil.example.com", "127.0.0.1", "127.0.0.1:1", "localhost", "", "a,127.0.0.1:{port}"]
)
def test_own_dashboard_answers_to_its_own_name_alone(host: str) -> None:
    """A page of elsewhere whose name was made to lead here has that name in its requests."""

    async def story(server: Served) -> None:
        for target in (f"{PREFIX}/", f"{PREFIX}/fragment", f"{PREFIX}/dashboard.js", "/"):
            refused = await server.get(target, Host=host.format(port=server.port))
            assert refused.status == 421
            assert "edge" not in refused.text
        bare = await server.send(f"GET {PREFIX}/ HTTP/1.1\r\n\r\n".encode())
        assert bare.status == 421

    told(story)


@pytest.mark.parametrize("path", ["/", "/fragment", "/log?kind=ClusterProvision&namespace=failed&name=failed-0"])
def test_others_need_a_token_that_is_accepted_and_allowed(path: str) -> None:
    async def story(server: Served) -> None:
        for fields, status in (
            ({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": f"Bearer {BOB}"}, 403),
            ({"Authorization": f"Bearer {ALICE}"}, 200),
        ):  # fmt: skip
            found = await server.get(path, Host="any.example.com", **fields)
            assert found.status == status
            assert (found.fields.get("WWW-Authenticate") == "Bearer") == (status == 401)
            assert ("edge" in found.text or "line 79" in found.text) == (status == 200)
        refused = await server.get(path, Authorization=f"Bearer {BOB}")
        assert refused.text == "bob may not list clusterpools.hive.openshift.io in all namespaces"

    told(story, for_others=True)


def test_browser_without_a_token_gets_the_form_to_sign_in() -> None:
    async def story(server: Served) -> None:
        page = await server.get("/")
        assert page.status == 401
        assert '<form id="sign-in" method="get">' in page.text
        for path, kind in (("/dashboard.css", "text/css"), ("/dashboard.js", "text/javascript")):
            found = await server.get(path)
            assert found.status == 200
            assert found.fields["Content-Type"].startswith(kind)

    told(story, for_others=True)


def test_kubelet_is_told_whether_it_is_well_and_ready() -> None:
    async def story(server: Served) -> None:
        assert (await server.get("/healthz")).text == "ok"
        assert (await server.get("/readyz")).status == 200
        early = DashboardPages(FleetWatch(server.cluster), viewers=Viewers(server.cluster))
        async with serve_requests("127.0.0.1", 0, early.answer) as port:
            found = await Served(server.cluster, server.watch, port).get("/readyz")
            assert found.status == 503

    told(story, for_others=True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_nothing_but_reading_is_answered(method: str) -> None:
    async def story(server: Served) -> None:
        before = len(server.cluster.requests)
        assert (await server.get(f"{PREFIX}/", method)).status == 405
        assert server.cluster.writes == []
        assert len(server.cluster.requests) == before

    told(story)


def test_head_has_no_body() -> None:
    async def story(server: Served) -> None:
        found = await server.get(f"{PREFIX}/", "HEAD")
        assert (found.status, found.text) == (200, "")
        assert int(found.fields["Content-Length"]) > 1000

    told(story)


@pytest.mark.parametrize("target", ["/", f"{PREFIX}/", f"{PREFIX}/log", f"{PREFIX}/dashboard.js"])
def test_every_answer_has_the_guards_of_browsers(target: str) -> None:
    async def story(server: Served) -> None:
        fields = (await server.get(target)).fields
        policy = fields["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert fields["Cache-Control"] == "no-store"
        assert fields["Referrer-Policy"] == "no-referrer"
        assert fields["X-Content-Type-Options"] == "nosniff"
        assert fields["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in fields

    told(story)


def test_fragment_comes_once_something_is_new() -> None:
    async def story(server: Served) -> None:
        first = await server.get(f"{PREFIX}/fragment")
        tag = first.fields["ETag"].strip('"')
        assert re.search(f'data-tag="{tag}"', (await server.get(f"{PREFIX}/")).text)
        waiting = asyncio.create_task(server.get(f"{PREFIX}/fragment?seen={tag}"))
        await asyncio.sleep(0)
        server.cluster.put("ClusterPool", pool("brand-new", 4))
        second = await waiting
        assert second.status == 200
        assert "brand-new" in second.text
        assert second.fields["ETag"] != first.fields["ETag"]

    told(story, held_s=50.0)


def test_fragment_is_nothing_when_nothing_is_new_for_a_while() -> None:
    async def story(server: Served) -> None:
        tag = (await server.get(f"{PREFIX}/fragment")).fields["ETag"].strip('"')
        waiting = asyncio.create_task(server.get(f"{PREFIX}/fragment?seen={tag}"))
        await asyncio.sleep(0)
        server.cluster.put("Namespace", {"metadata": {"name": "other"}}, api_version="v1")
        found = await waiting
        assert (found.status, found.text) == (204, "")

    told(story)


def test_change_that_is_not_looked_at_is_nothing_new() -> None:
    async def story(server: Served) -> None:
        query = "stage=ready&pool=fleet/edge"
        tag = (await server.get(f"{PREFIX}/fragment?{query}")).fields["ETag"].strip('"')
        server.cluster.put("ClusterPool", pool("brand-new", 4))
        assert (await server.get(f"{PREFIX}/fragment?{query}&seen={tag}")).status == 204
        assert "brand-new" in (await server.get(f"{PREFIX}/")).text

    told(story, held_s=1.5)


def test_busy_fleet_is_shown_twice_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(*words: Any) -> Any:
        nonlocal made
        made += 1
        return overview_of(*words)

    monkeypatch.setattr("garboard.node.fleet.dashboard.watching.overview_of", counted)

    async def story(server: Served) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(100):
            server.cluster.put("ClusterPool", pool(f"pool-{number:03}"))
            await server.get(f"{PREFIX}/fragment")
        took_s = loop.time() - began
        assert 1 <= made <= took_s / watching.SHORTEST_S + 2
        async with asyncio.timeout(60):
            while "pool-099" not in (await server.get(f"{PREFIX}/fragment")).text:
                await asyncio.sleep(0.05)

    told(story)


def test_whole_log_is_answered_as_plain_text() -> None:
    async def story(server: Served) -> None:
        found = await server.get(f"{PREFIX}/log?kind=ClusterProvision&namespace=failed&name=failed-0")
        assert (found.status, found.text) == (200, LOG + "\n")
        assert found.fields["Content-Type"] == "text/plain; charset=utf-8"
        for query in ("", "kind=Secret&namespace=failed&name=failed-0", "kind=ClusterProvision&namespace=x&name=y"):
            assert (await server.get(f"{PREFIX}/log?{query}")).status == 404

    told(story)


def test_server_that_cannot_be_reached_is_told_until_it_can() -> None:
    async def story(server: Served) -> None:
        server.cluster.fail(lost, "list", times=1000)
        server.cluster.fail(lost, "watch", times=1000)
        server.cluster.end_watches(lost("the watch"))
        async with asyncio.timeout(200):
            while "This may be out of date" not in (found := await server.get(f"{PREFIX}/fragment")).text:
                await asyncio.sleep(0.05)
            assert "fleet/edge" in found.text
            server.cluster.faults.clear()
            while "This may be out of date" in (await server.get(f"{PREFIX}/fragment")).text:
                await asyncio.sleep(0.05)

    told(story)


def test_dashboard_of_one_namespace_asks_for_no_other_pools() -> None:
    async def story(server: Served) -> None:
        server.cluster.put("ClusterPool", {**pool("other"), "metadata": {"name": "other", "namespace": "elsewhere"}})
        found = await server.get(f"{PREFIX}/")
        assert "namespace fleet" in found.text
        assert "elsewhere" not in found.text
        asked_for = {each.selection.kind: each.selection.namespace for each in server.watch._reflectors.values()}
        assert asked_for["ClusterPool"] == asked_for["ClusterClaim"] == "fleet"
        assert asked_for["ClusterDeployment"] == ""

    told(story, namespace="fleet")


def test_missing_kinds_are_told() -> None:
    async def scenario() -> None:
        cluster = ReviewingCluster(resources=(Resource("Other", "v1", "others"),))
        with pytest.raises(NotReady, match="no ClusterPools") as told_:
            await FleetWatch(cluster).check()
        assert told_.value.hint == "garboard fleet install"

    asyncio.run(scenario())


def test_no_secret_is_asked_for() -> None:
    async def story(server: Served) -> None:
        await server.get(f"{PREFIX}/")
        asked = {each for _, each in server.cluster.requests}
        assert asked == {"ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterProvision", "ClusterDeprovision"}

    told(story)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\r\n\r\n", id="nothing"),
        pytest.param(b"GET\r\n\r\n", id="no path"),
        pytest.param(b"\xff\xfe\x00 \xff\r\n\xff:\xff\r\n\r\n", id="noise"),
        pytest.param(b"GET /\xe2\x80\xa8 HTTP/1.1\r\nHost\r\n: x\r\n\r\n", id="fields without names"),
        pytest.param(b"GET http://127.0.0.1/secret/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", id="a whole URL"),
    ],
)
def test_senseless_requests_get_an_answer_that_says_nothing(data: bytes) -> None:
    async def story(server: Served) -> None:
        found = await server.send(data)
        assert found.status in (404, 405, 421)
        assert "edge" not in found.text
        assert (await server.get(f"{PREFIX}/")).status == 200

    told(story)


def test_head_that_is_too_large_is_not_waited_for() -> None:
    async def story(server: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with suppress(ConnectionError):
            writer.write(b"GET / HTTP/1.1\r\nX: " + b"a" * 300_000)
            await writer.drain()
        async with asyncio.timeout(60):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()

    told(story)


@pytest.mark.parametrize("part", [b"", b"GET /secret/ HTTP/1.1\r\nHost: 127"])
def test_clients_that_do_not_ask_are_dropped_and_hold_up_nobody(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(server: Served) -> None:
        monkeypatch.setattr("garboard.tunnel.web.REQUEST_TIMEOUT_S", 1.0)
        slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(8)]
        for _, writer in slow:
            writer.write(part)
        await asyncio.sleep(0)
        monkeypatch.setattr("garboard.tunnel.web.REQUEST_TIMEOUT_S", 60.0)
        assert (await server.get(f"{PREFIX}/dashboard.css")).status == 200
        async with asyncio.timeout(100):
            for reader, _ in slow:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
        for _, writer in slow:
            writer.close()

    told(story)


def test_of_too_many_clients_the_oldest_makes_room() -> None:
    async def story(server: Served) -> None:
        first = await asyncio.open_connection("127.0.0.1", server.port)
        others = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(5)]
        assert (await server.get(f"{PREFIX}/dashboard.css")).status == 200
        async with asyncio.timeout(60):
            with suppress(ConnectionError):
                assert await first[0].read() == b""
        for _, writer in (first, *others):
            writer.close()

    told(story, most=5)


def test_certificate_that_is_made_serves_tls() -> None:
    async def scenario() -> None:
        cluster = ReviewingCluster()
        pages = DashboardPages(FleetWatch(cluster), viewers=Viewers(cluster))
        context = _own_certificate(datetime.now(UTC))
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        async with serve_requests("127.0.0.1", 0, pages.answer, tls=context) as port:
            found = await Served(cluster, FleetWatch(cluster), port, trusting).get("/healthz")
            assert found.text == "ok"
            with pytest.raises((ConnectionError, IndexError, ValueError)):  # plain HTTP gets nothing
                await Served(cluster, FleetWatch(cluster), port).get("/healthz")

    asyncio.run(scenario())


def test_certificate_of_a_file_is_read_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.node.fleet.dashboard.serving._REFRESH_S", 0.05)
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first, second = make_certificates(tmp_path / "first"), make_certificates(tmp_path / "second")
    address = ("127.0.0.1", 0)
    options = DashboardOptions(address=address, certificate=first.server, key=first.server_key)

    async def scenario() -> None:
        cluster = ReviewingCluster()
        watch = FleetWatch(cluster)
        pages = DashboardPages(watch, viewers=Viewers(cluster))
        async with _tls(options) as tls, serve_requests(*address, pages.answer, tls=tls) as port:
            of_first, of_second = (ssl.create_default_context(cafile=each.ca) for each in (first, second))
            assert (await Served(cluster, watch, port, of_first).get("/healthz")).text == "ok"
            with pytest.raises(ssl.SSLCertVerificationError):
                await Served(cluster, watch, port, of_second).get("/healthz")
            second.server.replace(first.server)
            second.server_key.replace(first.server_key)
            async with asyncio.timeout(60):
                while True:
                    with suppress(ssl.SSLCertVerificationError):
                        assert (await Served(cluster, watch, port, of_second).get("/healthz")).text == "ok"
                        return
                    await asyncio.sleep(0.05)

    asyncio.run(scenario())


def test_certificate_that_is_not_there_is_told(tmp_path: Path) -> None:
    options = DashboardOptions(address=("", 0), certificate=tmp_path / "a.crt", key=tmp_path / "a.key")

    async def scenario() -> None:
        with pytest.raises(NotReady, match=r"a\.crt is missing"):
            async with _tls(options):
                pass

    asyncio.run(scenario())
