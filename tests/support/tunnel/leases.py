"""Leases of proxy servers, and an API server's part in memory."""

from garboard.errors import ClusterUnreachable
from garboard.tunnel.leases import ServerLease


def lease(name: str, renewed_at: float | None, acquired_at: float | None = None) -> ServerLease:
    return ServerLease(name=name, holder=name, renewed_at=renewed_at, acquired_at=acquired_at, resource_version="7")


class LeasesInMemory:
    """Leases in memory; deleting another version than the one that is there does nothing."""

    def __init__(self, *leases: ServerLease) -> None:
        self.leases = {each.name: each for each in leases}
        self.is_away = False

    def all(self) -> tuple[ServerLease, ...]:
        if self.is_away:
            raise ClusterUnreachable("no answer")
        return tuple(self.leases.values())

    def hold(self, lease: ServerLease) -> None:
        self.all()
        self.leases[lease.name] = lease

    def delete(self, lease: ServerLease) -> None:
        if not lease.resource_version or self.leases[lease.name].resource_version == lease.resource_version:
            self.leases.pop(lease.name, None)
