"""One patch tree for many nodes: layers in a directory that holds the marker file `garboard.yaml`.

Without the marker a directory means exactly what it means to kubeadm, which descends into every folder and knows no
`+args`. With it, patches apply in this order: files at the top, `common/`, `role/ROLE/`, `node/NAME/`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from garboard.documents import read_yaml
from garboard.errors import BadDocument
from garboard.patches.directory import IgnoredFile, PatchFile, PatchSet, read_directory
from garboard.schema import Schema, suggest

MARKER = "garboard.yaml"
API_VERSION = "garboard.dev/v1alpha1"
MARKER_FIELDS = ("apiVersion", "kind", "description")


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
