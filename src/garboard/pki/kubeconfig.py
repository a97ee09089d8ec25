"""Kubeconfig files: new ones as kubeadm writes them, and what an existing one says about its current context."""

import base64
import binascii
import posixpath
from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

from garboard.documents import Json, read_yaml, write_yaml
from garboard.errors import BadDocument
from garboard.values import dataclass

ReadFile: TypeAlias = Callable[[str], bytes | None]
_EMBEDDED = ("client-certificate-data", "client-key-data")
# What a cluster says of itself besides its CA.
_CLUSTER_FIELDS = ("disable-compression", "insecure-skip-tls-verify", "proxy-url", "server", "tls-server-name")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A client certificate and its key as PEM; a request that is not signed yet has no certificate."""

    certificate: bytes
    key: bytes = field(repr=False)

    def fields(self) -> dict[str, Json]:
        return {"client-certificate-data": _encode(self.certificate), "client-key-data": _encode(self.key)}


@dataclass(frozen=True, slots=True)
class BearerToken:
    token: str = field(repr=False)

    def fields(self) -> dict[str, Json]:
        return {"token": self.token}


Credential: TypeAlias = ClientCertificate | BearerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """One cluster, one user and the context that joins them; certificates are embedded."""

    cluster_name: str
    server: str
    user_name: str
    ca: bytes
    credential: Credential

    def document(self) -> Json:
        context = f"{self.user_name}@{self.cluster_name}"
        cluster: dict[str, Json] = {"certificate-authority-data": _encode(self.ca), "server": self.server}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"cluster": _without_empty(cluster), "name": self.cluster_name}],
            "contexts": [{"context": {"cluster": self.cluster_name, "user": self.user_name}, "name": context}],
            "current-context": context,
            "users": [{"name": self.user_name, "user": _without_empty(self.credential.fields())}],
        }

    def to_bytes(self) -> bytes:
        return write_yaml(self.document()).encode()


@dataclass(frozen=True, slots=True)
class CurrentContext:
    """The cluster and the user that the current context of an existing kubeconfig names, and the whole document."""

    document: dict[str, Json] = field(repr=False)
    cluster: dict[str, Json]
    user: dict[str, Json] | None = field(repr=False)
    source: str

    @property
    def server(self) -> str:
        return _text(self.cluster.get("server"))

    @property
    def ca(self) -> bytes:
        """The embedded CA certificates; empty when the file names another file for them."""
        return self._data(self.cluster, "certificate-authority-data")

    @property
    def ca_path(self) -> str:
        return _text(self.cluster.get("certificate-authority"))

    @property
    def client_certificate(self) -> bytes:
        """The embedded client certificate; empty when there is none."""
        return self._data(self.user or {}, "client-certificate-data")

    def flat_cluster(self, read: ReadFile) -> dict[str, Json]:
        """Return the cluster with its CA embedded."""
        cluster = {key: self.cluster[key] for key in _CLUSTER_FIELDS if self.cluster.get(key)}
        ca = self.content(self.cluster, "certificate-authority", read)
        return {**cluster, "certificate-authority-data": _encode(ca)} if ca else cluster

    def content(self, holder: dict[str, Json], key: str, read: ReadFile) -> bytes:
        """Return what the cluster or the user holds as `key`-data, or what is in the file that it names instead."""
        path = _text(holder.get(key))
        if (found := self._data(holder, f"{key}-data")) or not path:
            return found
        full = posixpath.join(posixpath.dirname(self.source), path)
        content = read(full)
        if content is None:
            raise _bad(self.source, f"its {key} {full} does not exist")
        return content

    def with_credential(self, ca: bytes, credential: ClientCertificate) -> bytes:
        """Return the file with another CA and client certificate; everything else stays."""
        cluster = {**self.cluster, "certificate-authority-data": _encode(ca)}
        user = {**(self.user or {}), **credential.fields()}
        clusters = _replaced(self.document, "clusters", "cluster", self.cluster, cluster)
        users = _replaced(self.document, "users", "user", self.user, user)
        document: Json = {**self.document, "clusters": clusters, "users": users}
        return write_yaml(document).encode()

    def with_rotating_certificate(self, user_name: str, pem: str) -> bytes:
        """Return the file with certificate and key of a user in the file `pem`, instead of in itself."""
        user = _named(self.document, "users", "user", user_name)
        if user is None:
            raise _bad(self.source, f"it does not contain authentication for user {user_name!r}")
        kept = {key: value for key, value in user.items() if key not in _EMBEDDED}
        new: dict[str, Json] = {**kept, "client-certificate": pem, "client-key": pem}
        document: Json = {**self.document, "users": _replaced(self.document, "users", "user", user, new)}
        return write_yaml(document).encode()

    def with_server(self, server: str) -> bytes:
        """Return the file with another server in the cluster of its current context; everything else stays."""
        clusters = _replaced(self.document, "clusters", "cluster", self.cluster, {**self.cluster, "server": server})
        document: Json = {**self.document, "clusters": clusters}
        return write_yaml(document).encode()

    def _data(self, holder: dict[str, Json], key: str) -> bytes:
        try:
            return base64.b64decode(_text(holder.get(key)), validate=False)
        except (binascii.Error, ValueError):
            raise _bad(self.source, f"its {key} is not base64") from None


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster of a kubeconfig with its CA embedded; `other_fields` are those that are neither server nor CA."""

    name: str
    server: str
    ca: bytes
    other_fields: dict[str, Json]


def unnamed_or_current_cluster(document: Json, source: str, read: ReadFile = lambda _path: None) -> NamedCluster:
    """Return the cluster without a name, as in cluster-info, else the one that the current context leads to."""
    if not isinstance(document, dict):
        raise _bad(source, "it is not a kubeconfig")
    context = _named(document, "contexts", "context", _text(document.get("current-context"))) or {}
    for name in ("", _text(context.get("cluster"))):
        cluster = _named(document, "clusters", "cluster", name)
        if cluster is not None:
            flat = CurrentContext(document, cluster, None, source).flat_cluster(read)
            ca = base64.b64decode(_text(flat.pop("certificate-authority-data", "")))
            return NamedCluster(name, _text(flat.pop("server", "")), ca, flat)
    raise _bad(source, "it has neither a cluster without a name nor one that its current context leads to")


def user_of_current_context(document: dict[str, Json]) -> tuple[str, dict[str, Json] | None]:
    """Return the name and the fields of the user that the current context names, if it names one that is there."""
    context = _named(document, "contexts", "context", _text(document.get("current-context"))) or {}
    name = _text(context.get("user"))
    return name, _named(document, "users", "user", name)


def embedded(holder: dict[str, Json], keys: tuple[str, ...], source: str, read: ReadFile) -> dict[str, Json]:
    """Return a user with the content of the files that it names under `keys`."""
    files = CurrentContext({}, {}, holder, source)
    found = {f"{key}-data": _encode(data) for key in keys if (data := files.content(holder, key, read))}
    return {**{key: value for key, value in holder.items() if key not in keys}, **found}


def read_kubeconfig(data: bytes, source: str) -> CurrentContext:
    """Return what the current context of a kubeconfig leads to; a file without one is refused."""
    document = read_yaml(data, source=source)
    if not isinstance(document, dict):
        raise _bad(source, "it is not a kubeconfig")
    context = _named(document, "contexts", "context", _text(document.get("current-context")))
    if context is None:
        raise _bad(source, "its current-context is not among its contexts")
    cluster = _named(document, "clusters", "cluster", _text(context.get("cluster")))
    if cluster is None:
        raise _bad(source, "the cluster of its current context is not among its clusters")
    user = _named(document, "users", "user", _text(context.get("user")))
    return CurrentContext(document, cluster, user, source)


def _named(document: dict[str, Json], key: str, kind: str, name: str) -> dict[str, Json] | None:
    for each in _items(document, key):
        if each.get("name") == name:
            found = each.get(kind)
            return found if isinstance(found, dict) else {}
    return None


def _items(document: dict[str, Json], key: str) -> list[dict[str, Json]]:
    entries = document.get(key)
    return [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []


def _replaced(
    document: dict[str, Json], key: str, kind: str, found: dict[str, Json] | None, new: dict[str, Json]
) -> list[Json]:
    # Sorted by name, because kubeadm keeps them in a map and writes that in order.
    items = sorted(_items(document, key), key=lambda each: _text(each.get("name")))
    return [{**each, kind: new} if each.get(kind) is found else dict(each) for each in items]


def _without_empty(fields: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if value}


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _bad(source: str, why: str) -> BadDocument:
    return BadDocument(
        f"{source}: {why}", hint="move the file away to have a new one made", error_class="bad-kubeconfig"
    )
