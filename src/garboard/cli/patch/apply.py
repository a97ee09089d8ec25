"""`garboard patch apply`."""

import sys

import click

from garboard.cli.patch.documents import document_text
from garboard.cli.patch.work import Request, patch_documents, patching_options, report
from garboard.documents import json_to_yaml, read_yaml, write_yaml
from garboard.patches import Source


@click.command(
    epilog="Example: garboard patch apply -f kube-apiserver.yaml --target kube-apiserver --patches ./patches",
)
@patching_options
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
def apply(output: str, **options: object) -> None:
    """Apply patches to manifests and print the result.

    Patches come from one --patch-file, from a directory (--patches with --target), or from a --patch-set that selects
    objects by kind, name and labels in files, folders and streams.
    """
    request = Request(**options)  # type: ignore[arg-type]
    outcome = patch_documents(request)
    report(outcome, request)
    if outcome.is_conversion and output == "yaml":
        sys.stdout.write(_converted(outcome.documents[0].original.source))
        return
    # kubectl prints several objects without a separator; a stream that can be read again needs one.
    separator = "---\n" if output == "yaml" and not request.compat else ""
    sys.stdout.write(separator.join(document_text(each.applied.document, output) for each in outcome.documents))


def _converted(source: Source) -> str:
    """Return a text as YAML; numbers of a JSON text stay of the kind they are spelled in, as Kubernetes has it."""
    if source.text.lstrip().startswith(("{", "[")):
        return json_to_yaml(source.text, source=source.name)
    return write_yaml(read_yaml(source.text, source=source.name))
