"""What a pool is decided from: its clusters by what they are for, its claims, its inventory, and what it depends on."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

from garboard.errors import GarboardError
from garboard.fleet.controllers.cache import BY_NAMESPACE, BY_POOL, ObjectCache, claim_of, own_customization, secrets_of
from garboard.fleet.controllers.conditions import condition, is_status
from garboard.fleet.controllers.install_configs import PULL_SECRET_KEY, read_template, secret_text
from garboard.fleet.controllers.inventory import PoolInventory
from garboard.fleet.controllers.marks import CREATING, POOL_ADMIN, REMOVE, SPEC_HASH
from garboard.fleet.controllers.stored import Stored, oldest_first
from garboard.fleet.install_config import FILE_NAME
from garboard.values import Json, dataclass

# The first character of every hash: another one says that what is hashed has changed, and compares as unknown.
_HASH_FORMAT: Final = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSnapshot:
    """Everything that is known when a pool is decided about."""

    pool: Stored
    clusters: tuple[Stored, ...]  # oldest first
    claims: tuple[Stored, ...]  # oldest first
    customizations: Mapping[str, Stored]  # of the pool's namespace
    secrets: Mapping[str, Stored]  # those that the pool names
    image_set: Stored | None
    namespaces: Mapping[str, Stored]  # of the pool's clusters
    admin_bindings: tuple[Stored, ...]  # of the pool's namespace
    admin_copies: Mapping[str, Stored]  # by the namespace of the cluster

    @classmethod
    def gather(cls, cache: ObjectCache, namespace: str, name: str) -> "PoolSnapshot | None":
        pool = cache.get("ClusterPool", namespace, name)
        if pool is None:
            return None
        key = f"{namespace}/{name}"
        clusters = oldest_first(cache.indexed("ClusterDeployment", BY_POOL, key))
        customizations = cache.indexed("ClusterDeploymentCustomization", BY_NAMESPACE, namespace)
        secrets = (cache.get("Secret", namespace, each) for each in secrets_of(pool))
        bindings = cache.indexed("RoleBinding", BY_NAMESPACE, namespace)
        copies = ((each.name, _admin_copy(cache, each.name)) for each in clusters)
        return cls(
            pool=pool,
            clusters=tuple(clusters),
            claims=tuple(oldest_first(cache.indexed("ClusterClaim", BY_POOL, key))),
            customizations={each.name: each for each in customizations},
            secrets={each.name: each for each in secrets if each is not None},
            image_set=cache.get("ClusterImageSet", "", pool.text("spec", "imageSetRef", "name")),
            namespaces={each.name: each for each in cache.indexed("Namespace", BY_POOL, key)},
            admin_bindings=tuple(each for each in bindings if each.text("roleRef", "name") == POOL_ADMIN),
            admin_copies={where: each for where, each in copies if each is not None},
        )

    @property
    def creating(self) -> tuple[str, ...]:
        """Names that the pool has promised to a cluster, of which there is none yet."""
        made = {each.name for each in self.clusters}
        return tuple(each for each in promised(self.pool) if each not in made)

    @property
    def inventory(self) -> PoolInventory:
        return PoolInventory.of(self.pool, self.customizations, self.clusters)

    @property
    def shared_customization(self) -> str:
        return self.pool.text("spec", "customizationRef", "name")

    @property
    def template(self) -> Stored | None:
        return self.secrets.get(self.pool.text("spec", "installConfigSecretTemplateRef", "name"))

    def missing(self) -> list[str]:
        """Return everything that has to be there before a cluster can be made, and is not."""
        spec, found = self.pool, []
        image_set = spec.text("spec", "imageSetRef", "name")
        if self.image_set is None:
            found.append(f"ClusterImageSet {image_set} does not exist")
        pull = spec.text("spec", "pullSecretRef", "name")
        if pull and secret_text(self.secrets.get(pull, Stored({})), PULL_SECRET_KEY) is None:
            why = f"has no key {PULL_SECRET_KEY}" if pull in self.secrets else "does not exist"
            found.append(f"pull Secret {pull} {why}")
        found += self._missing_template()
        shared = self.shared_customization
        if shared and shared not in self.customizations:
            found.append(f"ClusterDeploymentCustomization {shared} does not exist")
        return found

    def _missing_template(self) -> list[str]:
        name = self.pool.text("spec", "installConfigSecretTemplateRef", "name")
        if not name:
            return ["installConfigSecretTemplateRef is not set: write an install config into a Secret, and name it"]
        template = self.template
        if template is None:
            return [f"install config template Secret {name} does not exist"]
        if secret_text(template, FILE_NAME) is None:
            return [f"install config template Secret {name} has no key {FILE_NAME}"]
        try:
            read_template(template)
        except GarboardError:
            return [f"the install config of template Secret {name} cannot be read"]
        return []

    def version(self, entry: str) -> str:
        """Return the hash of all that a cluster is made of, with the inventory entry that it is made with."""
        spec = self.pool.mapping("spec")
        template, own = self.template, self.customizations.get(entry)
        shared = self.customizations.get(self.shared_customization)
        content: Json = {
            "platform": spec.get("platform"),
            "baseDomain": spec.get("baseDomain"),
            "releaseImage": self.image_set.at("spec", "releaseImage") if self.image_set else None,
            "installConfig": secret_text(template, FILE_NAME) if template else None,
            "customization": shared.at("spec") if shared else None,
            "entry": own.at("spec") if own else None,
            "hasInventory": bool(spec.get("inventory")),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return f"{_HASH_FORMAT}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def promised(pool: Stored) -> tuple[str, ...]:
    """Return the names that a pool says it creates clusters under."""
    return tuple(each for each in pool.annotation(CREATING).split(",") if each)


def _admin_copy(cache: ObjectCache, namespace: str) -> Stored | None:
    return cache.get("RoleBinding", namespace, "hive-cluster-pool-admin-binding")


def is_broken(cluster: Stored) -> bool:
    return is_status(cluster, "ProvisionStopped", "True") and cluster.at("spec", "installed") is not True


def is_installed(cluster: Stored) -> bool:
    return cluster.at("spec", "installed") is True


def is_running(cluster: Stored) -> bool:
    return is_installed(cluster) and cluster.text("status", "powerState") == "Running"


@dataclass(frozen=True, slots=True)
class Buckets:
    """The clusters of a pool by what they are, each oldest first; removed ones count among the unclaimed no more."""

    deleting: tuple[Stored, ...]
    marked: tuple[Stored, ...]
    claimed: tuple[Stored, ...]
    broken: tuple[Stored, ...]
    assignable: tuple[Stored, ...]
    standby: tuple[Stored, ...]
    installing: tuple[Stored, ...]

    @classmethod
    def of(cls, clusters: Sequence[Stored], claims: Sequence[Stored] = ()) -> "Buckets":
        """Sort clusters; one that a claim names is claimed, also before it names the claim."""
        found: dict[str, list[Stored]] = {name: [] for name in _BUCKETS}
        named = {each.text("spec", "namespace") for each in claims if not each.is_deleting}
        for each in clusters:
            found[_bucket(each, is_named=each.namespace in named)].append(each)
        return cls(*(tuple(found[name]) for name in _BUCKETS))

    @property
    def unclaimed(self) -> tuple[Stored, ...]:
        return (*self.broken, *self.assignable, *self.standby, *self.installing)


_BUCKETS: Final = ("deleting", "marked", "claimed", "broken", "assignable", "standby", "installing")


def _bucket(cluster: Stored, *, is_named: bool) -> str:
    if cluster.is_deleting:
        return "deleting"
    if cluster.annotation(REMOVE) == "true":
        return "marked"
    if claim_of(cluster) or is_named:
        return "claimed"
    if is_broken(cluster):
        return "broken"
    if is_running(cluster):
        return "assignable"
    return "standby" if is_installed(cluster) else "installing"


@dataclass(frozen=True, slots=True)
class Staleness:
    """Unclaimed clusters that are not as they would be made today, in the order in which they are replaced."""

    unknown: tuple[Stored, ...]
    mismatched: tuple[Stored, ...]
    unlisted: tuple[Stored, ...]  # their inventory entry is not listed any more

    @classmethod
    def of(cls, snapshot: PoolSnapshot, unclaimed: Sequence[Stored]) -> "Staleness":
        unknown, mismatched, unlisted = [], [], []
        listed = set(snapshot.inventory.names)
        versions: dict[str, str] = {}
        for each in oldest_first(unclaimed):
            held, entry = each.annotation(SPEC_HASH), own_customization(each)
            if not held.startswith(f"{_HASH_FORMAT}-"):
                unknown.append(each)
            elif entry and entry not in listed:
                unlisted.append(each)
            else:
                if entry not in versions:
                    versions[entry] = snapshot.version(entry)
                if held != versions[entry]:
                    mismatched.append(each)
        return cls(tuple(unknown), tuple(mismatched), tuple(unlisted))

    @property
    def all(self) -> tuple[Stored, ...]:
        return (*self.unknown, *self.mismatched, *self.unlisted)


def unassigned(claims: Sequence[Stored]) -> list[Stored]:
    """Return the claims that wait for a cluster, oldest first."""
    return [
        each
        for each in claims
        if not each.text("spec", "namespace") and not each.is_deleting and condition(each, "Pending") is not None
    ]
