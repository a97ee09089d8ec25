"""The objects that controllers know of, by kind and by the references that they are looked up by."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from garboard.fleet.controllers.marks import (
    DEPLOYMENT_NAME,
    GROUP,
    POOL_NAME_OF_NAMESPACE,
)
from garboard.fleet.controllers.stored import ObjectId, Stored

# An answer that is seen late is seconds late.
_REMEMBERED = 20_000
BY_NAMESPACE, BY_POOL, BY_DEPLOYMENT, BY_CUSTOMIZATION, BY_SECRET = "namespace", "pool", "deployment", "cdc", "secret"


def pool_of(deployment: Stored) -> tuple[str, str]:
    """Return namespace and name of the pool that a ClusterDeployment is of; both empty if it is of none."""
    at = ("spec", "clusterPoolRef")
    return deployment.text(*at, "namespace"), deployment.text(*at, "poolName")


def claim_of(deployment: Stored) -> str:
    return deployment.text("spec", "clusterPoolRef", "claimName")


def own_customization(deployment: Stored) -> str:
    """Return the name of the inventory entry that a ClusterDeployment was made with."""
    return deployment.text("spec", "clusterPoolRef", "clusterDeploymentCustomization", "name")


def shared_customization(deployment: Stored) -> str:
    return deployment.text("spec", "provisioning", "customizationRef", "name")


def _by_pool(each: Stored) -> Iterator[str]:
    if each.kind == "ClusterDeployment":
        namespace, name = pool_of(each)
        if name:
            yield f"{namespace}/{name}"
    elif each.kind == "ClusterClaim":
        yield f"{each.namespace}/{each.text('spec', 'clusterPoolName')}"
    elif each.kind == "Namespace" and each.label(POOL_NAME_OF_NAMESPACE):
        yield f"{each.label(f'{GROUP}/clusterpool-namespace')}/{each.label(POOL_NAME_OF_NAMESPACE)}"


def _by_deployment(each: Stored) -> Iterator[str]:
    name = each.text("spec", "clusterDeploymentRef", "name") or each.label(DEPLOYMENT_NAME)
    if name:
        yield f"{each.namespace}/{name}"


def _by_customization(each: Stored) -> Iterator[str]:
    if each.kind == "ClusterPool":
        names = {str(entry.get("name")) for entry in each.entries("spec", "inventory")}
        names |= {each.text("spec", "customizationRef", "name")} - {""}
        yield from (f"{each.namespace}/{name}" for name in names)
    elif each.kind == "ClusterDeployment":
        names = {own_customization(each), shared_customization(each)} - {""}
        yield from (f"{each.namespace}/{name}" for name in names)


def secrets_of(each: Stored) -> tuple[str, ...]:
    """Return the names of the Secrets that a pool or a deployment needs before a cluster is made."""
    paths = (
        ("pullSecretRef",),
        ("installConfigSecretTemplateRef",),
        ("provisioning", "installConfigSecretRef"),
        ("provisioning", "sshPrivateKeySecretRef"),
        ("provisioning", "manifestsSecretRef"),
    )
    names = (each.text("spec", *path, "name") for path in paths)
    return tuple(name for name in names if name)


def config_map_of(deployment: Stored) -> str:
    return deployment.text("spec", "provisioning", "manifestsConfigMapRef", "name")


def _by_secret(each: Stored) -> Iterator[str]:
    """Yield the Secrets that are named, and the ConfigMap, which is looked up in the same way."""
    if not (each.kind == "ClusterDeployment" and each.at("spec", "installed") is True):
        names = (*secrets_of(each), config_map_of(each))
        yield from (f"{each.namespace}/{name}" for name in dict.fromkeys(names) if name)


_INDEXES: Final[Mapping[str, Callable[[Stored], Iterable[str]]]] = {
    BY_NAMESPACE: lambda each: (each.namespace,),
    BY_POOL: _by_pool,
    BY_DEPLOYMENT: _by_deployment,
    BY_CUSTOMIZATION: _by_customization,
    BY_SECRET: _by_secret,
}


class ObjectCache:
    """Objects by kind, with indexes. What was written is put in at once; older versions never replace newer ones.

    An object that is gone stays so: the answer to a write or to a list may be seen after the end that it came before.
    """

    def __init__(self) -> None:
        self._gone: dict[str, None] = {}  # uids, the oldest first
        self._objects: dict[str, dict[tuple[str, str], Stored]] = {}
        self._indexes: dict[tuple[str, str, str], set[tuple[str, str]]] = {}

    def get(self, kind: str, namespace: str, name: str) -> Stored | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: str) -> tuple[Stored, ...]:
        return tuple(self._objects.get(kind, {}).values())

    def indexed(self, kind: str, index: str, value: str) -> tuple[Stored, ...]:
        """Return the objects of a kind that an index has under a value, by name."""
        keys = self._indexes.get((kind, index, value), ())
        return tuple(self._objects[kind][key] for key in sorted(keys))

    def put(self, stored: Stored) -> bool:
        """Take a version of an object; say whether it was new."""
        if stored.uid in self._gone:
            return False
        key = (stored.namespace, stored.name)
        held = self._objects.setdefault(stored.kind, {}).get(key)
        if held is not None and held.uid == stored.uid and version_number(held) >= version_number(stored):
            if held.version == stored.version:
                self._objects[stored.kind][key] = stored  # what the watch tells is kept anyway, and is the smaller copy
            return False
        if held is not None:
            self._unindex(held)
        self._objects[stored.kind][key] = stored
        for index, keys_of in _INDEXES.items():
            for value in keys_of(stored):
                self._indexes.setdefault((stored.kind, index, value), set()).add(key)
        return True

    def end(self, id_: ObjectId, uid: str) -> None:
        """Forget an object for good, because it is gone; another one may have its name by now."""
        if uid:
            self._gone[uid] = None
            if len(self._gone) > _REMEMBERED:
                del self._gone[next(iter(self._gone))]
        held = self.get(id_.kind, id_.namespace, id_.name)
        if held is not None and held.uid == uid:
            self.remove(id_)

    def remove(self, id_: ObjectId, version: int | None = None) -> bool:
        """Forget an object, unless it is known in a later version; say whether it was there."""
        held = self.get(id_.kind, id_.namespace, id_.name)
        if held is None or (version is not None and version_number(held) > version):
            return False
        self._unindex(held)
        del self._objects[id_.kind][id_.namespace, id_.name]
        return True

    def refresh(self, kind: str, index: str, value: str, objects: Iterable[Stored], version: int) -> None:
        """Take what a list has just answered: objects that are not in it are gone, unless they came later."""
        listed = {(each.namespace, each.name): each for each in objects}
        for held in self.indexed(kind, index, value):
            if (held.namespace, held.name) not in listed:
                self.remove(held.id, version)
        for each in listed.values():
            self.put(each)

    def _unindex(self, stored: Stored) -> None:
        key = (stored.namespace, stored.name)
        for index, keys_of in _INDEXES.items():
            for value in keys_of(stored):
                keys = self._indexes.get((stored.kind, index, value))
                if keys is not None:
                    keys.discard(key)
                    if not keys:
                        del self._indexes[stored.kind, index, value]


def version_number(stored: Stored) -> int:
    """Return a resourceVersion as the number that it is (it can be compared, also across kinds)."""
    return int(stored.version) if stored.version.isdigit() else 0
