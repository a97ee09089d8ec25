"""Why a customization cannot be applied: a record for programs, and the words for people."""

from collections.abc import Sequence
from enum import StrEnum

from garboard.errors import BadDocument
from garboard.values import Json, dataclass


class CustomizationStep(StrEnum):
    """Which of the two lists of a ClusterDeploymentCustomization."""

    INSTALL_CONFIG = "installConfigPatches"
    MANIFESTS = "installerManifestPatches"


class FailureReason(StrEnum):
    """The reasons of conditions. Trying again with the same input helps with none of them."""

    NO_MATCH = "ManifestPatchNoMatch"
    PATH_ESCAPE = "ManifestPatchPathEscape"
    PROTECTED = "ManifestPatchProtected"
    INVALID = "ManifestPatchInvalid"
    FAILED = "ManifestPatchFailed"
    IO = "ManifestIOError"
    INSTALL_CONFIG_INVALID = "InstallConfigPatchInvalid"
    INSTALL_CONFIG_FAILED = "InstallConfigPatchFailed"


_ERROR_CLASSES = {
    FailureReason.NO_MATCH: "manifest-no-match",
    FailureReason.PATH_ESCAPE: "manifest-path-escape",
    FailureReason.PROTECTED: "manifest-protected",
    FailureReason.INVALID: "customization-invalid",
    FailureReason.FAILED: "manifest-patch-failed",
    FailureReason.IO: "manifest-unusable",
    FailureReason.INSTALL_CONFIG_INVALID: "customization-invalid",
    FailureReason.INSTALL_CONFIG_FAILED: "install-config-patch-failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomizationFailure:
    """One failure; its message has been redacted."""

    reason: FailureReason
    customization: str
    step: CustomizationStep
    message: str
    where: str  # file:line:column of the customization
    hint: str | None = None
    entry: int | None = None
    selector: str = ""
    file: str = ""
    op: int | None = None

    @property
    def as_json(self) -> Json:
        """Return the record, without what it does not have."""
        told: dict[str, Json] = {
            "reason": str(self.reason),
            "customization": self.customization,
            "step": str(self.step),
            "entry": self.entry,
            "selector": self.selector or None,
            "file": self.file or None,
            "op": self.op,
            "message": self.message,
            "where": self.where,
        }
        return {name: value for name, value in told.items() if value is not None}

    def __str__(self) -> str:
        entry = f"[{self.entry}]" if self.entry is not None else ""
        selector = f" ({self.selector})" if self.selector else ""
        file = f", file {self.file}" if self.file else ""
        op = f", op {self.op}" if self.op is not None else ""
        return f"{self.where}: {self.customization}: {self.step}{entry}{selector}{file}{op}: {self.message}"


class CustomizationFailed(BadDocument):
    """A customization that cannot be applied; nothing of it has been."""

    default_class = "customization-failed"

    def __init__(self, failures: Sequence[CustomizationFailure]) -> None:
        self.failures = tuple(failures)
        first, *others = self.failures
        text = "\n".join([str(first), *(f"  also {each}" for each in others)])
        super().__init__(text, hint=first.hint, error_class=_ERROR_CLASSES[first.reason])
