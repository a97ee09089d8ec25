"""The interface through which a run reports to its caller: `node` never prints."""

import os
import pwd
from contextlib import suppress
from typing import Literal, Protocol, TypeAlias

OutputFormat: TypeAlias = Literal["text", "json", "yaml"]


class Reporter(Protocol):
    """Receives the progress, the output and the questions of a run."""

    def report(self, line: str, /) -> None:
        """Take a line about what is being done, a warning included."""
        ...

    def show(self, text: str, /) -> None:
        """Take a text that the user asked for or should keep, such as a plan or the command with which nodes join."""
        ...

    def ask(self, question: str, /) -> str:
        """Return what the user answers; nothing if nobody can be asked."""
        ...


class SteadyReporter:
    """Passes everything on, and drops what cannot be delivered.

    A run that has begun goes on when the terminal or the connection that it was started from has gone: its journal
    keeps the outcome.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def report(self, line: str, /) -> None:
        with suppress(OSError):
            self._reporter.report(line)

    def show(self, text: str, /) -> None:
        with suppress(OSError):
            self._reporter.show(text)

    def ask(self, question: str, /) -> str:
        return self._reporter.ask(question)


def who() -> str:
    """Return who is typing, for the record."""
    user = os.environ.get("SUDO_USER", "")
    with suppress(KeyError):
        user = user or pwd.getpwuid(os.geteuid()).pw_name
    return f"{user or f'uid {os.geteuid()}'}@{os.uname().nodename}"
