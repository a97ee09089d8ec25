"""How commands are told what to change: options, and the request that they make up."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from garboard.change.attribute import CLUSTER, STORED_KINDS
from garboard.change.drift_names import DriftNames
from garboard.change.drift_request import AskedChange, DriftRequest
from garboard.change.edits import FieldEdit
from garboard.change.node_work import DriftPolicy
from garboard.change.request import ChangeRequest, FieldEdits, GivenDocument, NewPatchSet, NewVersion, PartialChange
from garboard.change.request_documents import given_documents
from garboard.cli.flags import STRING_SLICE, joined
from garboard.documents import without_passwords
from garboard.errors import BadUsage
from garboard.host import list_tree, read_file
from garboard.patches import PatchFile, PatchType
from garboard.phases.node.records import PatchSetContent, content_of
from garboard.phases.patching import NodePatches
from garboard.values import dataclass

_TYPED = 2000  # characters of what was typed that are recorded
Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """What was given on the command line about the change; exactly one way of saying it is allowed."""

    filenames: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    patch_type: str = PatchType.STRATEGIC
    kind: str = CLUSTER
    sets: tuple[str, ...] = ()
    unsets: tuple[str, ...] = ()
    directory: str | None = None
    only: tuple[str, ...] = ()

    @property
    def typed(self) -> str:
        """What was typed, for the record: without passwords, and of documents and patches only where they stood."""
        words = [*(f"-f {each}" for each in self.filenames), *(f"--set '{each}'" for each in self.sets)]
        words += [f"--unset '{each}'" for each in self.unsets]
        words += [f"--patch '{each}'" for each in self.patches]
        words += [f"--patches {self.directory}"] if self.directory is not None else []
        words += [f"--only {each}" for each in self.only]
        return without_passwords(" ".join(words))[:_TYPED]

    @property
    def is_given(self) -> bool:
        return bool(self.filenames or self.patches or self.sets or self.unsets or self.directory is not None)

    def asked(self, drift: DriftPolicy) -> AskedChange:
        """Read what is asked for; a policy for hand edits that stands alone is about these."""
        names = DriftNames.parse(self.only)
        if not self.is_given and drift in ("adopt", "overwrite"):
            return DriftRequest(policy=drift, names=names)
        self.refuse_names()
        return self.request()

    def refuse_names(self) -> None:
        """Refuse names of hand edits where something else is asked for."""
        if self.only:
            raise BadUsage(
                "--only names hand edits, and something else is asked for",
                hint="beside --drift adopt or --drift overwrite alone, or in garboard change drift",
            )

    def request(self) -> ChangeRequest:
        """Read what is asked for."""
        ways = [bool(self.filenames), bool(self.patches), bool(self.sets or self.unsets), self.directory is not None]
        if sum(ways) != 1:
            raise BadUsage(
                "say in one way what is to change: -f, --patch, --set and --unset, or --patches",
                hint="garboard change plan --help has an example of each",
            )
        if self.filenames:
            documents = tuple(each for file in self.filenames for each in _read(file))
            return NewVersion(documents=documents)
        if self.patches:
            patches = tuple(each for patch in self.patches for each in _read_patch(patch))
            return PartialChange(documents=patches, type=PatchType(self.patch_type), kind=self.kind)
        if self.directory is not None:
            return NewPatchSet(content=_read_directory(self.directory))
        edits = (*map(FieldEdit.parse, self.sets), *map(FieldEdit.removal, self.unsets))
        return FieldEdits(edits=edits)


only_option = click.option(
    "--only", type=STRING_SLICE, multiple=True, callback=joined, metavar="[NODE/]COMPONENT[:FIELD]",
    help="Of the hand edits only these, such as kube-apiserver or cp1/kube-apiserver:--profiling.",
)  # fmt: skip


def request_options(command: Command) -> Command:
    """Add the options that say what is to change."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "-f", "--filename", "filenames", multiple=True, metavar="FILE",
        help="The whole new version of each kind that FILE holds; - is stdin.",
    ),
    click.option(
        "--patch", "patches", multiple=True, metavar="PATCH",
        help="What changes: a file, - for stdin, or the text itself.",
    ),
    click.option(
        "--type", "patch_type", type=click.Choice(["strategic", "merge", "json"]), default="strategic",
        show_default=True, help="How --patch is merged; strategic merges arguments by name, and names as a set.",
    ),
    click.option(
        "--kind", type=click.Choice(STORED_KINDS), default=CLUSTER, show_default=True,
        help="What a --patch is for that does not say so itself.",
    ),
    click.option(
        "--set", "sets", multiple=True, metavar="PATH=VALUE",
        help="Set a field; PATH+=VALUE and PATH-=VALUE add to a list and take from it.",
    ),
    click.option("--unset", "unsets", multiple=True, metavar="PATH", help="Remove a field, or an item of a list."),
    click.option("--patches", "directory", metavar="DIR", help="Patch nodes with DIR from now on."),
    only_option,
)  # fmt: skip

accept_option = click.option(
    "--accept", "accepted", type=STRING_SLICE, multiple=True, callback=joined, metavar="CODE",
    help="Accept what speaks against the change, by its code; docs/change.md says which can be.",
)  # fmt: skip


drift_option = click.option(
    "--drift", type=click.Choice(["fail", "keep", "adopt", "overwrite"]), default="fail", show_default=True,
    help="What becomes of flags that were typed into a manifest which is replaced: stop, leave them, put them into the"
    " configuration as well, or take them out. If nothing else is asked for, adopt and overwrite are about all hand"
    " edits (change drift).",
)  # fmt: skip


def _read(file: str) -> tuple[GivenDocument, ...]:
    return given_documents(read_file(file), source="stdin" if file == "-" else file)


def _read_patch(text: str) -> tuple[GivenDocument, ...]:
    if text.lstrip()[:1] in ("{", "[") or "\n" in text or ": " in text:
        return given_documents(text, source="--patch")
    return _read(text)


def _read_directory(directory: str) -> PatchSetContent:
    root = Path(directory)
    files = [PatchFile(path, str(root / path), partial(read_file, root / path)) for path in list_tree(root)]
    return content_of(NodePatches(lambda: files)) or PatchSetContent({})
