"""`garboard patch diff`."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from garboard.cli.color import color_option, painted_diff
from garboard.cli.patch.patching import PatchedDocument, PatchRequest, patch_documents, patching_options, report
from garboard.documents import read_yaml, write_yaml
from garboard.host.files import read_if_there
from garboard.lazy import lazy_module
from garboard.patches.unified import CONTEXT, TextDiff, diff_stat

if TYPE_CHECKING:
    from garboard.phases import live
else:  # most diffs are not about this machine
    live = lazy_module("garboard.phases.live")


@click.command(epilog="Example: garboard patch diff --config kubeadm.yaml --patches ./patches")
@patching_options
@click.option("--live", "is_live", is_flag=True, help="On a node: compare with the files on its disk as well.")
@click.option(
    "-U", "--unified", "context", type=click.IntRange(min=0), default=CONTEXT, show_default=True, metavar="N",
    help="Show N lines around each change.",
)  # fmt: skip
@click.option("--stat", "is_stat", is_flag=True, help="Show how many lines change instead of the lines.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if anything differs, as `git diff --exit-code`.")
@color_option
@click.pass_context
def diff(ctx: click.Context, /, context: int, is_stat: bool, exit_code: bool, color: bool, **options: object) -> None:
    """Show what patches change, as a unified diff of the YAML that kubeadm writes.

    With --config everything is rendered and patched that a node of this configuration has; -f names manifests instead.
    With --live the files of this node are compared too: with --exit-code, 1 means that one of them is not as rendered
    and patched.
    """
    request = PatchRequest(**options)  # type: ignore[arg-type]
    outcome = patch_documents(request)
    report(outcome, request)
    if not any(each.users_patches for each in outcome.documents):
        sys.stderr.write("[patches] there are no patches for this: nothing is compared\n")
    if request.is_live:
        diffs, differs = _with_disk(outcome.documents, context)
    else:
        diffs = [_diff(each, context) for each in outcome.documents]
        differs = any(each.lines for each in diffs)
    if is_stat:
        sys.stdout.write(diff_stat(diffs))
    else:
        lines = (line for each in diffs for line in each.lines)
        sys.stdout.writelines(painted_diff(line) if color else line for line in lines)
    if exit_code and differs:
        ctx.exit(1)


def _diff(patched: PatchedDocument, context: int) -> TextDiff:
    source = patched.original.source
    before = write_yaml(read_yaml(source.text, source=source.name))
    names = (source.name, f"{source.name} (patched)")
    return TextDiff.of(before, write_yaml(patched.applied.document), names, context=context)


def _with_disk(documents: Sequence[PatchedDocument], context: int) -> tuple[list[TextDiff], bool]:
    """Report for each file of this node how it stands, and return the diffs; those of objects are left out."""
    found: list[live.LiveTarget] = []
    for each in documents:
        path = each.rendered.path if each.rendered else None
        if each.rendered is not None and path is not None:
            texts = {"rendered": each.original.source.text, "patched": write_yaml(each.applied.document)}
            found.append(live.LiveTarget.of(each.rendered.target.name, path, data=read_if_there(path), **texts))
    for target in found:
        sys.stderr.write(f"[live] {target.path} {target.state}\n")
    diffs = [diff for target in found for diff in target.diffs(context)]
    return diffs, any(target.state is not live.LiveState.PATCHED for target in found)
