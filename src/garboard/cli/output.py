"""How commands answer with data: `--output text|json|yaml` on stdout, nothing else there."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from garboard.lazy import lazy_module
from garboard.node.reporter import OutputFormat
from garboard.values import Json

if TYPE_CHECKING:
    from garboard import documents
else:  # the YAML writer brings the reader's libraries along, which most answers do without
    documents = lazy_module("garboard.documents")

Command = TypeVar("Command", bound=Callable[..., object])


def output_option(command: Command) -> Command:
    """Add `--output text|json|yaml` to a command that answers with data."""
    option = click.option(
        "-o", "--output", type=click.Choice(["text", "json", "yaml"], case_sensitive=False), default="text",
        show_default=True, help="How to print the answer.",
    )  # fmt: skip
    return option(command)


def write_data(data: Json, output: OutputFormat, *, text: str) -> None:
    """Print `data` in the form that was asked for; `text` is its form for people."""
    if output == "json":
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    elif output == "yaml":
        sys.stdout.write(documents.write_yaml(data))
    else:
        sys.stdout.write(text)
