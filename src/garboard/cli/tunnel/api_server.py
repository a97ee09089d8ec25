"""What the tunnel programs ask of an API server: reviews of tokens, and the leases of proxy servers.

The API server is found by a kubeconfig, or by a pod's service account. Its client is loaded by the programs that have
one to talk to: most run for months and never do.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.lazy import lazy_module
from garboard.tunnel.leases import ServerLease
from garboard.tunnel.server.tokens import TokenReview
from garboard.values import Json

if TYPE_CHECKING:
    from garboard import kube
else:
    kube = lazy_module("garboard.kube")

_MANAGER: Final = "garboard"


def access_from(kubeconfig: Path | None) -> "Callable[[], kube.Access]":
    """A way to the API server that is looked up anew every time, since tokens and certificates change."""

    def read() -> "kube.Access":
        if kubeconfig is None:
            return kube.in_cluster_access(os.environ, _content)
        return kube.read_access(Machine().read_file(kubeconfig), str(kubeconfig), _content)

    return read


def _content(path: str) -> bytes | None:
    return Machine().read_file(Path(path)) if Path(path).is_file() else None


def reviewer_for(kubeconfig: Path | None) -> "ApiTokenReviewer":
    return ApiTokenReviewer(access_from(kubeconfig))


def server_lease_store(kubeconfig: Path | None, namespace: str, label: str) -> "ApiLeaseStore":
    """For a server, whose own lease gets the labels."""
    return ApiLeaseStore(access_from(kubeconfig), namespace, label, _labels(label))


def agent_lease_store(kubeconfig: Path | None, namespace: str, selector: str) -> "ApiLeaseStore":
    return ApiLeaseStore(access_from(kubeconfig), namespace, selector)


def _labels(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",")]
    if any(not name or not equals or "=" in value for name, equals, value in pairs):
        raise BadUsage(f"--lease-label={text} is not a list of labels", hint="write k8s-app=konnectivity-server")
    return {name: value for name, _, value in pairs}


class ApiTokenReviewer:
    """Has an API server review tokens (`TokenReviewer`); every review reads anew how to get there."""

    def __init__(self, access: "Callable[[], kube.Access]") -> None:
        self._access = access

    def review(self, token: str, audience: str) -> TokenReview:
        with kube.KubeClient(self._access(), patience_s=0.0) as client:
            asked = kube.token_review(token, [audience])
            return read_review(client.create(kube.ObjectRef("TokenReview", "", ""), asked, manager=_MANAGER))


def read_review(answer: dict[str, Json]) -> TokenReview:
    found = kube.read_token_review(answer)
    return TokenReview(
        is_authenticated=found.is_authenticated, username=found.name, audiences=found.audiences, error=found.error
    )


class ApiLeaseStore:
    """The leases of a namespace that a selector selects (`LeaseStore`); new ones get `labels`."""

    def __init__(
        self, access: "Callable[[], kube.Access]", namespace: str, selector: str, labels: dict[str, str] | None = None
    ) -> None:
        self._access = access
        self._namespace = namespace
        self._selector = selector
        self._labels = labels or {}

    def all(self) -> tuple[ServerLease, ...]:
        with kube.KubeClient(self._access(), patience_s=0.0) as client:
            return tuple(map(read_lease, client.labelled("Lease", self._namespace, self._selector)))

    def hold(self, lease: ServerLease) -> None:
        with kube.KubeClient(self._access(), patience_s=0.0) as client:
            found = client.find("Lease", self._namespace, lease.name)
            write = client.create if found is None else client.replace
            write(self._ref(lease), self._object(lease, found), manager=_MANAGER)

    def delete(self, lease: ServerLease) -> None:
        with kube.KubeClient(self._access(), patience_s=0.0) as client:
            try:
                client.delete(self._ref(lease), resource_version=lease.resource_version)
            except kube.ObjectConflict:
                return

    def _ref(self, lease: ServerLease) -> "kube.ObjectRef":
        return kube.ObjectRef("Lease", self._namespace, lease.name)

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
    return None if seconds is None else kube.micro_time(datetime.fromtimestamp(seconds, UTC))


def _seconds(text: Json) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
