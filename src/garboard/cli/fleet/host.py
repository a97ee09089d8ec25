"""`garboard fleet host`: what a provisioner elsewhere asks of this machine; JSON in, JSON out."""

import json
from collections.abc import Callable

import click

from garboard.cli.console import ConsoleReporter
from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.fleet.installers.host_view import HostRefused, HostView, read_claim
from garboard.host import read_file
from garboard.node.fleet.cluster_questions import apply_addons, ready_nodes
from garboard.node.fleet.host_commands import ThisHost
from garboard.node.runs import Runs
from garboard.node.workflow import this_node


@click.group(epilog="Example: garboard fleet host look")
def host() -> None:
    """Answer a provisioner; its protocol may change with every release."""


@host.command(epilog="Example: garboard fleet host look")
def look() -> None:
    """Say whose this host is, and what is on it."""
    _answer(lambda: _this_host().view())


@host.command(epilog="Example: garboard fleet host claim < claim.json")
def claim() -> None:
    """Have this host carry an infraID."""
    _answer(lambda: _this_host().claim(read_claim(_given())))


@host.command(epilog="Example: garboard fleet host stage < bundle.json")
def stage() -> None:
    """Write what init and join read."""
    bundle = _given()
    files = bundle.get("files") if isinstance(bundle, dict) else None
    if not isinstance(bundle, dict) or not isinstance(files, dict):
        raise BadDocument("a bundle has a claim and files", error_class="bad-answer")
    texts = {name: str(text) for name, text in files.items()}
    _answer(lambda: _this_host().stage(read_claim(bundle.get("claim")), texts))


@host.command(epilog="Example: garboard fleet host release < claim.json")
def release() -> None:
    """Reset this host if it shows the infraID."""
    try:
        _print({"outcome": _this_host().release(read_claim(_given())), "refused": ""})
    except HostRefused as error:
        _print({"outcome": "", "refused": error.message})


@host.command(epilog="Example: garboard fleet host addons < addons.json")
def addons() -> None:
    """Apply objects to the cluster of this control plane."""
    _print({"applied": apply_addons(this_node(AnsweringReporter()).machine, _given())})


@host.command(epilog="Example: garboard fleet host nodes")
def nodes() -> None:
    """Say which nodes are Ready."""
    _print({"nodes": ready_nodes(this_node(AnsweringReporter()).machine)})


class AnsweringReporter(ConsoleReporter):
    """Keeps standard output for the answer: what a run shows, such as what is left to do, goes beside it."""

    def show(self, text: str, /) -> None:
        for line in text.splitlines():
            self.report(line)


def _this_host() -> ThisHost:
    node = this_node(AnsweringReporter())
    return ThisHost(node.machine, Runs(node.machine), node.reporter)


def _given() -> Json:
    try:
        document: Json = json.loads(read_file("-"))
    except ValueError as error:
        raise BadDocument(f"standard input is no JSON: {error}", error_class="bad-answer") from None
    return document


def _answer(view: Callable[[], HostView]) -> None:
    """Print the view, or why the host refuses: that is an answer as well."""
    try:
        _print({"view": view().document(), "refused": ""})
    except HostRefused as error:
        _print({"view": None, "refused": error.message})


def _print(document: Json) -> None:
    click.echo(json.dumps(document))
