"""What the patch commands share: options, reading originals and patches from the machine, and printing documents."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from garboard.cli.completing import complete_dangers, complete_versions
from garboard.documents import Json, read_json, read_stream, read_yaml, refuse_second_document, write_json, write_yaml
from garboard.errors import BadDocument, BadUsage, InvalidValue, PatchFailed, as_usage
from garboard.host import is_folder, list_tree, read_file
from garboard.model import DEFAULT_VERSION, KubernetesVersion, reference_version
from garboard.patches import (
    MARKER,
    NodeFacts,
    Patch,
    PatchFile,
    PatchSet,
    PatchType,
    SourceText,
    as_decoded,
    read_patch_tree,
)
from garboard.schema import Schema, StructType

Command = TypeVar("Command", bound=Callable[..., object])


class VersionType(click.ParamType[KubernetesVersion]):
    """`--kubernetes-version`: any release of a supported minor."""

    name = "version"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> KubernetesVersion:
        if isinstance(value, KubernetesVersion):
            return value
        with as_usage():
            return reference_version(KubernetesVersion.parse(str(value)))


def schema_version_option(command: Command) -> Command:
    return click.option(
        "--kubernetes-version",
        "version",
        type=VersionType(),
        default=str(DEFAULT_VERSION),
        show_default=True,
        is_eager=True,
        shell_complete=complete_versions,
        help="The Kubernetes version whose types and kubeadm rules apply.",
    )(command)


def original_option(command: Command) -> Command:
    return click.option(
        "-f",
        "--filename",
        "originals",
        multiple=True,
        metavar="FILE",
        help="The manifests to patch: files with one or more documents, folders, or - for stdin.",
    )(command)


def node_options(command: Command) -> Command:
    command = click.option("--node", metavar="NAME", help="Include the layer node/NAME of a patch tree.")(command)
    return click.option(
        "--role",
        type=click.Choice(["control-plane", "worker"]),
        default=None,
        help="Include the layer role/ROLE of a patch tree.",
    )(command)


def accept_option(command: Command) -> Command:
    return click.option(
        "--accept",
        "accepted",
        multiple=True,
        metavar="CODE",
        shell_complete=complete_dangers,
        help="Accept a danger by the code of its finding; a comment in the patch does so with a reason.",
    )(command)


def compat_option(command: Command) -> Command:
    return click.option(
        "--compat", is_flag=True, help="Do what kubectl and kubeadm do, quirks included; refuse nothing they accept."
    )(command)


@dataclass(frozen=True)
class Original:
    """A document to be patched, with its text for origins."""

    source: SourceText
    value: Json


def read_text(path: str) -> str:
    """Return a file's text; only UTF-8 is text here."""
    data = read_file(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadDocument(
            f"{path}: byte {error.start} is not UTF-8 text", hint="save the file as UTF-8", error_class="not-utf-8"
        ) from error


def read_one(path: str, *, as_yaml: bool = False, is_first_enough: bool = False) -> Original:
    """Read one document: as kubectl does (JSON if it begins with a brace), or as kubeadm does, always as YAML.

    A second document is refused, unless `is_first_enough`: the programs themselves would quietly drop it.
    """
    text = read_text(path)
    is_json = not as_yaml and text.lstrip(" \t\r\n").startswith("{")
    value = (read_json if is_json else read_yaml)(text, source=path)
    if not is_json and not is_first_enough:
        refuse_second_document(text, source=path)
    return Original(SourceText(path, text), value if as_yaml else as_decoded(value))


def read_many(paths: Sequence[str]) -> Iterator[Original]:
    """Yield every document of files, folders and streams; paths that hold none at all are refused."""
    is_empty = True
    for path in paths:
        for file in manifest_files(path):
            for document in read_stream(read_file(file), source=file):
                is_empty = False
                yield Original(SourceText(file, document.text, document.line), as_decoded(document.value))
    if paths and is_empty:
        raise BadDocument(f"{', '.join(paths)} holds no document", hint="name a file with at least one manifest")


def read_manifests(paths: Sequence[str]) -> Iterator[Original]:
    """Yield every document of files, folders and streams as kubeadm reads its own: always as YAML."""
    for each in read_many(paths):
        source = each.source
        yield Original(source, read_yaml(source.text, source=source.name, line=source.line))


def manifest_files(path: str) -> Iterator[str]:
    """Yield a file, - for stdin, or the manifests of a folder."""
    if path != "-" and is_folder(path):
        names = [name for name in list_tree(path) if name.endswith((".yaml", ".yml", ".json"))]
        if not names:
            raise BadDocument(f"{path} holds no manifest", hint="manifests end in .yaml, .yml or .json")
        yield from (str(Path(path) / name) for name in names)
    else:
        yield path


def read_patches(directory: str, schema: Schema, node: NodeFacts, *, is_node_known: bool = False) -> PatchSet:
    """Read a patch directory: kubeadm's, or a tree of layers if it holds the marker.

    A node that was asked for needs layers to choose from, unless it is known from elsewhere which one it is.
    """
    files = patch_files(directory)
    if not is_node_known and (node.name or node.role) and not any(file.path == MARKER for file in files):
        # Without the marker every folder is applied, those of other nodes and roles as well.
        raise BadUsage(
            f"{directory} has no layers for --role and --node to choose from: it holds no {MARKER}",
            hint=f"make it a tree with `touch {Path(directory) / MARKER}`, or leave the two options out",
        )
    return read_patch_tree(files, schema, node)


def patch_files(directory: str) -> list[PatchFile]:
    """Return the files of a patch directory, not yet read."""
    root = Path(directory)
    return [PatchFile(path, str(root / path), partial(read_file, root / path)) for path in list_tree(root)]


def read_single_patch(source: SourceText, type_: PatchType, *, is_first_enough: bool) -> Patch:
    """Return the patch of `--patch-file`; kubectl uses the first document, and so do we if that is enough."""
    patch = Patch.from_kubectl(source, type_)
    if not is_first_enough:
        refuse_second_document(source.text, source=source.name)
    return patch


# kubectl's scheme has no types for this group, so it cannot merge its kinds on its own.
UNKNOWN_TO_KUBECTL = "apiextensions.k8s.io"


def shape_for(
    schema: Schema, kind: str, document: Json, *, is_required: bool = False, is_compat: bool = False
) -> StructType | None:
    """Return the type that a document is merged by: the one named, or the one it names itself."""
    try:
        api_version, found = _named_type(schema, kind) if kind else _own_type(schema, document)
    except InvalidValue as error:
        if is_required:
            raise PatchFailed(error.message, error_class="unsupported-kind", hint=error.hint) from error
        return None
    if is_compat and api_version.startswith(f"{UNKNOWN_TO_KUBECTL}/"):
        found = None
    if found is None and is_required:
        raise PatchFailed(
            f"a strategic patch needs a kind whose fields are known, and {_kind_shown(document)} is not one",
            error_class="unsupported-kind",
            hint="use a merge or JSON patch for custom resources, or name a built-in type with --kind",
        )
    return found


def _named_type(schema: Schema, kind: str) -> tuple[str, StructType]:
    known = schema.find_kind(kind)
    return known.api_version, known.type


def _own_type(schema: Schema, document: Json) -> tuple[str, StructType | None]:
    members = document if isinstance(document, dict) else {}
    api_version, name = members.get("apiVersion"), members.get("kind")
    if not isinstance(api_version, str) or not isinstance(name, str):
        return "", None
    return api_version, schema.type_of(api_version, name)


def _kind_shown(document: Json) -> str:
    named = [document.get(key) for key in ("apiVersion", "kind")] if isinstance(document, dict) else []
    words = [word for word in named if isinstance(word, str) and word]
    return " ".join(words) or "a document without apiVersion and kind"


def only(originals: Sequence[str]) -> str:
    if len(originals) != 1:
        raise BadUsage("one -f is expected here", hint="patch one target at a time")
    return originals[0]


def document_text(document: Json, output: str) -> str:
    """Return a document as text that ends with a newline: JSON as kubectl writes it, YAML as kubeadm and kubectl do."""
    if output == "yaml":
        return write_yaml(document)
    text = write_json(document)
    return text if text.endswith("\n") else text + "\n"
