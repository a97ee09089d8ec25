"""A client of etcd's API over gRPC: one endpoint after the other is tried until one answers.

The JSON form of the API is not used: `--enable-grpc-gateway=false` and `--listen-client-http-urls` take it away.
"""

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from urllib.parse import urlsplit

from garboard.errors import NotReady
from garboard.etcd import schema
from garboard.etcd.errors import FROM_A_LEARNER, EtcdRefused, unreachable, why
from garboard.etcd.values import Member, MemberStatus
from garboard.net.proxies import proxy_for
from garboard.net.tls import new_client_context
from garboard.rpc import BlockingClient, PeerUnreachable, RpcFailed, StatusCode, TcpTarget
from garboard.rpc.message import Message
from garboard.rpc.wire import BadWire

# kubeadm gives every call 2 s. Reading is as quick here; a change passes through the logs of a majority first, and
# giving up on one that then happens is worse than waiting.
READ_TIMEOUT_S = 2.0
CHANGE_TIMEOUT_S = 10.0
DEFAULT_PORT = 2379
_MOMENT_S = 0.5
_SILENT_S = 30.0  # in the middle of a snapshot
# A member that has no leader, is ending or cannot serve this answers so; another one may do better.
_UNAVAILABLE = (
    StatusCode.CANCELLED,
    StatusCode.DEADLINE_EXCEEDED,
    StatusCode.RESOURCE_EXHAUSTED,
    StatusCode.UNAVAILABLE,
)

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdAccess:
    """The authority to trust and our client certificate, as PEM; without either, plain HTTP only."""

    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)

    def tls(self) -> ssl.SSLContext:
        credential = b"\n".join((self.certificate, self.key)) if self.certificate else b""
        try:
            context = new_client_context(self.ca, credential)
        except (ssl.SSLError, ValueError, OSError):
            raise NotReady(
                "the client certificate for etcd cannot be used, or its key does not belong to it",
                hint="renew it: garboard certs renew etcd-healthcheck-client",
                error_class="bad-certificate",
            ) from None
        context.set_alpn_protocols(["h2"])
        return context


class EtcdClient:
    """Talks to the cluster behind `endpoints` (https://host:port), with a connection for each request."""

    def __init__(
        self, endpoints: tuple[str, ...], access: EtcdAccess, *, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.endpoints = endpoints
        self._access = access
        self._environment = environment
        self._preferred = ""

    def at(self, *endpoints: str) -> "EtcdClient":
        """Return a client of other endpoints of the same cluster."""
        return EtcdClient(endpoints, self._access, environment=self._environment)

    @property
    def by_preference(self) -> tuple[str, ...]:
        """The endpoints, with the one that answered last at the beginning."""
        return tuple(sorted(self.endpoints, key=lambda each: each != self._preferred))

    def members(self) -> tuple[Member, ...]:
        """Return the members by a linearizable read: as the majority knows them, not one member alone."""
        asked = schema.MEMBER_LIST_REQUEST.encode(schema.MemberListRequest(linearizable=True))
        return self._ask(schema.MEMBER_LIST, asked, schema.MEMBERS_RESPONSE, "list its members").members

    def add_learner(self, peer_url: str) -> tuple[Member, tuple[Member, ...]]:
        """Add a learner; return it and all members."""
        asked = schema.MEMBER_ADD_REQUEST.encode(schema.MemberAddRequest((peer_url,), is_learner=True))
        what = f"add the member {peer_url}"
        answer = self._ask(schema.MEMBER_ADD, asked, schema.MEMBER_ADD_RESPONSE, what, CHANGE_TIMEOUT_S)
        return answer.member or Member(), answer.members

    def promote(self, member_id: int, *, shown: str = "") -> None:
        """Promote a learner; etcd refuses one that has not caught up. An error calls it `shown`."""
        asked = schema.MEMBER_REQUEST.encode(schema.MemberRequest(member_id))
        what = f"promote the member {shown or f'{member_id:x}'}"
        self._ask(schema.MEMBER_PROMOTE, asked, schema.MEMBERS_RESPONSE, what, CHANGE_TIMEOUT_S)

    def remove(self, member_id: int, *, shown: str = "") -> None:
        """Remove a member. An error calls it `shown`."""
        asked = schema.MEMBER_REQUEST.encode(schema.MemberRequest(member_id))
        what = f"remove the member {shown or f'{member_id:x}'}"
        self._ask(schema.MEMBER_REMOVE, asked, schema.MEMBERS_RESPONSE, what, CHANGE_TIMEOUT_S)

    def status(self, endpoint: str) -> MemberStatus:
        """Return the status of the member at exactly that endpoint."""
        answer = self.at(endpoint)._ask(schema.STATUS, b"", schema.STATUS_RESPONSE, "tell its status")  # noqa: SLF001
        return answer.of_member()

    def move_leader(self, leader: str, target_id: int, *, shown: str = "") -> None:
        """Ask the leader, at exactly that endpoint, to have another voting member lead. An error calls it `shown`."""
        asked = schema.MOVE_LEADER_REQUEST.encode(schema.MoveLeaderRequest(target_id))
        what = f"have {shown or f'{target_id:x}'} lead"
        client = self.at(leader)
        client._ask(schema.MOVE_LEADER, asked, schema.MOVE_LEADER_RESPONSE, what, CHANGE_TIMEOUT_S)  # noqa: SLF001

    def snapshot(self, endpoint: str, take: Callable[[bytes], object]) -> None:
        """Pass the database of the member at exactly that endpoint to `take`, part by part, with its SHA-256 behind."""
        what = "send a snapshot"
        try:
            with BlockingClient(self._target(endpoint), connect_timeout_s=READ_TIMEOUT_S) as client:
                client.server_stream(
                    schema.SNAPSHOT, b"", lambda data: take(schema.SNAPSHOT_RESPONSE.decode(data).blob),
                    idle_s=_SILENT_S,
                )  # fmt: skip
        except BadWire as error:
            raise EtcdRefused(what, f"its answer cannot be read: {error.message}") from error
        except PeerUnreachable as error:
            raise unreachable(f"ask etcd to {what}", [(endpoint, why(error))]) from error
        except RpcFailed as error:
            if _is_unavailable(error):
                raise unreachable(f"ask etcd to {what}", [(endpoint, why(error))]) from error
            raise EtcdRefused(what, why(error)) from error

    def is_serving(self, endpoint: str, timeout_s: float = _MOMENT_S) -> bool:
        """Say whether the member at that endpoint answers within a moment; its port is open long before it does."""
        try:
            with BlockingClient(self._target(endpoint), connect_timeout_s=timeout_s) as client:
                client.unary(schema.STATUS, b"", timeout_s=timeout_s)
        except PeerUnreachable:
            return False
        except RpcFailed as error:
            return not _is_unavailable(error)
        return True

    def sync(self) -> tuple[Member, ...]:
        """Use the client URLs of all voting members from now on; a learner refuses most requests."""
        members = self.members()
        found = [url for member in members if not member.is_learner for url in member.client_urls]
        self.endpoints = tuple(dict.fromkeys(found)) or self.endpoints
        return members

    def _ask(
        self, method: str, asked: bytes, answer: Message[AnswerT], what: str, timeout_s: float = READ_TIMEOUT_S
    ) -> AnswerT:
        """Send a request to the endpoint that answered last, or else to the first that answers."""
        failures: list[tuple[str, str]] = []
        for endpoint in self.by_preference:
            try:
                data = self._call(endpoint, method, asked, timeout_s)
            except (PeerUnreachable, RpcFailed) as error:
                if isinstance(error, RpcFailed) and not _is_unavailable(error):
                    self._preferred = endpoint
                    raise EtcdRefused(what, why(error)) from error
                failures.append((endpoint, why(error)))
                continue
            self._preferred = endpoint
            try:
                return answer.decode(data)
            except BadWire as error:
                raise EtcdRefused(what, f"its answer cannot be read: {error.message}") from error
        raise unreachable(f"ask etcd to {what}", failures)

    def _call(self, endpoint: str, method: str, asked: bytes, timeout_s: float) -> bytes:
        with BlockingClient(self._target(endpoint), connect_timeout_s=READ_TIMEOUT_S) as client:
            return client.unary(method, asked, timeout_s=timeout_s)

    def _target(self, endpoint: str) -> TcpTarget:
        url = urlsplit(endpoint)
        host, port = url.hostname or "", url.port or DEFAULT_PORT
        # The proxy is that of https in both cases, as with etcd's own client.
        proxy = proxy_for("https", host, port, self._environment)
        return TcpTarget(host, port, self._tls if url.scheme == "https" else None, proxy=proxy)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._access.tls()


def _is_unavailable(error: RpcFailed) -> bool:
    return error.code in _UNAVAILABLE or FROM_A_LEARNER in error.status.message
