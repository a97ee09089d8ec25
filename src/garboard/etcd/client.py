"""A client of etcd's API in its JSON form: the endpoints tried in turn until one answers."""

import http.client
import json
import ssl
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from garboard.documents import Json
from garboard.errors import NotReady
from garboard.etcd.errors import FROM_A_LEARNER, EtcdRefused, unreachable, why
from garboard.etcd.values import Member, MemberStatus
from garboard.pki.tls import client_context

# kubeadm gives every call 2 s. Reading is as quick here; a change passes through the logs of a majority first, and
# giving up on one that then happens is worse than waiting.
READ_TIMEOUT_S = 2.0
CHANGE_TIMEOUT_S = 10.0
DEFAULT_PORT = 2379
_MAX_BYTES = 16 * 1024 * 1024
# A member that has no leader, is ending or cannot serve this answers so; another one may do better.
_UNAVAILABLE = (408, 429, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdAccess:
    """Whom to trust and who we are, as PEM; without either, plain HTTP only."""

    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)

    def tls(self) -> ssl.SSLContext:
        credential = b"\n".join((self.certificate, self.key)) if self.certificate else b""
        try:
            return client_context(self.ca, credential)
        except (ssl.SSLError, ValueError, OSError):
            raise NotReady(
                "the client certificate for etcd cannot be used, or its key does not belong to it",
                hint="renew it: garboard certs renew etcd-healthcheck-client",
                error_class="bad-certificate",
            ) from None


class EtcdClient:
    """Talks to the cluster behind `endpoints` (https://host:port), with a connection for each request."""

    def __init__(self, endpoints: tuple[str, ...], access: EtcdAccess) -> None:
        self.endpoints = endpoints
        self._access = access
        self._preferred = ""

    def at(self, *endpoints: str) -> "EtcdClient":
        """Return a client of other endpoints of the same cluster."""
        return EtcdClient(endpoints, self._access)

    def members(self) -> tuple[Member, ...]:
        """Return the members as a majority knows them, not as one member remembers them."""
        return _members(self._ask("cluster/member/list", {"linearizable": True}, "list its members"))

    def add_learner(self, peer_url: str) -> tuple[Member, tuple[Member, ...]]:
        """Add a member without a vote; return it and all there are then."""
        asked: dict[str, Json] = {"peerURLs": [peer_url], "isLearner": True}
        answer = self._ask("cluster/member/add", asked, f"add the member {peer_url}", CHANGE_TIMEOUT_S)
        return Member.read(answer.get("member")), _members(answer)

    def promote(self, member: Member) -> None:
        """Give a learner its vote; etcd refuses one that has not caught up."""
        asked: dict[str, Json] = {"ID": str(member.id)}
        self._ask("cluster/member/promote", asked, f"promote the member {member}", CHANGE_TIMEOUT_S)

    def remove(self, member: Member) -> None:
        asked: dict[str, Json] = {"ID": str(member.id)}
        self._ask("cluster/member/remove", asked, f"remove the member {member}", CHANGE_TIMEOUT_S)

    def status(self, endpoint: str) -> MemberStatus:
        """Return what the member at that very endpoint says of itself."""
        return MemberStatus.read(self.at(endpoint)._ask("maintenance/status", {}, "tell its status"))  # noqa: SLF001

    def sync(self) -> tuple[Member, ...]:
        """Use the client URLs of all voting members from now on; a learner answers hardly anything."""
        members = self.members()
        found = [url for member in members if not member.is_learner for url in member.client_urls]
        self.endpoints = tuple(dict.fromkeys(found)) or self.endpoints
        return members

    def _ask(self, path: str, asked: dict[str, Json], what: str, timeout_s: float = READ_TIMEOUT_S) -> dict[str, Json]:
        """Send a request to the endpoint that answered last, or else to the first that answers."""
        failures: list[tuple[str, str]] = []
        for endpoint in sorted(self.endpoints, key=lambda each: each != self._preferred):
            try:
                code, document = self._send(endpoint, f"/v3/{path}", json.dumps(asked).encode(), timeout_s)
            except (http.client.HTTPException, OSError) as error:
                failures.append((endpoint, why(error)))
                continue
            said = str(document.get("message") or f"HTTP status {code}")
            if code in _UNAVAILABLE or FROM_A_LEARNER in said:
                failures.append((endpoint, said))
                continue
            self._preferred = endpoint
            if code == http.client.OK:
                return document
            raise EtcdRefused(what, said)
        raise unreachable(f"ask etcd to {what}", failures)

    def _send(self, endpoint: str, path: str, body: bytes, timeout_s: float) -> tuple[int, dict[str, Json]]:
        with closing(self._connection(endpoint)) as connection:
            connection.connect()
            connection.sock.settimeout(timeout_s)
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            with connection.getresponse() as answer:
                return answer.status, _document(answer.read(_MAX_BYTES))

    def _connection(self, endpoint: str) -> http.client.HTTPConnection:
        url = urlsplit(endpoint)
        host, port = url.hostname or "", url.port or DEFAULT_PORT
        if url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=READ_TIMEOUT_S, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=READ_TIMEOUT_S)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._access.tls()


def _document(data: bytes) -> dict[str, Json]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _members(answer: dict[str, Json]) -> tuple[Member, ...]:
    found = answer.get("members")
    return tuple(Member.read(each) for each in found) if isinstance(found, list) else ()
