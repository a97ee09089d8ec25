"""`garboard patch capture`."""

import re
import sys
from pathlib import Path

import click

from garboard.cli.patch.inputs import document_text, read_one, schema_version_option, shape_for
from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.host import write_file
from garboard.host.root import exists
from garboard.model import KubernetesVersion
from garboard.patches import MARKER, PatchType, capture_args, capture_patch, refuse_other_object
from garboard.schema import load_schema


@click.command(
    epilog="Example: garboard patch capture --original kube-apiserver.yaml --modified edited.yaml"
    " --out patches/kube-apiserver-edit.yaml",
)
@click.option("--original", required=True, metavar="FILE", help="The document as it was generated.")
@click.option("--modified", required=True, metavar="FILE", help="The same document after your edit.")
@click.option(
    "--type",
    "type_",
    type=click.Choice(["strategic", "merge", "json", "args"]),
    help="The type of the patch. By default args if only flags have changed, else strategic.",
)
@click.option("--kind", default="", metavar="KIND", help="The type to compare by; read from the document if empty.")
@click.option("--out", metavar="FILE", help="Write the patch there; a flag patch gets +args in its name.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
@schema_version_option
def capture(
    original: str, modified: str, type_: str | None, kind: str, out: str | None, output: str, version: KubernetesVersion
) -> None:
    """Turn a hand edit into the smallest patch that yields it: no part of it can be left out."""
    before, after = read_one(original).value, read_one(modified).value
    refuse_other_object(before, after, (original, modified))
    wanted, patch = _captured(before, after, _wanted_type(type_, out), kind, version)
    if not patch:
        raise BadDocument(
            f"{original} and {modified} say the same", hint="save your edit first", error_class="no-change"
        )
    text = document_text(patch, output)
    if out is None:
        note = "# A flag patch: name it TARGET+args.yaml.\n" if wanted is PatchType.ARGS and output == "yaml" else ""
        sys.stdout.write(note + text)
    else:
        _write(text, Path(out), wanted)


def _wanted_type(given: str | None, out: str | None) -> PatchType | None:
    """Return the type that the options ask for: by its name, or by that of the file."""
    suffix = re.search(r"\+(json|merge|strategic|args)", Path(out).name) if out else None
    word = given or (suffix[1] if suffix else None)
    return PatchType(word) if word else None


def _captured(
    before: Json, after: Json, wanted: PatchType | None, kind: str, version: KubernetesVersion
) -> tuple[PatchType, Json]:
    flags = capture_args(before, after) if wanted in (None, PatchType.ARGS) else None
    if flags is not None:
        return PatchType.ARGS, flags
    if wanted is PatchType.ARGS:
        raise BadDocument(
            "more than flags has changed, or nothing",
            hint="leave --type out, or write --type strategic",
            error_class="not-expressible",
        )
    chosen = wanted or PatchType.STRATEGIC
    shape = shape_for(load_schema(version), kind, after, is_required=chosen is PatchType.STRATEGIC)
    return chosen, capture_patch(before, after, chosen, shape)


def _write(text: str, out: Path, type_: PatchType) -> None:
    if type_ is PatchType.ARGS and "+args" not in out.name:
        out = out.with_name(f"{out.stem}+args{out.suffix}")
    write_file(out, text.encode())
    sys.stderr.write(f"wrote {out}\n")
    if type_ is PatchType.ARGS and not any(exists(folder / MARKER) for folder in (out.parent, *out.parent.parents)):
        sys.stderr.write(f"hint: flag patches need a tree: `touch {out.parent / MARKER}`, or pass --type json\n")
