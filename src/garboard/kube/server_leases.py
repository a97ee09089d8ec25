"""Leases: the objects by which proxy servers show that they are there."""

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from garboard.documents import Json
from garboard.kube.access import Access
from garboard.kube.client import KubeClient
from garboard.kube.errors import ObjectConflict, ObjectMissing
from garboard.tunnel.leases import ServerLease

_GROUP = "/apis/coordination.k8s.io/v1/namespaces"


class ApiLeaseBook:
    """The leases of a namespace that a selector selects; new ones get `labels`."""

    def __init__(
        self, access: Callable[[], Access], namespace: str, selector: str, labels: dict[str, str] | None = None
    ) -> None:
        self._access = access
        self._collection = f"{_GROUP}/{quote(namespace, safe='')}/leases"
        self._namespace = namespace
        self._selector = selector
        self._labels = labels or {}

    def all(self) -> tuple[ServerLease, ...]:
        path = f"{self._collection}?{urlencode({'labelSelector': self._selector})}"
        with KubeClient(self._access()) as client:
            items = client.ask("GET", path, "list leases").get("items")
        return tuple(read_lease(each) for each in items if isinstance(each, dict)) if isinstance(items, list) else ()

    def hold(self, lease: ServerLease) -> None:
        with KubeClient(self._access()) as client:
            try:
                found = client.ask("GET", self._path(lease), f"get lease {lease.name}")
            except ObjectMissing:
                client.ask("POST", self._collection, f"create lease {lease.name}", self._object(lease, None))
                return
            client.ask("PUT", self._path(lease), f"renew lease {lease.name}", self._object(lease, found))

    def delete(self, lease: ServerLease) -> None:
        conditions: Json = {"resourceVersion": lease.resource_version} if lease.resource_version else None
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        with KubeClient(self._access()) as client:
            try:
                client.ask("DELETE", self._path(lease), f"delete lease {lease.name}", options)
            except (ObjectMissing, ObjectConflict):
                return

    def _path(self, lease: ServerLease) -> str:
        return f"{self._collection}/{quote(lease.name, safe='')}"

    def _object(self, lease: ServerLease, found: dict[str, Json] | None) -> Json:
        held = found.get("spec") if found else None
        since = held.get("acquireTime") if isinstance(held, dict) else None
        labels: dict[str, Json] = {**self._labels}
        metadata: dict[str, Json] = {"name": lease.name, "namespace": self._namespace, "labels": labels}
        if found is not None:
            known = found.get("metadata")
            assert isinstance(known, dict)
            metadata["resourceVersion"] = known.get("resourceVersion")
        spec: dict[str, Json] = {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": int(lease.duration_s),
            "acquireTime": since or _time(lease.acquired_at),
            "renewTime": _time(lease.renewed_at),
        }
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def read_lease(item: dict[str, Json]) -> ServerLease:
    metadata, spec = item.get("metadata"), item.get("spec")
    named = metadata if isinstance(metadata, dict) else {}
    fields = spec if isinstance(spec, dict) else {}
    duration = fields.get("leaseDurationSeconds")
    return ServerLease(
        name=str(named.get("name") or ""),
        holder=str(fields.get("holderIdentity") or ""),
        renewed_at=_seconds(fields.get("renewTime")),
        acquired_at=_seconds(fields.get("acquireTime")),
        duration_s=float(duration) if isinstance(duration, int) else 0.0,
        resource_version=str(named.get("resourceVersion") or ""),
    )


def _time(seconds: float | None) -> str | None:
    """A moment as MicroTime writes it."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _seconds(text: Json) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
