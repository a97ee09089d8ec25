"""Kubernetes versions, and the minors whose kubeadm garboard can stand in for."""

import re
from dataclasses import dataclass
from typing import Self

from garboard.errors import InvalidValue


@dataclass(frozen=True, slots=True, order=True)
class Minor:
    """A Kubernetes minor, such as 1.37; what kubeadm writes depends on it and on nothing finer."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True, order=True)
class KubernetesVersion:
    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        # [0-9] and not \d: other scripts' digits are no version, and int() would take them.
        found = re.fullmatch(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?", text)
        if found is None:
            raise InvalidValue(f"{text!r} is not a Kubernetes version", hint="write it as v1.37.1")
        return cls(*(int(part or 0) for part in found.groups()))

    @property
    def as_minor(self) -> Minor:
        return Minor(self.major, self.minor)

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}"


# One reference patch release for each minor: type data, defaults and parity tests are taken from it.
SUPPORTED_VERSIONS = (KubernetesVersion(1, 36, 4), KubernetesVersion(1, 37, 1))
DEFAULT_VERSION = SUPPORTED_VERSIONS[-1]


def reference_version(version: KubernetesVersion) -> KubernetesVersion:
    """Return the release whose behaviour stands for the minor of `version`; refuse a minor we have no data for."""
    for supported in SUPPORTED_VERSIONS:
        if supported.as_minor == version.as_minor:
            return supported
    known = ", ".join(str(each.as_minor) for each in SUPPORTED_VERSIONS)
    raise InvalidValue(
        f"Kubernetes {version.as_minor} is not supported; the supported minors are {known}",
        hint=f"pass --kubernetes-version {DEFAULT_VERSION}, or use a garboard release that knows {version.as_minor}",
        error_class="unsupported-version",
    )
