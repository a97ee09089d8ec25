"""install-config.yaml, of which an installer makes a cluster. Only its name, domain and platform are read here."""

from collections.abc import Mapping
from typing import NoReturn

from garboard.documents import DocumentPath, Json, read_yaml, write_yaml
from garboard.errors import BadDocument, PatchFailed
from garboard.fleet.customize import (
    Customization,
    CustomizationFailed,
    CustomizationFailure,
    CustomizationStep,
    FailureReason,
    Rules,
)
from garboard.fleet.customize.apply import apply_strictly, failed_operation
from garboard.model.names import subdomain_problems
from garboard.patches import Origin, OriginKind, Patch, SourceText, copy_of
from garboard.patches.json_values import ABSENT, value_at
from garboard.values import dataclass

FILE_NAME = "install-config.yaml"
_HOSTS_GROUP = "fleet.garboard.dev/"


@dataclass(frozen=True, slots=True)
class InstallConfig:
    """An install config before its patches: what its Secret holds, and what a pool has set in it."""

    source: SourceText  # where its lines stand in the file of the Secret
    text: str
    value: Json
    set_by_pool: tuple[tuple[DocumentPath, Origin], ...] = ()

    def __repr__(self) -> str:
        return f"InstallConfig({self.source.name})"  # it may hold a pull secret

    @classmethod
    def read(cls, text: str, source: SourceText) -> "InstallConfig":
        value = read_yaml(source.text, source=source.name, line=source.line)
        if not isinstance(value, dict):
            raise BadDocument(
                f"{source.where()}: {FILE_NAME} is no mapping", hint="write it as the installer's documentation says"
            )
        return cls(source, text, value)

    @classmethod
    def empty(cls, source: SourceText) -> "InstallConfig":
        """Return what stands for an install config that could not be found."""
        return cls(source, "", {})

    @property
    def cluster_name(self) -> str:
        return _text_at(self.value, "metadata", "name")

    def named(self, name: str, base_domain: str, origin: Origin) -> "InstallConfig":
        """Return it with the name and the domain that a pool gives to a cluster."""
        value = copy_of(self.value)
        assert isinstance(value, dict)
        metadata = value.get("metadata")
        value["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": name}
        value["baseDomain"] = base_domain
        set_by_pool = ((("metadata", "name"), origin), (("baseDomain",), origin))
        return InstallConfig(self.source, self.text, value, set_by_pool)

    def origin(self, at: DocumentPath) -> Origin:
        """Return where a field comes from, before patches."""
        mine = Origin(OriginKind.BASE, self.source.name, self.source.position(at))
        return next((origin for path, origin in self.set_by_pool if path == at), mine)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The names of the platform blocks."""
        platform = self.value.get("platform") if isinstance(self.value, Mapping) else None
        return tuple(platform) if isinstance(platform, dict) else ()


@dataclass(frozen=True, slots=True)
class PatchedInstallConfig:
    """An install config after its patches."""

    value: Json
    before: InstallConfig
    patches: tuple[Patch, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"PatchedInstallConfig({self.before.source.name})"

    @property
    def data(self) -> bytes:
        """What the installer reads; without patches and names of a pool as it was written."""
        if not self.patches and not self.before.set_by_pool:
            text = self.before.text
            return (text if text.endswith("\n") else f"{text}\n").encode()
        return write_yaml(self.value).encode()

    @property
    def cluster_name(self) -> str:
        """The name of the cluster, which a patch may have changed."""
        return _text_at(self.value, "metadata", "name")

    @property
    def base_domain(self) -> str:
        return _text_at(self.value, "baseDomain")


def is_hosts_config(document: Json) -> bool:
    """Say whether an install config is one of garboard's own installer, which makes clusters of hosts."""
    return isinstance(document, dict) and str(document.get("apiVersion", "")).startswith(_HOSTS_GROUP)


def patch_install_config(
    config: InstallConfig, customization: Customization | None, rules: Rules
) -> PatchedInstallConfig:
    """Apply the installConfigPatches of a customization, if there are any."""
    patch = customization.install_config if customization is not None else None
    if customization is None or patch is None:
        return PatchedInstallConfig(config.value, config)
    try:
        value, doubts = apply_strictly(config.value, patch, rules, is_compat=customization.is_compat)
        _refuse_nameless(value, patch)
    except PatchFailed as error:
        raise CustomizationFailed([_failure(customization, patch, error, rules)]) from None
    warnings = tuple(f"{each.where}: {FILE_NAME}: {each.message}" for each in doubts)
    return PatchedInstallConfig(value, config, (patch,), warnings)


def _refuse_nameless(value: Json, patch: Patch) -> None:
    """Refuse what no installer could make a cluster of: its name and domain are what is read of every config."""
    if not isinstance(value, dict):
        _refuse(patch, "after the patches it is no mapping")
    for field in (("metadata", "name"), ("baseDomain",)):
        found = value_at(value, field)
        if field == ("baseDomain",) and is_hosts_config(value) and (found is ABSENT or not found):
            continue
        problems = subdomain_problems(found) if isinstance(found, str) else ["it has to be text"]
        if problems:
            shown = f" {found!r}" if isinstance(found, str) else ""
            _refuse(patch, f"after the patches {'.'.join(field)}{shown} is no name: {problems[0]}")


def _refuse(patch: Patch, message: str) -> NoReturn:
    hint = "correct the operation, or leave the field alone"
    raise PatchFailed(f"{patch.where()}: {message}", hint=hint, error_class="install-config-patch-failed")


def _failure(customization: Customization, patch: Patch, error: PatchFailed, rules: Rules) -> CustomizationFailure:
    where = patch.where(error.at)
    return CustomizationFailure(
        reason=FailureReason.INSTALL_CONFIG_FAILED,
        customization=customization.name,
        step=CustomizationStep.INSTALL_CONFIG,
        message=rules.redact(error.message.removeprefix(f"{where}: ")),
        where=where,
        hint=rules.redact(error.hint) if error.hint else None,
        file=FILE_NAME,
        op=failed_operation(patch, error),
    )


def _text_at(value: Json, *path: str) -> str:
    found = value_at(value, path)
    return found if isinstance(found, str) else ""
