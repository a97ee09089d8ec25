"""`garboard patch explain`."""

import click

from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.cli.patch.work import Request, patch_documents, patching_options, report
from garboard.errors import BadUsage
from garboard.patches import FieldPath, OriginKind, Origins, TextBase, explain_text, history_as_json


@click.command(
    epilog="Example: garboard patch explain 'spec.containers[0].command[--profiling]'"
    " -f kube-apiserver.yaml --target kube-apiserver --patches ./patches",
)
@click.argument("fields", metavar="[FIELD]...", nargs=-1)
@patching_options
@output_option
def explain(fields: tuple[str, ...], output: OutputFormat, **options: object) -> None:
    """Tell where the value of each FIELD comes from: the base document or which patch, at which line, over what.

    Without FIELD, every field that a patch set, changed or removed is told.
    """
    request = Request(**options)  # type: ignore[arg-type]
    outcome = patch_documents(request, is_watched=True)
    report(outcome, request)
    if len(outcome.documents) != 1:
        raise BadUsage("explain works on one document", hint="name a file that holds a single object")
    patched = outcome.documents[0]
    origins = Origins(patched.applied, TextBase(patched.original.source))
    asked = [(text, origins.history(FieldPath.parse(text))) for text in fields]
    histories = asked or origins.fields_by(OriginKind.PATCH)
    write_data(
        [history_as_json(name, history) for name, history in histories],
        output,
        text="\n".join(explain_text(name, history) for name, history in histories),
    )
