"""Writing a patch tree as a plain kubeadm directory, so that a user can leave garboard at any time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from garboard.documents import Json, write_yaml
from garboard.errors import PatchFailed
from garboard.patches.apply import apply_patches
from garboard.patches.args import compile_args
from garboard.patches.directory import PatchSet
from garboard.patches.patch import Patch, PatchType
from garboard.patches.taking import copy_of
from garboard.patches.targets import Target
from garboard.schema import Schema


@dataclass(frozen=True, slots=True)
class CompiledFile:
    """A file of the compiled directory, and the patch that it stands for."""

    name: str
    text: str
    origin: str


def compile_patches(patches: PatchSet, bases: Mapping[str, Json], schema: Schema) -> tuple[CompiledFile, ...]:
    """Return one file a patch, named so that kubeadm's order is the order of the tree.

    `bases` holds the unpatched document by target; flag patches need it, because kubeadm has no word for a flag.
    """
    targets = dict.fromkeys(each.target for each in patches.patches)
    return tuple(
        file
        for target in targets
        for file in _compile_target(target, patches.for_target(target), bases.get(target.name), schema)
    )


def _compile_target(target: Target, patches: Sequence[Patch], base: Json, schema: Schema) -> Iterator[CompiledFile]:
    for number, patch in enumerate(patches):
        type_, text = patch.type, patch.source.text.rstrip("\n") + "\n"
        if patch.type is PatchType.ARGS:
            type_, text = PatchType.JSON, _compiled_args(patch, target, base)
        yield CompiledFile(f"{target.name}{number:03d}+{type_}.yaml", text, patch.label)
        if base is not None:
            base = apply_patches(base, [patch], target.shape(schema)).document


def _compiled_args(patch: Patch, target: Target, base: Json) -> str:
    if base is None:
        raise PatchFailed(
            f"{patch.where()}: a flag patch is compiled against the command it changes, and no {target.name} is given",
            error_class="base-missing",
            hint=f"pass the unpatched manifest with -f {target.name}.yaml",
        )
    operations: list[Json] = [guarded.operation for guarded in compile_args(patch.value, copy_of(base))]
    return f"# Compiled from {patch.label}; each test fails if kubeadm generates another command.\n" + write_yaml(
        operations
    )
