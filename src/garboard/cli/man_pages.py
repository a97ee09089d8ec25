"""Manual pages in roff, made from the definitions of the commands: they say what `--help` says."""

import re
from collections.abc import Iterator

import click

from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class ManPage:
    """One page: its name, such as `garboard-patch-diff`, and its text."""

    name: str
    text: str


def man_pages(command: click.Command, path: tuple[str, ...], version: str) -> Iterator[ManPage]:
    """Yield the page of a command and of all those below it."""
    context = click.Context(command, info_name=" ".join(path))
    yield ManPage("-".join(path), _page(command, context, path, version))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from man_pages(child, (*path, name), version)


def _page(command: click.Command, context: click.Context, path: tuple[str, ...], version: str) -> str:
    name = "-".join(path)
    lines = [f'.TH "{name.upper()}" "1" "" "garboard {version}" "garboard"']
    lines += [".SH NAME", _text(f"{name} - {_summary(command)}")]
    usage = " ".join(command.collect_usage_pieces(context))
    lines += [".SH SYNOPSIS", f".B {_text(' '.join(path))}", _text(usage)]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help or "")]
    records = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    lines += [".SH OPTIONS", *(line for flags, said in records for line in (".TP", f".B {_text(flags)}", _text(said)))]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS", *_commands(command, context, path)]
    if command.epilog:
        example = command.epilog.replace("\b\n", "").removeprefix("Example: ")
        lines += [".SH EXAMPLE", ".nf", *map(_text, example.splitlines()), ".fi"]
    if len(path) > 1:
        lines += [".SH SEE ALSO", f".BR {_text('-'.join(path[:-1]))} (1)"]
    return "\n".join(lines) + "\n"


def _summary(command: click.Command) -> str:
    first = (command.short_help or command.help or "").strip().split("\n\n", 1)[0]
    return " ".join(first.split()).rstrip(".")


def _commands(group: click.Group, context: click.Context, path: tuple[str, ...]) -> Iterator[str]:
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        if child is not None and not child.hidden:
            yield from (".TP", f".BR {_text('-'.join((*path, name)))} (1)", _text(_summary(child)))


def _paragraphs(help_text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those that click keeps as they are written stay so here."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", help_text.strip())):
        if number:
            yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *map(_text, paragraph.removeprefix("\b\n").splitlines()), ".fi")
        else:
            yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Return text that roff prints as it is: backslashes and dashes escaped, no line that looks like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
