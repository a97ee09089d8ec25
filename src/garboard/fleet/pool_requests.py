"""What a ClusterPool makes: a request for each entry of its inventory, or one if it has none."""

from collections.abc import Iterator

from garboard.fleet.customize import Customization
from garboard.fleet.documents import ClusterPool, WrittenObject
from garboard.fleet.install_config import InstallConfig
from garboard.fleet.names import derived_name
from garboard.fleet.references import References
from garboard.fleet.requests import PULL_SECRET_KEY, ProvisionRequest, environment_of, platform_warnings
from garboard.patches import Origin, OriginKind
from garboard.values import dataclass


def entries_of(pool: WrittenObject[ClusterPool]) -> tuple[str, ...]:
    """Return the names in a pool's inventory, each once."""
    return tuple(dict.fromkeys(each.name for each in pool.value.spec.inventory))


def deployment_name(pool: WrittenObject[ClusterPool], entry: str | None) -> str:
    """Return the name of what a pool makes of an entry. In a cluster Hive adds five random characters instead."""
    return derived_name(pool.key.name, entry) if entry is not None else pool.key.name


def pool_requests(
    pool: WrittenObject[ClusterPool], references: References, only: str | None = None
) -> Iterator[ProvisionRequest]:
    """Yield the requests of a pool, or of one entry of its inventory."""
    parts = _PoolParts.read(pool, references)
    listed = [each.name for each in pool.value.spec.inventory]
    if parts is not None and not listed:
        yield parts.request(None, None)
    for entry in entries_of(pool):
        if only in (None, entry):
            own = references.customization(pool, entry, ("spec", "inventory", listed.index(entry), "name"))
            if own is not None and parts is not None:
                yield parts.request(entry, own)


@dataclass(frozen=True, slots=True)
class _PoolParts:
    """What all clusters of a pool have in common."""

    pool: WrittenObject[ClusterPool]
    config: InstallConfig
    shared: Customization | None
    pull_secret: str
    release_image: str
    secrets: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def read(cls, pool: WrittenObject[ClusterPool], references: References) -> "_PoolParts | None":
        """Return the parts of a pool; None if a reference does not lead to what it needs."""
        spec, before, template = pool.value.spec, references.wrong, pool.value.spec.install_config_secret_template_ref
        if template is None or not template.name:
            hint = "write an install config into a Secret, and name it there; garboard makes none from a platform"
            references.problem(pool, ("spec",), "installConfigSecretTemplateRef is missing", hint)
        config = references.install_config(pool, template, ("spec", "installConfigSecretTemplateRef"))
        pull_secret = references.secret_text(pool, spec.pull_secret_ref, ("spec", "pullSecretRef"), PULL_SECRET_KEY)
        release_image = references.release_image(pool, spec.image_set_ref, ("spec", "imageSetRef"))
        shared, ref = None, spec.customization_ref
        if ref is not None and ref.name:
            shared = references.customization(pool, ref.name, ("spec", "customizationRef", "name"))
        if config is None or references.wrong > before:
            return None
        warnings = (*_warnings(pool, references, shared), *platform_warnings(spec.platform, config, pool.where()))
        return cls(pool, config, shared, pull_secret, release_image, references.secrets, warnings)

    def request(self, entry: str | None, own: Customization | None) -> ProvisionRequest:
        """Return the request of an inventory entry, or of the pool itself if it has no inventory."""
        spec, key = self.pool.value.spec, self.pool.key
        name = deployment_name(self.pool, entry)
        position = self.pool.source.position(("metadata", "name"))
        origin = Origin(OriginKind.CONFIG, self.pool.source.name, position, f"ClusterPool {key}")
        applied = [each for each in (self.shared, own) if each is not None]
        return ProvisionRequest(
            name=name,
            namespace=name,
            entry=entry if entry is not None else key.name,
            pool=key,
            platform=next(iter(spec.platform)),
            install_config=self.config.named(name, spec.base_domain, origin),
            install_config_customization=own,
            customizations=tuple({each.where: each for each in applied}.values()),
            image_set=spec.image_set_ref.name,
            release_image=self.release_image,
            install_attempts_limit=spec.install_attempts_limit,
            installer_env=environment_of(spec.installer_env),
            pull_secret=self.pull_secret,
            secrets=self.secrets,
            warnings=self.warnings,
        )


def _warnings(pool: WrittenObject[ClusterPool], references: References, shared: Customization | None) -> Iterator[str]:
    spec, entries = pool.value.spec, entries_of(pool)
    if shared is not None and shared.install_config is not None and shared.name not in entries:
        yield (
            f"{shared.where}: the installConfigPatches of {shared.name} are ignored: ClusterPool {pool.key} names it"
            " for all of its clusters, and they count only in an entry of the inventory"
        )
    if shared is not None and shared.name in entries:
        where = pool.where("spec", "customizationRef")
        yield f"{where}: {shared.name} is in the inventory too; its patches are applied once"
    seen: set[str] = set()
    for index, each in enumerate(spec.inventory):
        if each.name in seen:
            where = pool.where("spec", "inventory", index)
            yield f"{where}: {each.name} stands in the inventory a second time, and counts once"
        seen.add(each.name)
    if entries and spec.size > len(entries):
        where = pool.where("spec", "size")
        yield f"{where}: size {spec.size} is larger than the inventory, which is enough for {len(entries)} clusters"
    yield from _shared_entries(pool, references)


def _shared_entries(pool: WrittenObject[ClusterPool], references: References) -> Iterator[str]:
    """Yield the entries that another pool of the namespace lists too: only one of the two can use them."""
    mine = set(entries_of(pool))
    for other in references.documents.pools.values():
        if other.key != pool.key and other.key.namespace == pool.key.namespace:
            for name in sorted(mine & set(entries_of(other))):
                yield f"{pool.where('spec', 'inventory')}: {name} is in the inventory of ClusterPool {other.key} too"
