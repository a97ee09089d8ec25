"""`kubernetesVersion` as users write it: a version, a CI build, or a label that kubeadm looks up on the network."""

import re

from garboard.config.sources import ConfigDocument
from garboard.errors import InvalidValue
from garboard.model import DEFAULT_VERSION, KubernetesVersion
from garboard.model.minors import MinorFacts, facts_of
from garboard.values import dataclass

_RELEASE = re.compile(r"v?((?:0|[1-9][0-9]{0,5})\.(?:0|[1-9][0-9]{0,5})\.(?:0|[1-9][0-9]{0,5}))([-\w.+]*)", re.ASCII)
_SUFFIX = re.compile(r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
_ZERO_LED = re.compile("0[0-9]+")
_LABEL = re.compile(r"(?:latest|stable)+(?:-([1-9])(?:\.([1-9][0-9]?))?)?")
_PREFIXED = re.compile(r"(?:(release|ci)/)?([-\w.+]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResolvedVersion:
    """A version in its normal form, such as v1.37.1; a pre-release keeps its suffix."""

    text: str
    is_ci: bool = False

    @property
    def release(self) -> KubernetesVersion:
        found = _RELEASE.fullmatch(self.text)
        assert found is not None, "resolve_version lets nothing else through"
        return KubernetesVersion.parse(found[1])

    @property
    def facts(self) -> MinorFacts:
        """What is particular to the kubeadm of this minor; another minor than the supported ones is refused."""
        return facts_of(self.release)


def resolve_version(text: str) -> ResolvedVersion:
    """Resolve what was written, without the network: a label means the reference patch of its minor."""
    found = _PREFIXED.fullmatch(text)
    if found is None:
        raise InvalidValue(f'invalid version "{text}"', hint=f"write kubernetesVersion as {DEFAULT_VERSION}")
    is_ci, name = found[1] == "ci", found[2]
    release = _RELEASE.fullmatch(name)
    if release is not None:
        _check_suffix(f"v{release[1]}{release[2]}", release[2])
        return ResolvedVersion(f"v{release[1]}{release[2]}", is_ci)
    label = _LABEL.fullmatch(name)
    if label is None:
        raise InvalidValue(
            f'version "{text}" doesn\'t match patterns for neither semantic version nor labels (stable, latest, ...)',
            hint=f"write kubernetesVersion as {DEFAULT_VERSION}",
        )
    if label[2] is None:
        return ResolvedVersion(str(DEFAULT_VERSION), is_ci)
    return ResolvedVersion(str(facts_of(KubernetesVersion(int(label[1]), int(label[2]))).reference), is_ci)


def _check_suffix(version: str, suffix: str) -> None:
    """Refuse what follows the three numbers unless it is a pre-release or build as semantic versioning has them."""
    found = _SUFFIX.fullmatch(suffix)
    zero_led = [part for part in (found[1] or "").split(".") if _ZERO_LED.fullmatch(part)] if found else []
    if digits := re.match("[0-9]+", suffix):  # the last number begins with a zero
        reason = f'illegal zero-prefixed version component "0{digits[0]}" in "{version}"'
    elif suffix.startswith("."):
        reason = f'illegal version string "{version}"'
    elif found is None:
        reason = f'could not parse pre-release/metadata ({suffix}) in version "{version}"'
    elif zero_led:
        reason = f'illegal zero-prefixed version component "{zero_led[0]}" in "{version}"'
    else:
        return
    raise InvalidValue(
        f'couldn\'t parse Kubernetes version "{version}": {reason}', hint=f"write it as {DEFAULT_VERSION}"
    )


def version_in(documents: tuple[ConfigDocument, ...]) -> ResolvedVersion | None:
    """Return the version that a file asks for; its minor decides how everything else is read."""
    for document in documents:
        given = document.tree.get("kubernetesVersion")
        if document.gvk.is_kubeadm and document.gvk.kind == "ClusterConfiguration" and isinstance(given, str) and given:
            return _supported(resolve_version(given), document)
    return None


def _supported(version: ResolvedVersion, document: ConfigDocument) -> ResolvedVersion:
    """Return the version of a document if its minor is supported; no flag can override the file."""
    try:
        facts_of(version.release)
    except InvalidValue as error:
        source = document.source
        raise InvalidValue(
            f"{source.file}: kubernetesVersion: {error.message}{source.where(('kubernetesVersion',))}",
            hint=f"write a version of a supported minor, such as {DEFAULT_VERSION}",
            error_class=error.error_class,
        ) from error
    return version
