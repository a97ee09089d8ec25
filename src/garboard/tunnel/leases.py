"""The leases by which agents count the proxy servers: names, times, which are valid and which have expired."""

from dataclasses import dataclass
from typing import Final, Protocol

DURATION_S: Final = 30
# Often enough for a lease to outlive a renewal that failed; the next one comes sooner after such.
RENEW_EVERY_S: Final = 10.0
RENEW_AGAIN_S: Final = 2.0
RENEW_JITTER: Final = 0.04
COUNT_EVERY_S: Final = 10.0
DEFAULT_NAMESPACE: Final = "kube-system"
DEFAULT_LABELS: Final = "k8s-app=konnectivity-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLease:
    """One server's lease; times are seconds since 1970."""

    name: str
    holder: str
    renewed_at: float | None
    acquired_at: float | None = None
    duration_s: float = DURATION_S
    resource_version: str = ""

    def is_valid(self, now: float) -> bool:
        since = self.renewed_at if self.renewed_at is not None else self.acquired_at
        return since is not None and since + self.duration_s > now


class LeaseStore(Protocol):
    """The leases of one namespace and selector; blocks, and raises a `GarboardError` when there is no answer."""

    def all(self) -> tuple[ServerLease, ...]: ...

    def hold(self, lease: ServerLease) -> None:
        """Create the lease, or renew it."""

    def delete(self, lease: ServerLease) -> None:
        """Delete this version of the lease; one that was renewed in between stays, one that is gone is fine."""


def lease_name(server_id: str) -> str:
    return f"konnectivity-proxy-server-{server_id}"


def own_lease(server_id: str, now: float) -> ServerLease:
    return ServerLease(name=lease_name(server_id), holder=server_id, renewed_at=now, acquired_at=now)


def valid_count(leases: tuple[ServerLease, ...], now: float) -> int:
    return sum(lease.is_valid(now) for lease in leases)


def expired(leases: tuple[ServerLease, ...], now: float) -> tuple[ServerLease, ...]:
    """The leases whose servers are gone."""
    return tuple(lease for lease in leases if not lease.is_valid(now))
