"""A Lease as a value, and whether its holder still lives, judged without trusting any clock but our own."""

from datetime import datetime
from typing import Self

from garboard.documents import Json
from garboard.values import dataclass

API_VERSION = "coordination.k8s.io/v1"
# The peer URLs of all who held the Lease and did not end their turn, and of who holds it now.
PEERS = "garboard.dev/etcd-peer-urls"


@dataclass(frozen=True, slots=True)
class Lease:
    """What the API server holds; `renewed` changes with every sign of life, and means nothing else here."""

    version: str
    holder: str
    duration_s: float
    renewed: str
    peers: tuple[str, ...]

    @classmethod
    def read(cls, document: dict[str, Json]) -> Self:
        metadata, spec = _mapping(document.get("metadata")), _mapping(document.get("spec"))
        duration = spec.get("leaseDurationSeconds")
        peers = _mapping(metadata.get("annotations")).get(PEERS)
        return cls(
            version=str(metadata.get("resourceVersion") or ""),
            holder=str(spec.get("holderIdentity") or ""),
            duration_s=float(duration) if isinstance(duration, int | float) else 0.0,
            renewed=str(spec.get("renewTime") or ""),
            peers=tuple(each for each in str(peers or "").split(",") if each),
        )

    def content(self, name: str, namespace: str) -> Json:
        """Return the object; without a version it is one to be created."""
        metadata: dict[str, Json] = {"name": name, "namespace": namespace}
        if self.version:
            metadata["resourceVersion"] = self.version
        if self.peers:
            metadata["annotations"] = {PEERS: ",".join(self.peers)}
        spec: dict[str, Json] = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": round(self.duration_s),
            "renewTime": self.renewed,
        }
        return {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}


def micro_time(moment: datetime) -> str:
    """Return a moment in UTC as the API server writes it in a Lease."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Observer:
    """Tells when a holder has shown no sign of life for as long as it said it would.

    The clocks of two machines may differ by minutes, so the time in the Lease is only compared with itself: what counts
    is how long we have seen it unchanged.
    """

    def __init__(self) -> None:
        self._seen: tuple[str, str] | None = None
        self._since = 0.0

    def is_dead(self, lease: Lease, now: float) -> bool:
        if (lease.holder, lease.renewed) != self._seen:
            self._seen, self._since = (lease.holder, lease.renewed), now
        return now - self._since > lease.duration_s


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
