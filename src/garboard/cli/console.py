"""The reporter of the command line: data to stdout, progress and warnings to stderr."""

import os
import sys
from contextlib import suppress
from typing import TextIO


class ConsoleReporter:
    """Prints what a run reports; progress that nobody takes any more is dropped."""

    def report(self, line: str, /) -> None:
        write_to_stderr(f"{line}\n")

    def show(self, text: str, /) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            drop_output(sys.stdout)
            raise

    def ask(self, question: str, /) -> str:
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline() if sys.stdin else ""  # it may be closed


def write_to_stderr(text: str) -> None:
    """Write what is no data; a reader that has gone, or a full disk, is no failure of the command."""
    try:
        sys.stderr.write(text)
    except OSError:
        drop_output(sys.stderr)


def drop_output(stream: TextIO) -> None:
    """Discard what a stream has buffered, which would otherwise raise again, and all that is written to it later."""
    with suppress(OSError, ValueError):  # a stream that is no file has nothing to discard
        descriptor = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
