"""Every failure a user can see: what, where, why and the next command, with an exit code.

Exit codes: 1 any other failure, 2 bad usage, 3 a document we cannot accept, 4 a machine not ready, 5 a cluster out of
reach. Anything that is not a `GarboardError` is a bug and keeps its traceback.
"""

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


class NotReady(GarboardError):
    """The machine is not ready; nothing has been changed yet."""

    exit_code = 4
    default_class = "not-ready"


class ClusterUnreachable(GarboardError):
    """The cluster, or the part of it that is needed, does not answer."""

    exit_code = 5
    default_class = "unreachable"


class PatchFailed(BadDocument):
    """A patch that cannot be read or applied; `at` is the place inside the patch document, for the caller to locate."""

    default_class = "bad-patch"

    def __init__(
        self, message: str, *, error_class: str, at: tuple[str | int, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, error_class=error_class)
        self.at = at
