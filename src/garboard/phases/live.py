"""A target three ways: as rendered, as patched, and as it is on this node's disk."""

from dataclasses import dataclass
from enum import StrEnum

from garboard.documents import read_yaml, write_yaml
from garboard.patches.unified import CONTEXT, TextDiff


class LiveState(StrEnum):
    """What a node has, beside what it would be given."""

    MISSING = "is not there"
    PATCHED = "is as rendered and patched"
    UNPATCHED = "is as rendered: the patches are not applied yet"
    DIFFERENT = "differs from what is rendered and patched"


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """The three texts of a target, each as kubeadm would write it."""

    name: str
    path: str
    rendered: str
    patched: str
    found: str | None  # None: the file is not there

    @classmethod
    def of(cls, name: str, path: str, *, rendered: str, patched: str, data: bytes | None) -> "LiveTarget":
        found = None if data is None else write_yaml(read_yaml(data, source=path))
        return cls(name, path, rendered, patched, found)

    @property
    def state(self) -> LiveState:
        if self.found is None:
            return LiveState.MISSING
        if self.found == self.patched:
            return LiveState.PATCHED
        return LiveState.UNPATCHED if self.found == self.rendered else LiveState.DIFFERENT

    def diffs(self, context: int = CONTEXT) -> tuple[TextDiff, ...]:
        """Return what the patches change, and what on disk is neither rendered nor patched."""
        names = (f"{self.name} (rendered)", f"{self.name} (patched)")
        by_patches = TextDiff.of(self.rendered, self.patched, names, context=context)
        if self.state is not LiveState.DIFFERENT:
            return (by_patches,)
        assert self.found is not None
        by_others = TextDiff.of(self.patched, self.found, (names[1], f"{self.path} (on disk)"), context=context)
        return by_patches, by_others
