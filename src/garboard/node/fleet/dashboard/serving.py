"""The dashboard as a server: on loopback for the one who started it, or with TLS for those whom the API server knows.

It only reads, and answers from what it has watched: requests of viewers cost the API server their reviews alone.
"""

import asyncio
import hashlib
import logging
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives import serialization

from garboard.fleet.dashboard import DASHBOARD_STYLE, SCRIPT, DashboardQuery, dashboard_page
from garboard.fleet.dashboard.rows import log_of
from garboard.kube.aio import AioKubeClient
from garboard.net.tls import new_server_context
from garboard.node.fleet.control.serving import find_access
from garboard.node.fleet.dashboard.viewers import Viewers
from garboard.node.fleet.dashboard.watching import FleetWatch, Fragment
from garboard.pki.inputs import CA_CERTIFICATE_VALIDITY, KeyAlgorithm
from garboard.pki.issue import certificate_pem, issue_ca, issue_leaf
from garboard.pki.keys import SystemKeys, private_key_pem
from garboard.pki.names import sort_names
from garboard.pki.spec import BACKDATE, SERVER_AUTH, CertRequest
from garboard.tunnel.tls import KeyPair, ListenerKeys, ListenerTls, TlsPolicy
from garboard.tunnel.web import OK, Page, PageRequest, serve_requests
from garboard.values import dataclass

log = logging.getLogger("garboard.fleet")

LOOPBACK: Final = "127.0.0.1"
# A browser that has seen everything gets an answer after so long, and asks again.
HELD_S: Final = 20.0
# Who comes before the objects have been listed waits for them, and then sees what there is.
FIRST_LIST_S: Final = 5.0
_REFRESH_S: Final = 60.0
_MOST_CLIENTS: Final = 200
_TEXT, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)
# Of every answer: nothing is loaded from elsewhere, framed, kept, guessed, or told to others.
_GUARDS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_NOT_YET: Final = Page(HTTPStatus.SERVICE_UNAVAILABLE, "the objects have not been listed yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardOptions:
    """Where it is served: at an address for others, else on a port of loopback."""

    kubeconfig: str | None = None
    namespace: str = ""
    port: int = 0
    address: tuple[str, int] | None = None
    certificate: Path | None = None
    key: Path | None = None


class DashboardPages:
    """Answers requests. With `viewers`, each of them needs a token; else the path begins with a secret.

    `hosts` are the names under which it may be called, so that no page of elsewhere can have its own name lead here;
    None are all: what needs a token is protected by that.
    """

    def __init__(
        self,
        watch: FleetWatch,
        *,
        viewers: Viewers | None = None,
        prefix: str = "",
        hosts: Collection[str] | None = None,
        server: str = "",
        held_s: float = HELD_S,
    ) -> None:
        self._watch, self._viewers, self._prefix, self._hosts = watch, viewers, prefix, hosts
        self._server, self._held_s = server, held_s

    async def answer(self, request: PageRequest) -> Page:
        page = await self._answer(request)
        return Page(page.status, page.text, page.location, page.kind, (*page.fields, *_GUARDS))

    async def _answer(self, request: PageRequest) -> Page:
        if self._hosts is not None and request.fields.get("host", "").lower() not in self._hosts:
            return Page(HTTPStatus.MISDIRECTED_REQUEST, "this is served under the address that the command printed\n")
        if self._viewers is not None and request.path in ("/healthz", "/readyz"):
            return OK if request.path == "/healthz" or self._watch.is_synced else _NOT_YET
        if not secrets.compare_digest(request.path[: len(self._prefix)].encode(), self._prefix.encode()):
            return _missing()
        path = request.path[len(self._prefix) :]
        if path == "/dashboard.css":
            return Page(HTTPStatus.OK, DASHBOARD_STYLE, kind="text/css; charset=utf-8")
        if path == "/dashboard.js":
            return Page(HTTPStatus.OK, SCRIPT, kind="text/javascript; charset=utf-8")
        if path not in ("/", "/fragment", "/log"):
            return _missing()
        if self._viewers is not None:
            verdict = await self._viewers.check(request.fields.get("authorization", ""))
            if not verdict.is_allowed:
                return _refused(verdict.status, verdict.reason, is_page=path == "/")
        await self._watch.wait_until_synced(FIRST_LIST_S)
        query = dict(parse_qsl(request.query))
        if path == "/log":
            return self._log(query)
        return await self._fragment(query) if path == "/fragment" else self._page(query)

    def _page(self, query: dict[str, str]) -> Page:
        found = self._watch.fragment(self._shown(query))
        return Page(HTTPStatus.OK, dashboard_page(found.overview, found.tag, server=self._server), kind=_HTML)

    async def _fragment(self, query: dict[str, str]) -> Page:
        """Answer once there is something new; nothing, after a while."""
        found = await self._watch.next_fragment(self._shown(query), query.get("seen", ""), self._held_s)
        return _page_of(found) if found is not None else Page(HTTPStatus.NO_CONTENT, "")

    def _log(self, query: dict[str, str]) -> Page:
        found = self._watch.log_of(*(query.get(name, "") for name in ("kind", "namespace", "name")))
        if found is None:
            return Page(HTTPStatus.NOT_FOUND, "there is no such attempt any more\n")
        return Page(HTTPStatus.OK, log_of(found) + "\n", kind=_TEXT)

    def _shown(self, query: dict[str, str]) -> DashboardQuery:
        return DashboardQuery.of(query, self._watch.namespace)


def _page_of(found: Fragment) -> Page:
    return Page(HTTPStatus.OK, found.html, kind=_HTML, fields=(("ETag", f'"{found.tag}"'),))


def _missing() -> Page:
    return Page(HTTPStatus.NOT_FOUND, "there is no such page\n")


def _refused(status: HTTPStatus, reason: str, *, is_page: bool) -> Page:
    """Return why somebody is not let in; a browser gets the form by which a viewer signs in."""
    fields = (("WWW-Authenticate", "Bearer"),) if status is HTTPStatus.UNAUTHORIZED else ()
    if is_page and status is HTTPStatus.UNAUTHORIZED:
        return Page(status, dashboard_page(None), kind=_HTML, fields=fields)
    return Page(status, reason, fields=fields)


async def run_dashboard(options: DashboardOptions, stopping: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; `ready` gets the URL."""
    async with AsyncExitStack() as ends:
        api = await ends.enter_async_context(AioKubeClient(lambda: find_access(options.kubeconfig)))
        watch = FleetWatch(api, options.namespace)
        await watch.check()
        serve = _serve_viewers if options.address is not None else _serve_own
        ready(await ends.enter_async_context(serve(api, watch, options)))
        work, stopped = asyncio.create_task(watch.run()), asyncio.create_task(stopping.wait())
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        for each in (work, stopped):
            each.cancel()
        await asyncio.wait((work, stopped))
        if not work.cancelled():
            work.result()


@asynccontextmanager
async def _serve_own(api: AioKubeClient, watch: FleetWatch, options: DashboardOptions) -> AsyncIterator[str]:
    """Serve the one who started it: other users of the machine can connect as well, and do not know the path."""
    prefix, hosts = f"/{secrets.token_urlsafe(18)}", list[str]()
    pages = DashboardPages(watch, prefix=prefix, hosts=hosts, server=api.server)
    async with serve_requests(LOOPBACK, options.port, pages.answer, most=_MOST_CLIENTS) as port:
        hosts += [f"{name}:{port}" for name in (LOOPBACK, "localhost")]
        yield f"http://{LOOPBACK}:{port}{prefix}/"


@asynccontextmanager
async def _serve_viewers(api: AioKubeClient, watch: FleetWatch, options: DashboardOptions) -> AsyncIterator[str]:
    """Serve everybody whom the API server lets list the fleet."""
    assert options.address is not None
    host, port = options.address
    pages = DashboardPages(watch, viewers=Viewers(api))
    async with _tls(options) as tls, serve_requests(host, port, pages.answer, tls=tls, most=_MOST_CLIENTS) as bound:
        shown = f"[{host}]" if ":" in host else host
        yield f"https://{shown}:{bound}/"


@asynccontextmanager
async def _tls(options: DashboardOptions) -> AsyncIterator[ssl.SSLContext]:
    """Serve with the certificate of a file, read again when it changes, or with one that is made now."""
    if options.certificate is None or options.key is None:
        yield _own_certificate(datetime.now(UTC))
        return
    policy = TlsPolicy(speaks_h2=False)
    keys = ListenerKeys(KeyPair(options.certificate, options.key), policy)

    async def refresh() -> None:
        while True:
            await asyncio.sleep(_REFRESH_S)
            keys.refresh()

    work = asyncio.create_task(refresh())
    try:
        yield ListenerTls(lambda _name: keys, policy).context
    finally:
        work.cancel()


def _own_certificate(now: datetime) -> ssl.SSLContext:
    """Return TLS with a certificate that nobody knows yet: the log has what it can be recognized by."""
    keys, names = SystemKeys(), sort_names(("localhost", LOOPBACK, "::1")).names
    name, begin, end = "garboard-fleet-dashboard", now - BACKDATE, now + CA_CERTIFICATE_VALIDITY
    ca = CertRequest(common_name=f"{name}-ca", not_before=begin, not_after=end)
    leaf = CertRequest(common_name=name, usages=(SERVER_AUTH,), alt_names=names, not_before=begin, not_after=end)
    made = issue_leaf(leaf, issue_ca(ca, KeyAlgorithm.ECDSA_P256, keys), KeyAlgorithm.ECDSA_P256, keys)
    digest = hashlib.sha256(made.certificate.public_bytes(serialization.Encoding.DER)).hexdigest()
    log.info("certificate.made sha256=%s", digest)
    return new_server_context(credential=certificate_pem(made.certificate) + private_key_pem(made.key))
