"""One patch tree for many nodes: layers in a directory that holds the marker file `garboard.yaml`.

Without the marker a directory means exactly what it means to kubeadm, which descends into every folder and knows no
`+args`. With it, patches apply in this order: files at the top, `common/`, `role/ROLE/`, `node/NAME/`. A tree can be
compiled into a plain kubeadm directory, so that a user can leave garboard at any time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from garboard.documents import Json, read_yaml, write_yaml
from garboard.errors import BadDocument, PatchFailed
from garboard.model.names import subdomain_problems
from garboard.patches.apply import apply_patches
from garboard.patches.args import compile_args
from garboard.patches.directory import IgnoredFile, PatchFile, PatchSet, read_directory
from garboard.patches.json_values import copy_of
from garboard.patches.patch import Patch, PatchType
from garboard.patches.targets import PatchSubject, Target
from garboard.schema import Schema, suggest

MARKER = "garboard.yaml"
API_VERSION = "garboard.dev/v1alpha1"
MARKER_FIELDS = ("apiVersion", "kind", "description")
ROLES = ("control-plane", "worker")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What decides a node's layers; None means that the layer is not asked for."""

    name: str | None = None
    role: str | None = None

    def layers(self) -> tuple[str, ...]:
        """Return the folders of this node's layers, in the order in which they apply."""
        role = (f"role/{self.role}",) if self.role else ()
        node = (f"node/{self.name}",) if self.name else ()
        return ("common", *role, *node)


def read_patch_tree(files: Sequence[PatchFile], schema: Schema, node: NodeFacts) -> PatchSet:
    """Read a patch directory, by layers if it holds the marker and as kubeadm does otherwise."""
    marker = next((file for file in files if file.path == MARKER), None)
    if marker is None:
        return read_directory(files, schema)
    _check_marker(marker)
    for file in files:
        refuse_dead_layer(file)
    patches = PatchSet()
    left = {file.path: file for file in files if file is not marker}
    for layer in ("", *node.layers()):
        mine = [file for file in left.values() if _is_in(file.path, layer)]
        for file in mine:
            del left[file.path]
        found = read_directory(mine, schema, with_args=True)
        patches = PatchSet(patches.patches + found.patches, patches.ignored + found.ignored)
    rest = tuple(IgnoredFile(file.shown, _why_left(path, node)) for path, file in sorted(left.items()))
    return replace(patches, ignored=patches.ignored + rest)


def _is_in(path: str, layer: str) -> bool:
    return path.startswith(f"{layer}/") if layer else "/" not in path


def refuse_dead_layer(file: PatchFile) -> None:
    """Refuse a file of a layer that no node can have: it would look like a patch and never be one."""
    folder, _, rest = file.path.partition("/")
    name, _, below = rest.partition("/")
    if not rest or folder == "common" or not file.name.endswith((".yaml", ".json")):
        return
    if folder not in ("role", "node"):
        near = f"role/{folder}" if folder in ROLES else suggest(folder, ("common", "role", "node"))
        if near is None:
            return
        message, hint = f"{folder}/ is no layer, so it never applies", f"rename the folder to {near}"
    elif not below:
        message, hint = f"{folder}/ holds folders only", f"move the file into {folder}/NAME/"
    elif folder == "role" and name not in ROLES:
        message = f"no node has the role {name!r}, so this layer never applies"
        near = suggest(name, ROLES)
        hint = f"rename the folder to role/{near}" if near else f"the roles are {', '.join(ROLES)}"
    elif folder == "node" and subdomain_problems(name):
        message, hint = f"no node can be called {name!r}, so this layer never applies", "names of nodes are lower case"
    else:
        return
    raise BadDocument(f"{file.shown}: {message}", hint=hint, error_class="unknown-layer")


def _why_left(path: str, node: NodeFacts) -> str:
    folder = path.split("/")[0]
    if folder == "role":
        return f"the layer of another role than {node.role}" if node.role else "no role is given"
    if folder == "node":
        return f"the layer of another node than {node.name}" if node.name else "no node is given"
    return "not in a layer: common/, role/ROLE/ or node/NAME/"


def _check_marker(marker: PatchFile) -> None:
    content = read_yaml(marker.load(), source=marker.shown)
    if content is None:
        return
    if not isinstance(content, dict):
        raise BadDocument(f"{marker.shown}: the marker must be a mapping or empty", hint="an empty file will do")
    for key in content:
        if key not in MARKER_FIELDS:
            near = suggest(key, MARKER_FIELDS)
            raise BadDocument(
                f"{marker.shown}: unknown field {key!r}",
                hint=f"did you mean {near!r}?" if near else f"the fields are {', '.join(MARKER_FIELDS)}",
                error_class="unknown-field",
            )
    if content.get("apiVersion", API_VERSION) != API_VERSION or content.get("kind", "PatchTree") != "PatchTree":
        raise BadDocument(f"{marker.shown}: not a PatchTree of {API_VERSION}", hint="an empty file will do as well")


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
            base = apply_patches(base, [patch], PatchSubject(target.shape(schema))).document


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
