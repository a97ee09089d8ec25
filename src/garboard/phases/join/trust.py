"""Whether a cluster is the one that was meant: its public description, the signature of that, and the CA's key."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from garboard.documents import Json, read_yaml
from garboard.errors import GarboardError
from garboard.lazy import lazy_module
from garboard.manifests.bootstrap_token import CLUSTER_INFO
from garboard.manifests.objects import KUBE_PUBLIC
from garboard.pki.kubeconfig import NamedCluster, unnamed_or_current_cluster
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.pki import chain
else:  # reading certificates takes long to load, and a join without pins reads none
    chain = lazy_module("garboard.pki.chain")

_SIGNATURE = "jws-kubeconfig-"
_PLACE = f"ConfigMap {KUBE_PUBLIC}/{CLUSTER_INFO}"


class NotTrusted(GarboardError):
    """The server that answers is not the cluster that was meant, or cannot prove it; nothing has been changed."""

    default_class = "not-trusted"


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What a cluster tells everybody: a kubeconfig without a user, signed with every token that is good for that."""

    kubeconfig: str
    signatures: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, config_map: Mapping[str, Json] | None, server: str) -> "ClusterInfo":
        """Read the ConfigMap that `server` gave."""
        data = (config_map or {}).get("data")
        texts = {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
        if "kubeconfig" not in texts:
            missing = f"has no {_PLACE}" if config_map is None else f"has a {_PLACE} that holds no kubeconfig"
            raise NotTrusted(
                f"the cluster at {server} {missing}",
                hint="on a control-plane node, run: garboard init phase bootstrap-token",
                error_class="no-cluster-info",
            )
        signatures = {key.removeprefix(_SIGNATURE): value for key, value in texts.items() if key.startswith(_SIGNATURE)}
        return cls(texts["kubeconfig"], signatures)

    @property
    def cluster(self) -> NamedCluster:
        document = read_yaml(self.kubeconfig, source=_PLACE)
        return unnamed_or_current_cluster(document, _PLACE)


def signature_of(text: str, token: str) -> str:
    """Return the JWS of a text with its payload left out (RFC 7515, appendix F), as the bootstrap signer makes it."""
    identifier, _, secret = token.partition(".")
    # The very bytes that the signer writes: the order of the members and no spaces.
    header = _url_base64(json.dumps({"alg": "HS256", "kid": identifier}, separators=(",", ":")).encode())
    payload = _url_base64(_encoded(text))
    digest = hmac.digest(_encoded(secret), f"{header}.{payload}".encode(), hashlib.sha256)
    return f"{header}..{_url_base64(digest)}"


def _encoded(text: str) -> bytes:
    # What a server sends may be no text at all: JSON can write half of a surrogate pair.
    return text.encode("utf-8", "surrogatepass")


def _url_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def has_signature(info: ClusterInfo, token: str) -> bool:
    """Whether the cluster has signed with this token's id, rightly or not."""
    return token.partition(".")[0] in info.signatures


def check_signature(info: ClusterInfo, token: str, server: str) -> None:
    """Refuse a description that was not signed with the whole token."""
    identifier = token.partition(".")[0]
    # As bytes, for texts can be compared in constant time only if they are ASCII.
    expected = _encoded(signature_of(info.kubeconfig, token))
    if hmac.compare_digest(_encoded(info.signatures.get(identifier, "")), expected):
        return
    raise NotTrusted(
        f"the cluster at {server} knows a token with the id {identifier!r}, but not this one: "
        "the JWS signature of its cluster-info is not made with the secret half",
        hint="the token is of another cluster, or was mistyped: get one with "
        "`garboard token create --print-join-command` on a control-plane node",
        error_class="wrong-token",
    )


def is_pinned(info: ClusterInfo, pins: Sequence[str]) -> bool:
    """Whether one of the cluster's authorities has a public key that is among `pins`."""
    wanted = {pin.lower() for pin in pins}
    return any(pin in wanted for pin in _pins_of(info))


def check_pins(info: ClusterInfo, pins: Sequence[str], server: str) -> None:
    """Refuse a cluster none of whose authorities has a public key that was announced; without `pins`, accept any."""
    if not pins or is_pinned(info, pins):
        return
    found = ", ".join(_pins_of(info)) or "none at all"
    raise NotTrusted(
        f"the CA of the cluster at {server} is not the one that was announced: "
        f"its public key is {found}, expected was {', '.join(pins)}",
        hint="this is another cluster, or the hash was mistyped: get it with "
        "`garboard token create --print-join-command` on a control-plane node of the right one",
        error_class="wrong-ca",
    )


def _pins_of(info: ClusterInfo) -> tuple[str, ...]:
    ca = info.cluster.ca
    return chain.authority_pins(ca) if ca else ()


def unknown_token(identifier: str, server: str, *, is_right_cluster: bool | None) -> NotTrusted:
    """Return the error for a token that the cluster has not signed with; pins may tell whether it is the right one."""
    # The pins tell that the cluster is the one that was meant, and not that the token is of the same.
    why = (
        "it has expired or was deleted, or is of another cluster than the CA that was announced"
        if is_right_cluster
        else "it has expired, was deleted, or is of another cluster"
    )
    return NotTrusted(
        f"the cluster at {server} does not know the token with the id {identifier!r}: {why}",
        hint="make a new one on a control-plane node: garboard token create --print-join-command",
        error_class="unknown-token",
    )
