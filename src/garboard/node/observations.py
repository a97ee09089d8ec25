"""What planning has read of the cluster, by name and version, so that a plan tells when it has moved since."""

from garboard.documents import Json
from garboard.engine import Observation

OBJECT = "object"
# Kubelets and whoever holds a Lease write these all the time, whatever an operator does.
_RESTLESS = frozenset({"Node", "Lease", "Pod"})


class ObservedObjects:
    """Remembers each object as it was first read; not those that change by themselves."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}

    def remember(self, kind: str, namespace: str, name: str, content: dict[str, Json] | None) -> None:
        if kind not in _RESTLESS:
            self._versions.setdefault(f"{OBJECT} {kind} {namespace}/{name}", version_of(content))

    def observed(self) -> tuple[Observation, ...]:
        return tuple(Observation(name, version) for name, version in sorted(self._versions.items()))


def version_of(content: dict[str, Json] | None) -> str:
    """Return the version of an object; nothing if there is none."""
    metadata = content.get("metadata") if content else None
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""
