"""Kubernetes versions and minors; which minors are supported is in `minors`."""

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


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version or of an image's tag, such as 3.6.8-0, for comparison; none in another form."""
    parts = version.lstrip("v").replace("-", ".").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
