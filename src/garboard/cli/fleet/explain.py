"""`garboard fleet explain`."""

import sys

import click

from garboard.cli.fleet.inputs import FleetSelection, fleet_options
from garboard.cli.output import output_option, write_data
from garboard.documents import Json
from garboard.errors import BadUsage
from garboard.fleet.explain import explained_documents, scrubbed
from garboard.fleet.install_config import FILE_NAME
from garboard.model import DEFAULT_VERSION
from garboard.node.reporter import OutputFormat
from garboard.patches import OriginKind, asked_history, explain_text, history_as_json
from garboard.schema import load_schema


@click.command(
    epilog="Example: garboard fleet explain controlPlane.replicas -f fleet/ --deployment edge-site-a",
)
@click.argument("fields", metavar="[FIELD]...", nargs=-1)
@fleet_options
@click.option("--file", "file", metavar="NAME", help="Only this file, such as install-config.yaml or manifests/x.yaml.")
@output_option
def explain(fields: tuple[str, ...], file: str | None, output: OutputFormat, **options: str) -> None:
    """Tell where the value of each FIELD of a cluster comes from: which customization, at which line, over what.

    Without FIELD, every field that a customization set, changed or removed is told. Secrets are not shown.
    """
    selection = FleetSelection(**options)  # type: ignore[arg-type]
    if len(selection.requests) != 1:
        names = ", ".join(each.name for each in selection.requests[:5])
        raise BadUsage("explain is about one cluster", hint=f"name it with --deployment, such as {names}")
    rendering = selection.renderer().render(selection.requests)
    rendering.refuse_failures()
    told: list[Json] = []
    texts: list[str] = []
    schema = load_schema(DEFAULT_VERSION)
    named = file or (FILE_NAME if fields else None)
    for document in explained_documents(rendering.clusters[0], named, schema):
        asked = [(text, asked_history(text, document.origins, schema)) for text in fields]
        hide = document.scrubber(selection.scrub)
        for field, history in asked or document.origins.fields_by(OriginKind.PATCH):
            told.append({"file": document.name, **scrubbed(history_as_json(field, history), hide)})
            texts.append(f"{document.name}: {hide(explain_text(field, history))}")
    write_data(told, output, text="\n".join(texts))
    if not told:
        sys.stderr.write("no customization changes a field\n")
