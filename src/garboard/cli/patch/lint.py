"""`garboard patch lint`."""

import json
import sys

import click

from garboard import __version__
from garboard.cli.color import color_option, painted_findings
from garboard.cli.completing import complete_codes, complete_kinds, complete_targets
from garboard.cli.output import write_data
from garboard.cli.patch.inputs import VersionType, accept_option, node_options, schema_version_option
from garboard.cli.patch.lint_inputs import LintInputs, LintRequest
from garboard.errors import BadDocument
from garboard.model import KubernetesVersion
from garboard.patches import (
    ACCEPT,
    IGNORE,
    check_codes,
    count_errors,
    findings_as_json,
    findings_as_sarif,
    findings_as_text,
    summary,
    with_exceptions,
)


@click.command(epilog="Example: garboard patch lint ./patches --config kubeadm.yaml --accept probe-removed -o sarif")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "-f",
    "--filename",
    "originals",
    multiple=True,
    metavar="FILE",
    help="Manifests to try the patches on: files, folders, or - for stdin.",
)
@click.option("--config", metavar="FILE", help="Try the patches on what is rendered from this kubeadm configuration.")
@click.option(
    "--target", shell_complete=complete_targets, help="What a single patch file is for, if its name does not say it."
)
@click.option(
    "--kind",
    default="",
    metavar="KIND",
    shell_complete=complete_kinds,
    help="The kind that a single patch file is for.",
)
@click.option(
    "--type",
    "type_",
    type=click.Choice(["strategic", "merge", "json", "args"]),
    help="The type of a single patch file, if its name does not say it.",
)
@click.option("--patch-set", metavar="FILE", help="A file that lists patches by the objects they select.")
@click.option(
    "--to", type=VersionType(), metavar="VERSION", help="Check against this version and tell what breaks on the way."
)
@schema_version_option
@node_options
@accept_option
@click.option(
    "--disable",
    "disabled",
    multiple=True,
    metavar="CODE",
    shell_complete=complete_codes,
    help="Leave out the findings of a rule.",
)
@click.option("--warnings-as-errors", is_flag=True, help="Exit with 3 if there are warnings.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml", "sarif"]),
    default="text",
    show_default=True,
    help="How to print the findings.",
)
@color_option
@click.pass_context
def lint(
    ctx: click.Context,
    /,
    output: str,
    version: KubernetesVersion,
    to: KubernetesVersion | None,
    color: bool,
    accepted: tuple[str, ...],
    disabled: tuple[str, ...],
    warnings_as_errors: bool,
    **options: object,
) -> None:
    """Check patches against the fields, flags and feature gates of a Kubernetes version.

    PATH is a patch directory, a tree of layers (all of them, unless --node or --role picks some) or a patch file. The
    results are judged on what kubeadm renders by default: what Kubernetes refuses, and what the cluster would lose
    (docs/lint-codes.md lists the codes). With -f the patches are tried on your manifests instead, which also shows
    those that find nothing, change nothing or overwrite each other; with --config on everything that is rendered, and
    PATH may be left out if the configuration names it.

    Exits with 3 if there are errors; warnings alone exit with 0, unless --warnings-as-errors is given.
    """
    check_codes(accepted, ACCEPT, "--accept")
    check_codes(disabled, IGNORE, "--disable")
    inputs = LintInputs.read(LintRequest(**options), version)  # type: ignore[arg-type]
    findings = with_exceptions(
        inputs.lint_towards(inputs.version, to) if to else inputs.lint(inputs.version),
        accepted=accepted,
        disabled=disabled,
        is_strict=warnings_as_errors,
    )
    against = to or inputs.version
    if output == "sarif":
        sys.stdout.write(json.dumps(findings_as_sarif(findings, tool_version=__version__), indent=2) + "\n")
    else:
        text = painted_findings(findings_as_text(findings)) if color else findings_as_text(findings)
        write_data(findings_as_json(findings, against), output, text=text)  # type: ignore[arg-type]
    sys.stderr.writelines(f"[lint] {note}\n" for note in inputs.notes)
    sys.stderr.write(f"{summary(findings, against)}{', rendered by default' if inputs.is_default else ''}\n")
    if count_errors(findings):
        ctx.exit(BadDocument.exit_code)
