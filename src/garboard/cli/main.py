"""The entry point: the table of commands, and the one place where an error becomes text and a status."""

import gc
import io
import os
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

import click

from garboard import __version__
from garboard.cli.console import ConsoleReporter, drop_output, write_to_stderr
from garboard.cli.global_flags import TRACES_FROM, GlobalFlags, take_global_flags
from garboard.cli.lazy import LazyCommand, LazyGroup
from garboard.errors import GarboardError
from garboard.lazy import lazy_module
from garboard.retry import reporting_waits

if TYPE_CHECKING:
    from garboard.host import root as host_root
else:
    host_root = lazy_module("garboard.host.root")

COMMANDS = {
    "init": LazyCommand("garboard.cli.init:init", "Set up the first control-plane node, or run a phase of it."),
    "join": LazyCommand("garboard.cli.join:join", "Add this machine to a cluster, or run a phase of it."),
    "upgrade": LazyCommand("garboard.cli.upgrade:upgrade", "Upgrade a cluster, node by node, with its patches."),
    "token": LazyCommand("garboard.cli.token:token", "Make, show and delete the tokens with which nodes join."),
    "status": LazyCommand(
        "garboard.cli.status:status", "Show the run on this node that was cut short or is unconfirmed."
    ),
    "resume": LazyCommand("garboard.cli.resume:resume", "Carry a run that was cut short to its end."),
    "undo": LazyCommand("garboard.cli.undo:undo", "Take back what an open or unconfirmed run has done."),
    "runs": LazyCommand("garboard.cli.runs:runs", "List the runs of this node, confirm one, forget a damaged one."),
    "reset": LazyCommand("garboard.cli.reset:reset", "Remove what init or join made on this machine."),
    "change": LazyCommand(
        "garboard.cli.change:change", "Plan changes of a cluster, carry them out, and see its drift (KEP-28)."
    ),
    "patch": LazyCommand("garboard.cli.patch:patch", "Apply, check, explain and make patches (KEP-1739)."),
    "config": LazyCommand("garboard.cli.config:config", "Print, check and convert kubeadm configurations."),
    "certs": LazyCommand("garboard.cli.certs:certs", "Check, renew and request the certificates of a node."),
    "kubeconfig": LazyCommand("garboard.cli.kubeconfig:kubeconfig", "Make kubeconfig files."),
    "fleet": LazyCommand("garboard.cli.fleet:fleet", "Render and provision clusters from Hive's documents."),
    "lab": LazyCommand("garboard.cli.lab:lab", "Run a real cluster on this machine, without Docker or VM."),
    "image": LazyCommand("garboard.cli.image:image", "Write a container image that runs garboard."),
    "tunnel": LazyCommand("garboard.cli.tunnel:tunnel", "Run a Konnectivity proxy server or agent."),
    "version": LazyCommand("garboard.cli.version:version", "Show the version and the supported Kubernetes minors."),
    "completion": LazyCommand("garboard.cli.completion:completion", "Print a shell completion script."),
    "man": LazyCommand("garboard.cli.man:man", "Print manual pages."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Example: garboard patch diff -f kube-apiserver.yaml --target kube-apiserver --patches ./patches",
)
@click.version_option(__version__, prog_name="garboard", message="%(prog)s %(version)s")
def garboard() -> None:
    """A Kubernetes cluster lifecycle toolkit.

    The commands that kubeadm has too, and those about the runs of a node, take its global flags anywhere on the line:
    --rootfs DIR looks every path up below DIR, and -v 5 shows where an error comes from.
    """


def main() -> None:
    """Run the command line and exit with the status of its outcome."""
    # Imports and documents make many small objects that live on, 70,000 in a join; by default the collector would walk
    # them over and over.
    gc.set_threshold(200_000, 20, 20)
    _prepare_streams()
    status = run(sys.argv[1:])
    _flush_streams()
    # Everything is closed and written. To take the interpreter apart, module by module, would take another 0.1 s.
    os._exit(status)


def _prepare_streams() -> None:
    """Write UTF-8 whatever the locale says, as the tools do whose documents these are; do without a closed stderr."""
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(os.devnull, "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace" if stream is sys.stderr else "strict")


def _flush_streams() -> None:
    """Flush what is buffered; a closed pipe is no error at this point."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def run(arguments: list[str]) -> int:
    """Run one command and return its exit status; every failure a user can cause has been printed."""
    if sys.stdout is None:  # what Python makes of a standard output that is closed
        report("unwritable", "cannot write: standard output is closed", "redirect it to a file, or to /dev/null")
        return 1
    flags = GlobalFlags()
    try:
        flags, words = take_global_flags(arguments)
        with _root(flags.rootfs), reporting_waits(ConsoleReporter().report):
            # Without standalone mode click returns what ctx.exit() was given, or the command's own return value.
            outcome = garboard.main(words, prog_name="garboard", standalone_mode=False)
        sys.stdout.flush()
    except GarboardError as error:
        report(error.error_class, error.message, error.hint)
        if flags.verbosity >= TRACES_FROM:
            traceback.print_exc()
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        write_to_stderr(error.format_message() + "\n")
        return 2
    except click.ClickException as error:
        report("usage", error.format_message(), _usage_hint(error))
        return 2
    except (click.Abort, KeyboardInterrupt):
        report("interrupted", "interrupted", None)
        return 130
    except BrokenPipeError:
        drop_output(sys.stdout)
        return 1
    except OSError as error:
        # `host` translates what happens to files. An error that names no file is about our own output: a full disk.
        if error.filename is not None:
            raise
        drop_output(sys.stdout)
        report("unwritable", f"cannot write the output: {error.strerror or error}", "check the free space")
        return 1
    return outcome if isinstance(outcome, int) else 0


def _root(folder: str) -> AbstractContextManager[None]:
    """Return the context manager that looks up all paths below the folder; without a folder nothing is imported."""
    if not folder:
        return nullcontext()
    return host_root.inside(folder)


def report(error_class: str, message: str, hint: str | None) -> None:
    """Write an error and the next thing to try to stderr."""
    text = f"error[{error_class}]: {message}\n" + (f"hint: {hint}\n" if hint else "")
    # A path on disk may hold bytes that are no text; showing them escaped beats failing while we report.
    write_to_stderr(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _usage_hint(error: click.ClickException) -> str | None:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"see `{context.command_path} --help`" if context else None
