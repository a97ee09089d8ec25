"""`garboard patch apply`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from garboard.cli.patch.inputs import document_text
from garboard.cli.patch.patching import PatchedDocument, PatchRequest, patch_documents, patching_options, report
from garboard.documents import json_to_yaml, read_yaml, write_yaml
from garboard.errors import BadUsage
from garboard.host import make_folder, write_file
from garboard.patches import SourceText


@click.command(
    epilog="Example: garboard patch apply --config kubeadm.yaml --patches ./patches --output-dir ./manifests",
)
@patching_options
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
@click.option("--in-place", is_flag=True, help="Write the result into the files of -f instead of printing it.")
@click.option("--output-dir", metavar="DIR", help="Write one file for each file of -f, or for each rendered target.")
def apply(output: str, in_place: bool, output_dir: str | None, **options: object) -> None:
    """Apply patches to manifests and print the result.

    Patches come from one patch (-p, --patch-file), from a directory (--patches), or from a --patch-set that selects
    objects by kind, name and labels in files, folders and streams. Nothing is written unless all can be patched.
    """
    request = PatchRequest(**options)  # type: ignore[arg-type]
    if in_place and (output_dir or request.config or "-" in request.originals):
        raise BadUsage("--in-place changes the files of -f", hint="write to a folder with --output-dir instead")
    outcome = patch_documents(request)
    report(outcome, request)
    if in_place or output_dir:
        _write(outcome.documents, Path(output_dir) if output_dir else None, output)
        return
    if outcome.is_conversion and output == "yaml":
        sys.stdout.write(_converted(outcome.documents[0].original.source))
        return
    # kubectl prints several objects without a separator; a stream that can be read again needs one.
    separator = "---\n" if output == "yaml" and not request.compat else ""
    sys.stdout.write(separator.join(document_text(each.applied.document, output) for each in outcome.documents))


def _write(documents: Sequence[PatchedDocument], folder: Path | None, output: str) -> None:
    """Write the documents of each file together: back to it, or to the file of its name in a folder."""
    texts: dict[Path, list[str]] = {}
    for each in documents:
        name = f"{each.rendered.target.name}.{output}" if each.rendered else each.original.source.name
        path = Path(name) if folder is None else folder / (Path(name).name if name != "-" else f"stdin.{output}")
        texts.setdefault(path, []).append(document_text(each.applied.document, output))
    sources = {each.original.source.name for each in documents}
    if folder is not None:
        if len(texts) < len(sources):
            raise BadUsage("two of the files have one name", hint="patch them one after the other")
        make_folder(folder)
    for path, parts in texts.items():
        write_file(path, ("---\n" if output == "yaml" else "").join(parts).encode())
        sys.stderr.write(f"wrote {path}\n")


def _converted(source: SourceText) -> str:
    """Return a text as YAML; numbers of a JSON text stay of the kind they are spelled in, as Kubernetes has it."""
    if source.text.lstrip().startswith(("{", "[")):
        return json_to_yaml(source.text, source=source.name)
    return write_yaml(read_yaml(source.text, source=source.name))
