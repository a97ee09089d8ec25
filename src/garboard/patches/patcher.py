"""A patch directory as something to call for each target while a node is rendered."""

from dataclasses import dataclass

from garboard.documents import Json
from garboard.patches.apply import Applied
from garboard.patches.check import PatchChecks
from garboard.patches.directory import PatchSet
from garboard.patches.numbers import as_decoded
from garboard.patches.patch import Patch, PatchType
from garboard.patches.run import patch_object, patch_target
from garboard.patches.targets import Decoding, Target, targets_of
from garboard.schema import Schema


@dataclass(frozen=True, slots=True)
class TargetPatcher:
    """Applies a directory's patches as kubeadm does; a target that the minor has not got stays as it is."""

    patch_set: PatchSet
    schema: Schema

    def __call__(self, name: str, document: Json, /) -> Json:
        return self.apply(name, document, is_watched=False).document

    def apply(self, name: str, document: Json, *, is_watched: bool) -> Applied:
        """Patch the document of a target, which is taken over; `is_watched` asks for findings as well."""
        target = self._target(name)
        if target is None:
            return Applied(document, ())
        patches = self.patch_set.for_target(target)
        if target.decoding is not Decoding.NONE:
            return patch_target(document, patches, target, self.schema, is_watched=is_watched)
        # What is the node's own is put on top by who renders it, and is not yet in the document.
        if any(patch.type is PatchType.STRATEGIC for patch in patches):
            document = as_decoded(document)
        return patch_object(
            document, patches, target.shape(self.schema), is_watched=is_watched, checks=PatchChecks(self.schema)
        )

    def patches_of(self, name: str) -> tuple[Patch, ...]:
        """Return the patches of a target in the order in which they apply."""
        target = self._target(name)
        return self.patch_set.for_target(target) if target else ()

    def _target(self, name: str) -> Target | None:
        return next((each for each in targets_of(self.schema.version) if each.name == name), None)
