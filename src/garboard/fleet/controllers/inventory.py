"""The inventory of a pool: which entries may be used, in which order, and what their status has to say."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from garboard.fleet.controllers.cache import own_customization
from garboard.fleet.controllers.conditions import (
    Said,
    condition,
    is_status,
    reason_of,
    since,
    with_conditions,
)
from garboard.fleet.controllers.marks import API_VERSION, customization_finalizer
from garboard.fleet.controllers.stored import Stored
from garboard.values import Json, dataclass

COOL_OFF: Final = timedelta(minutes=10)
_BROKEN: Final = ("BrokenByCloud", "BrokenBySyntax")
_RELEASED: Final = Said("Available", "True", "Available", "available")
RESERVED: Final = Said("Available", "False", "Reserved", "reserved")
# Reasons of failures that are of the patches themselves.
_PATCH_REASONS: Final = ("ManifestPatch", "ManifestIOError", "InstallConfigPatch")


def entries_of_pool(pool: Stored) -> tuple[str, ...]:
    """Return the names in a pool's inventory, each once."""
    return tuple(dict.fromkeys(str(each.get("name")) for each in pool.entries("spec", "inventory") if each.get("name")))


def is_reserved(entry: Stored) -> bool:
    return is_status(entry, "Available", "False")


def holder(entry: Stored) -> str:
    """Return the name of the ClusterDeployment that an entry says it is reserved for."""
    return entry.text("status", "clusterDeploymentRef", "name")


def holding_pool(entry: Stored) -> str:
    return entry.text("status", "clusterPoolRef", "name")


def is_held_by(entry: Stored, pool: Stored) -> bool:
    return is_reserved(entry) and holding_pool(entry) in ("", pool.name)


def is_inconsistent(entry: Stored) -> bool:
    """Whether an entry says that it is available, and yet names who holds it."""
    return not is_reserved(entry) and bool(holder(entry) or holding_pool(entry))


def reserved(entry: Stored, pool: Stored, cluster: str, now: datetime) -> Stored:
    """Return an entry with everything that a reservation says, to be written at once."""
    status: dict[str, Json] = {
        **entry.mapping("status"),
        "clusterDeploymentRef": {"name": cluster},
        "clusterPoolRef": {"name": pool.name},
        "lastAppliedConfiguration": json.dumps(entry.mapping("spec"), sort_keys=True, separators=(",", ":")),
    }
    pending = Said("ApplySucceeded", "False", "InstallationPending", f"ClusterDeployment {cluster} is being installed")
    return with_conditions(entry.edited(status, "status"), (RESERVED, pending), now)


def released(entry: Stored, now: datetime) -> Stored:
    freed = entry.edited(None, "status", "clusterDeploymentRef").edited(None, "status", "clusterPoolRef")
    return with_conditions(freed, (_RELEASED,), now)


def broken_by_syntax(entry: Stored, message: str, now: datetime) -> Stored:
    return _broken(entry, Said("ApplySucceeded", "False", "BrokenBySyntax", message), now)


def _broken(entry: Stored, said: Said, now: datetime) -> Stored:
    """Return an entry that is broken from now on, also if it was not a success before."""
    others: list[Json] = [each for each in entry.entries("status", "conditions") if each.get("type") != said.type]
    return with_conditions(entry.edited(others, "status", "conditions"), (said,), now)


def followed(entry: Stored, cluster: Stored, *, is_broken: bool, now: datetime) -> Stored:
    """Return a reserved entry with what has become of its cluster."""
    said = _outcome(cluster, is_broken)
    if said.reason in _BROKEN and condition(entry, said.type) != said:
        return _broken(entry, said, now)
    return with_conditions(entry, (said,), now)


def _outcome(cluster: Stored, is_broken: bool) -> Said:
    if cluster.at("spec", "installed") is True:
        return Said("ApplySucceeded", "True", "Succeeded", f"ClusterDeployment {cluster.name} is installed")
    if not is_broken:
        pending = f"ClusterDeployment {cluster.name} is being installed"
        return Said("ApplySucceeded", "False", "InstallationPending", pending)
    failed = condition(cluster, "ProvisionFailed")
    if failed is not None and failed.reason.startswith(_PATCH_REASONS):
        return Said("ApplySucceeded", "False", "BrokenBySyntax", failed.message)
    message = f"ClusterDeployment {cluster.name} could not be installed; the patches may be innocent"
    return Said("ApplySucceeded", "False", "BrokenByCloud", message)


@dataclass(frozen=True, slots=True)
class PoolInventory:
    """The inventory of one pool, with the entries that there are."""

    pool: Stored
    names: tuple[str, ...]
    found: Mapping[str, Stored]
    used: frozenset[str]  # by ClusterDeployments that there are

    @classmethod
    def of(cls, pool: Stored, customizations: Mapping[str, Stored], clusters: Iterable[Stored]) -> "PoolInventory":
        names = entries_of_pool(pool)
        found = {each: customizations[each] for each in names if each in customizations}
        return cls(pool, names, found, frozenset(own_customization(each) for each in clusters))

    def candidates(self, now: datetime) -> list[Stored]:
        """Return the entries that a cluster may be made with, in the order in which they are taken."""
        free = (each for each in self.found.values() if self._is_free(each) and not cooling(each, now))
        return sorted(free, key=lambda each: _rank(each, now))

    def _is_free(self, entry: Stored) -> bool:
        is_taken = is_reserved(entry) or is_inconsistent(entry) or entry.name in self.used
        return not is_taken and not entry.is_deleting and customization_finalizer(self.pool.name) in entry.finalizers

    def cool_off_ends_in(self, now: datetime) -> timedelta | None:
        """Return when the first of the broken entries may be tried again."""
        left = [each for each in (cooling(entry, now) for entry in self.found.values()) if each]
        return min(left, default=None)

    def condition(self) -> Said | None:
        """Return what InventoryValid says; nothing of a pool without an inventory."""
        if not self.names:
            return None
        wrong: dict[str, Json] = {
            "BrokenByCloud": self._with_reason("BrokenByCloud"),
            "BrokenBySyntax": self._with_reason("BrokenBySyntax"),
            "Missing": [*sorted(set(self.names) - set(self.found))],
        }
        inconsistent: list[Json] = [*sorted(each.name for each in self.found.values() if is_inconsistent(each))]
        if inconsistent:
            wrong["Inconsistent"] = inconsistent
        if not any(wrong.values()):
            return Said("InventoryValid", "True", "Valid", f"Inventory is valid{self._shortage()}")
        return Said("InventoryValid", "False", "Invalid", json.dumps(wrong, separators=(",", ":")))

    def _shortage(self) -> str:
        size = self.pool.number("spec", "size") or 0
        return f"; its {len(self.names)} entries are fewer than the size {size}" if size > len(self.names) else ""

    def _with_reason(self, reason: str) -> list[Json]:
        return [*sorted(name for name, each in self.found.items() if reason_of(each, "ApplySucceeded") == reason)]


def cooling(entry: Stored, now: datetime) -> timedelta | None:
    """Return for how long a broken entry is still left alone; a change of it ends that."""
    if reason_of(entry, "ApplySucceeded") not in _BROKEN or is_reserved(entry):
        return None
    observed = next(
        (each.get("observedGeneration") for each in entry.entries("status", "conditions")
         if each.get("type") == "ApplySucceeded"), None,
    )  # fmt: skip
    broken_since = since(entry, "ApplySucceeded") or _LONG_AGO
    left = broken_since + COOL_OFF - now
    return left if observed == entry.generation and left > timedelta(0) else None


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def _rank(entry: Stored, now: datetime) -> tuple[bool, datetime, str, str]:
    """Order entries: successes first, the longest ago before the others; unused ones as if they succeeded now."""
    reason = reason_of(entry, "ApplySucceeded")
    is_broken = reason in _BROKEN
    if is_broken:
        return True, since(entry, "ApplySucceeded") or _LONG_AGO, reason, entry.name
    moment = (since(entry, "ApplySucceeded") or now) if reason == "Succeeded" else now
    return False, moment, "", entry.name


def finalizer_changes(
    pool: Stored, customizations: Mapping[str, Stored], *, is_ending: bool = False
) -> Iterator[tuple[Stored, Stored]]:
    """Yield entries, before and after, whose finalizer of the pool is missing or has to go."""
    name, listed = customization_finalizer(pool.name), set(entries_of_pool(pool))
    for each in customizations.values():
        is_kept = is_reserved(each) and holding_pool(each) == pool.name
        if name in each.finalizers and not is_kept and (is_ending or each.is_deleting or each.name not in listed):
            yield each, each.without_finalizer(name)
        elif name not in each.finalizers and each.name in listed and not each.is_deleting and not is_ending:
            yield each, each.with_finalizer(name)


def copied(customization: Stored, namespace: str) -> Stored:
    """Return a customization as it is copied into the namespace of a cluster."""
    metadata: dict[str, Json] = {"name": customization.name, "namespace": namespace}
    for name in ("labels", "annotations"):
        kept = {key: value for key, value in customization.mapping("metadata", name).items() if _is_theirs(key)}
        if kept:
            metadata[name] = kept
    spec = customization.mapping("spec")
    return Stored(
        {"apiVersion": API_VERSION, "kind": "ClusterDeploymentCustomization", "metadata": metadata, "spec": spec}
    )


def _is_theirs(annotation: str) -> bool:
    return annotation != "kubectl.kubernetes.io/last-applied-configuration"
