"""bootstrap-kubelet.conf: the credentials with which a kubelet asks for its first certificate."""

import base64
from dataclasses import field, replace
from typing import Self

from garboard.documents import Json, read_yaml, write_yaml
from garboard.pki.kubeconfig import ReadFile, embedded, unnamed_or_current_cluster, user_of_current_context
from garboard.values import dataclass

FILE_NAME = "bootstrap-kubelet.conf"
_DEFAULT_CLUSTER = "kubernetes"
_USER = "tls-bootstrap-token-user"


@dataclass(frozen=True, slots=True)
class TokenUser:
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapKubeconfig:
    """A kubeconfig of one cluster, which gets its name when that is known; contexts and users stay as they were."""

    server: str
    ca: bytes = b""
    cluster_fields: dict[str, Json] = field(default_factory=dict)  # what else the file says of the cluster
    contexts: tuple[dict[str, Json], ...] = ()
    current_context: str = ""
    users: tuple[dict[str, Json], ...] = field(default=(), repr=False)
    has_credentials: bool = False

    @classmethod
    def without_user(cls, server: str, ca: bytes) -> Self:
        return cls(server=server, ca=ca)

    @classmethod
    def with_token(cls, server: str, ca: bytes, user: TokenUser) -> Self:
        """Return kubeadm's: its context is called after a cluster of the default name, whatever the real one is."""
        name = f"{_USER}@{_DEFAULT_CLUSTER}"
        return cls(
            server=server,
            ca=ca,
            contexts=({"name": name, "context": {"cluster": _DEFAULT_CLUSTER, "user": _USER}},),
            current_context=name,
            users=({"name": _USER, "user": {"token": user.token}},),
            has_credentials=True,
        )

    def with_ca(self, ca: bytes) -> Self:
        return replace(self, ca=ca)

    def with_server(self, server: str) -> Self:
        return replace(self, server=server)

    def to_bytes(self, cluster_name: str = _DEFAULT_CLUSTER) -> bytes:
        """Return the file; its current context leads to the cluster under that name."""
        cluster: dict[str, Json] = {**self.cluster_fields, "server": self.server}
        if self.ca:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca).decode()
        document: Json = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster_name, "cluster": cluster}],
            "contexts": [self._context(each, cluster_name) for each in self.contexts] or None,
            "current-context": self.current_context,
            "users": [*self.users] or None,
        }
        return write_yaml(document).encode()

    def _context(self, named: dict[str, Json], cluster_name: str) -> dict[str, Json]:
        context = named.get("context")
        if named.get("name") != self.current_context or not isinstance(context, dict):
            return named
        return {**named, "context": {**context, "cluster": cluster_name}}


def read_discovery_file(data: bytes, source: str, read: ReadFile) -> BootstrapKubeconfig:
    """Return what a discovery file says, with everything embedded that it names other files for."""
    document = read_yaml(data, source=source)
    cluster = unnamed_or_current_cluster(document, source, read)
    assert isinstance(document, dict), "a cluster was found in it"
    user_name, user = user_of_current_context(document)
    flat = embedded(user or {}, ("client-certificate", "client-key"), source, read)
    users = [
        {**each, "user": flat} if each.get("name") == user_name else each for each in _sorted(document.get("users"))
    ]
    return BootstrapKubeconfig(
        server=cluster.server,
        ca=cluster.ca,
        cluster_fields=cluster.other_fields,
        contexts=tuple(_sorted(document.get("contexts"))),
        current_context=str(document.get("current-context") or ""),
        users=tuple(users),
        has_credentials=_is_credential(flat),
    )


def _sorted(entries: Json) -> list[dict[str, Json]]:
    # By name, because kubeadm keeps them in a map and writes that in order.
    items = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    return sorted(items, key=lambda each: str(each.get("name")))


def _is_credential(user: dict[str, Json]) -> bool:
    has_certificate = bool(user.get("client-certificate-data") and user.get("client-key-data"))
    others = ("token", "tokenFile", "exec", "auth-provider")
    has_password = bool(user.get("username") and user.get("password"))
    return has_certificate or has_password or any(user.get(key) for key in others)
