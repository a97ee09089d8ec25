"""Every failure a user can see: what, where, why and the next command, with an exit code.

Exit codes: 1 any other failure, 2 bad usage, 3 a document we cannot accept, 4 a machine not ready, 5 a cluster out of
reach. Anything that is not a `GarboardError` is a bug and keeps its traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class GarboardError(Exception):
    """A failure its reader can act on; `error_class` is the stable word shown as `error[class]: …`."""

    exit_code: ClassVar[int] = 1
    default_class: ClassVar[str] = "failed"

    def __init__(self, message: str, *, hint: str | None = None, error_class: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.error_class = error_class or self.default_class

    @property
    def message(self) -> str:
        return str(self.args[0])


class BadUsage(GarboardError):
    """The command line does not make sense; nothing was read or written."""

    exit_code = 2
    default_class = "usage"


class BadDocument(GarboardError):
    """A document (configuration, manifest, patch) that cannot be accepted."""

    exit_code = 3
    default_class = "bad-document"


class InvalidValue(BadDocument):
    """A single value that does not parse: a version, an address, a name."""

    default_class = "invalid-value"


@contextmanager
def as_usage() -> Iterator[None]:
    """Turn a refusal of a value that was given on the command line into one of the command line."""
    try:
        yield
    except InvalidValue as error:
        raise BadUsage(error.message, hint=error.hint) from error


class NotReady(GarboardError):
    """The machine is not ready; nothing has been changed yet."""

    exit_code = 4
    default_class = "not-ready"


class StalePlan(GarboardError):
    """A file that is about to be written is not the one that was planned for; it has not been touched."""

    default_class = "stale-plan"


class ClusterUnreachable(GarboardError):
    """The cluster, or the part of it that is needed, does not answer."""

    exit_code = 5
    default_class = "unreachable"


# What to try next, by class, where the place that fails cannot tell more.
_PATCH_HINTS = {
    "bad-document": "an object is a mapping with apiVersion and kind; a JSON patch is a list, others are mappings",
    "no-merge-key": "give every element of the list its key, such as a container's name",
    "unknown-field": "check the spelling, also that the field stands at the right depth",
    "not-a-struct": "patch this member with a merge or JSON patch",
    "not-a-list": "write the field in the form that its type has",
    "bad-directive": "$patch takes `replace` or `delete`; to merge, leave it out",
    "bad-directive-format": "see docs/patches.md for the form of each directive",
    "order-mismatch": "list every element of the patch in $setElementOrder, in the same order",
    "element-types": "write all elements of the list as values of one kind",
    "path-missing": "check the path against the document; parents are never created",
    "bad-index": "use an index of the list, or - to append",
    "bad-operation": "an operation has op, path and, by its kind, value or from",
    "bad-root": "replace members of the document instead",
    "test-failed": "the document is not the one that the patch was written for: look at the value there",
}


class PatchFailed(BadDocument):
    """A patch that cannot be read or applied; `at` is the place inside the patch document, for the caller to locate."""

    default_class = "bad-patch"

    def __init__(
        self, message: str, *, error_class: str, at: tuple[str | int, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint or _PATCH_HINTS.get(error_class), error_class=error_class)
        self.at = at
