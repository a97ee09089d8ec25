"""`garboard patch lint`."""

import json
import sys

import click

from garboard import __version__
from garboard.cli.output import write_data
from garboard.cli.patch.inputs import VersionType, node_options, version_option
from garboard.cli.patch.lint_inputs import LintInputs, LintRequest
from garboard.errors import BadDocument
from garboard.model import KubernetesVersion
from garboard.patches import (
    count_errors,
    findings_as_json,
    findings_as_sarif,
    findings_as_text,
    summary,
)


@click.command(epilog="Example: garboard patch lint ./patches -f kube-apiserver.yaml --to v1.37.1 -o sarif")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "-f",
    "--filename",
    "originals",
    multiple=True,
    metavar="FILE",
    help="Manifests to try the patches on: files, folders, or - for stdin.",
)
@click.option("--target", help="What a single patch file is for, if its name does not say it.")
@click.option("--kind", default="", metavar="KIND", help="The kind that a single patch file is for.")
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
@version_option
@node_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml", "sarif"]),
    default="text",
    show_default=True,
    help="How to print the findings.",
)
@click.pass_context
def lint(
    ctx: click.Context, /, output: str, version: KubernetesVersion, to: KubernetesVersion | None, **options: object
) -> None:
    """Check patches against the fields, flags and feature gates of a Kubernetes version.

    PATH is a patch directory, a tree of layers (all of them, unless --node or --role picks some) or a patch file. With
    -f the patches are tried as well, which shows those that find nothing, change nothing or overwrite each other.

    Exits with 3 if there are errors; warnings alone exit with 0.
    """
    inputs = LintInputs.read(LintRequest(**options))  # type: ignore[arg-type]
    findings = inputs.lint_towards(version, to) if to else inputs.lint(version)
    against = to or version
    if output == "sarif":
        sys.stdout.write(json.dumps(findings_as_sarif(findings, tool_version=__version__), indent=2) + "\n")
    else:
        text = findings_as_text(findings)
        write_data(findings_as_json(findings, against), output, text=text)  # type: ignore[arg-type]
    sys.stderr.write(summary(findings, against) + "\n")
    if count_errors(findings):
        ctx.exit(BadDocument.exit_code)
