"""Placeholders in an action: content that is only known when the action is carried out."""

from dataclasses import field
from datetime import timedelta

from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class OutcomePlaceholder:
    """A placeholder in a file, replaced by the outcome of an earlier step, such as the list of etcd members."""

    placeholder: str
    name: str


@dataclass(frozen=True, slots=True)
class FilePlaceholder:
    """A placeholder in an object, replaced by the base64 of a file that an earlier step makes.

    With a `key` the file is encrypted with it first. A missing file that is not `is_needed` counts as empty.
    """

    placeholder: str
    path: str
    key: bytes = field(default=b"", repr=False)
    is_needed: bool = True


@dataclass(frozen=True, slots=True)
class ExpiryPlaceholder:
    """A placeholder in an object, replaced by the base64 of an RFC 3339 time: `after` the moment the object is put."""

    placeholder: str
    after: timedelta
