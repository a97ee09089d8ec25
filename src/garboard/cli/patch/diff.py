"""`garboard patch diff`."""

import difflib
import sys

import click

from garboard.cli.patch.work import Request, patch_documents, patching_options, report
from garboard.documents import read_yaml, write_yaml


@click.command(epilog="Example: garboard patch diff -f kube-apiserver.yaml --target kube-apiserver --patches ./patches")
@patching_options
@click.option("--exit-code", is_flag=True, help="Exit with 1 if anything differs, as `git diff --exit-code`.")
def diff(exit_code: bool, **options: object) -> None:
    """Show what patches change, as a unified diff of the YAML that kubeadm writes."""
    request = Request(**options)  # type: ignore[arg-type]
    outcome = patch_documents(request)
    report(outcome, request)
    lines: list[str] = []
    for each in outcome.documents:
        source = each.original.source
        before = write_yaml(read_yaml(source.text, source=source.name))
        after = write_yaml(each.applied.document)
        lines += difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), source.name, f"{source.name} (patched)"
        )
    sys.stdout.writelines(lines)
    if exit_code and lines:
        click.get_current_context().exit(1)
