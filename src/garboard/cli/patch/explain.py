"""`garboard patch explain`."""

import click

from garboard.cli.completing import complete_fields
from garboard.cli.output import output_option, write_data
from garboard.cli.patch.patching import PatchRequest, patch_documents, patching_options, report
from garboard.errors import BadUsage
from garboard.node.reporter import OutputFormat
from garboard.patches import OriginKind, Origins, TextBase, asked_history, explain_text, history_as_json
from garboard.schema import load_schema


def without_config(command: click.Command) -> click.Command:
    """Hide an option that the other patching commands have."""
    for option in command.params:
        if isinstance(option, click.Option) and option.name == "config":
            option.hidden = True
    return command


@without_config
@click.command(
    epilog="Example: garboard patch explain 'spec.containers[0].command[--profiling]'"
    " -f kube-apiserver.yaml --target kube-apiserver --patches ./patches",
)
@click.argument("fields", metavar="[FIELD]...", nargs=-1, shell_complete=complete_fields)
@patching_options
@output_option
def explain(fields: tuple[str, ...], output: OutputFormat, **options: object) -> None:
    """Tell where the value of each FIELD comes from: the base document or which patch, at which line, over what.

    Without FIELD, every field that a patch set, changed or removed is told.
    """
    request = PatchRequest(**options)  # type: ignore[arg-type]
    if request.config:  # hidden, because `config explain` has it
        raise BadUsage(
            "explain reads manifests",
            hint=f"write garboard config explain {request.target or 'TARGET'} [FIELD]... --config {request.config}",
        )
    outcome = patch_documents(request, is_traced=True)
    report(outcome, request)
    if len(outcome.documents) != 1:
        raise BadUsage("explain works on one document", hint="name a file that holds a single object")
    patched = outcome.documents[0]
    origins = Origins(patched.applied, TextBase(patched.original.source))
    schema = load_schema(request.version)
    asked = [(text, asked_history(text, origins, schema)) for text in fields]
    histories = asked or origins.fields_by(OriginKind.PATCH)
    write_data(
        [history_as_json(name, history) for name, history in histories],
        output,
        text="\n".join(explain_text(name, history) for name, history in histories),
    )
