"""How a promised cluster comes to be: its inventory entry, its namespace, then all of its objects, itself the last.

Every step can be repeated by another controller, and finds what was done: the name is in the pool, the reservation in
the entry.
"""

from garboard.fleet.controllers.actions import Create, Deciding, Delete, Replace, ReplaceStatus
from garboard.fleet.controllers.install_configs import (
    PULL_SECRET_KEY,
    Unpatchable,
    patched_config,
    secret_data,
    secret_text,
)
from garboard.fleet.controllers.inventory import copied, holder, holding_pool, is_reserved, reserved
from garboard.fleet.controllers.marks import (
    API_VERSION,
    CREATING,
    DEPROVISION,
    PLATFORM,
    POOL_NAME,
    POOL_NAME_OF_NAMESPACE,
    POOL_NAMESPACE,
    SPEC_HASH,
)
from garboard.fleet.controllers.pool_sizing import is_usable
from garboard.fleet.controllers.pool_snapshot import PoolSnapshot, promised
from garboard.fleet.controllers.stored import Stored
from garboard.fleet.install_config import FILE_NAME, PatchedInstallConfig
from garboard.fleet.names import derived_name
from garboard.values import Json


def complete_creations(snapshot: PoolSnapshot, deciding: Deciding) -> bool:
    """Take the next step of each promised cluster; say whether one is still to come, so that no more are promised."""
    taken: set[str] = set()
    given_up = [each for each in snapshot.creating if not _step(snapshot, each, taken, deciding)]
    left = [each for each in snapshot.creating if each not in given_up]
    if left != list(promised(snapshot.pool)):
        kept = ",".join(left) or None
        changed = snapshot.pool.edited(kept, "metadata", "annotations", CREATING)
        deciding.do(Replace(changed), needs_fresh=True)
        return True
    return bool(left)


def _step(snapshot: PoolSnapshot, name: str, taken: set[str], deciding: Deciding) -> bool:
    """Take the next step of one cluster; return False if it cannot be made under its name."""
    namespace = snapshot.namespaces.get(name)
    if namespace is not None and namespace.is_deleting:
        return False
    entry = None
    if snapshot.inventory.names:
        entry = _reserved_entry(snapshot, name)
        if entry is None:
            return _reserve(snapshot, name, taken, deciding) or _is_given_up_later(namespace, deciding)
    objects = _objects(snapshot, name, entry)
    if isinstance(objects, Unpatchable):  # the entry was changed after it was reserved
        return _is_given_up_later(namespace, deciding)
    if namespace is None:
        deciding.do(Create(_namespace(snapshot.pool, name)), needs_fresh=True)
    else:
        deciding.do(*map(Create, objects), needs_fresh=True)
    return True


def _is_given_up_later(namespace: Stored | None, deciding: Deciding) -> bool:
    """Say whether a name has to stay: until nobody who is late can make the cluster in its namespace."""
    if namespace is not None:
        deciding.do(Delete(namespace), needs_fresh=True)
    return namespace is not None


def _reserved_entry(snapshot: PoolSnapshot, name: str) -> Stored | None:
    found = (
        each
        for each in snapshot.customizations.values()
        if is_reserved(each) and holder(each) == name and holding_pool(each) == snapshot.pool.name
    )
    return min(found, key=lambda each: each.name, default=None)


def _reserve(snapshot: PoolSnapshot, name: str, taken: set[str], deciding: Deciding) -> bool:
    """Reserve the first entry that can be used, in one write that names the cluster."""
    for each in snapshot.inventory.candidates(deciding.now):
        if each.name not in taken and is_usable(snapshot, each, deciding):
            taken.add(each.name)
            deciding.do(ReplaceStatus(reserved(each, snapshot.pool, name, deciding.now)), needs_fresh=True)
            return True
    return False


def _namespace(pool: Stored, name: str) -> Stored:
    labels: dict[str, Json] = {POOL_NAME_OF_NAMESPACE: pool.name, POOL_NAMESPACE: pool.namespace}
    return Stored({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def _objects(snapshot: PoolSnapshot, name: str, entry: Stored | None) -> list[Stored] | Unpatchable:
    """Return everything that a cluster is made of, the ClusterDeployment last."""
    pool, template = snapshot.pool, snapshot.template
    assert template is not None, "dependencies are looked at before"
    config = patched_config(template, name, pool.text("spec", "baseDomain"), entry)
    if isinstance(config, Unpatchable):
        return config
    config_name = derived_name(name, "install-config")
    objects = [_secret(name, config_name, {FILE_NAME: config.data.decode()}, "Opaque")]
    pull = snapshot.secrets.get(pool.text("spec", "pullSecretRef", "name"))
    if pull is not None:
        text = secret_text(pull, PULL_SECRET_KEY) or ""
        objects.append(_secret(name, derived_name(name, "pull-secret"), {PULL_SECRET_KEY: text}, _PULL_TYPE))
    shared = snapshot.customizations.get(snapshot.shared_customization)
    # One that is the entry, too, is copied once and referred to twice.
    copies = {each.name: each for each in (shared, entry) if each is not None}
    objects += [copied(each, name) for each in copies.values()]
    return [*objects, _deployment(snapshot, name, config, entry)]


_PULL_TYPE = "kubernetes.io/dockerconfigjson"


def _secret(namespace: str, name: str, texts: dict[str, str], type_: str) -> Stored:
    metadata: dict[str, Json] = {"name": name, "namespace": namespace}
    return Stored(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_, "data": secret_data(texts)}
    )


def _deployment(snapshot: PoolSnapshot, name: str, config: PatchedInstallConfig, entry: Stored | None) -> Stored:
    pool = snapshot.pool
    reference: dict[str, Json] = {"namespace": pool.namespace, "poolName": pool.name}
    if entry is not None:
        reference["clusterDeploymentCustomization"] = {"name": entry.name}
    provisioning: dict[str, Json] = {
        "installConfigSecretRef": {"name": derived_name(name, "install-config")},
        "imageSetRef": pool.mapping("spec", "imageSetRef"),
    }
    if snapshot.shared_customization:
        provisioning["customizationRef"] = {"name": snapshot.shared_customization}
    if pool.entries("spec", "installerEnv"):
        provisioning["installerEnv"] = list(pool.entries("spec", "installerEnv"))
    spec: dict[str, Json] = {
        # A patch of an inventory entry may have changed both.
        "clusterName": config.cluster_name or name,
        "baseDomain": config.base_domain or pool.text("spec", "baseDomain"),
        "platform": pool.mapping("spec", "platform"),
        "clusterPoolRef": reference,
        "provisioning": provisioning,
    }
    for field in ("installAttemptsLimit", "hibernateAfter"):
        if pool.at("spec", field) is not None:
            spec[field] = pool.at("spec", field)
    if pool.text("spec", "pullSecretRef", "name"):
        spec["pullSecretRef"] = {"name": derived_name(name, "pull-secret")}
    metadata: dict[str, Json] = {
        "name": name,
        "namespace": name,
        "labels": {
            **pool.mapping("spec", "labels"), POOL_NAMESPACE: pool.namespace, POOL_NAME: pool.name,
            PLATFORM: next(iter(pool.mapping("spec", "platform")), ""),
        },
        "annotations": {
            **pool.mapping("spec", "annotations"), SPEC_HASH: snapshot.version(entry.name if entry else ""),
        },
        "finalizers": [DEPROVISION],
    }  # fmt: skip
    return Stored({"apiVersion": API_VERSION, "kind": "ClusterDeployment", "metadata": metadata, "spec": spec})
