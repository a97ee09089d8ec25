"""The carrier: runs our command on a node, and finds out what became of it when the connection is lost.

The words of the command are such that no shell on the way can take them for anything else, and the lines of its output
are made fit for a terminal.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Self, TypeAlias, TypeVar

from garboard import __version__
from garboard.errors import BadUsage, ClusterUnreachable, GarboardError, NotReady
from garboard.host.piped import Stream, run_piped
from garboard.model.names import is_plain_word, subdomain_problems
from garboard.node.reporter import Reporter, SteadyReporter
from garboard.node.via.remote_status import RemoteRun, RemoteStatus, read_status, read_version
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

Answer = TypeVar("Answer")

NODE = "{node}"
PROGRAM = "garboard"
_EXAMPLE = "for example --via 'ssh {node} sudo'"
STATUS = ("status", "--all", "-o", "json")
VERSION = ("version", "-o", "json")
ANSWER_WITHIN_S = 60.0
LONGEST_LINE = 8192
LONGEST_ANSWER = 4 * 1024 * 1024
_ASKED_AT_ONCE = 8
_PAUSES = Pauses(1.0, 15.0, growth=2.0)
# A command whose connection broke may still be on its way to the node lock: only after that long without a trace of it
# is it said not to have begun.
QUIET_S = 20.0
# ssh ends with 255 if it failed itself. A shell on the way ends with 128 and the signal that ended its program; 130 is
# what garboard itself ends with when it was interrupted.
_LOST, _SIGNALLED_FROM, _INTERRUPTED = 255, 129, 130


@dataclass(frozen=True, slots=True)
class Via:
    """The operator's command, such as `ssh {node} sudo`, split as a shell would split it."""

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise BadUsage(f"{text!r} is no command: {error}", hint=_EXAMPLE) from None
        if not words or not words[0]:
            raise BadUsage(f"{text!r} is no command: it names no program", hint=_EXAMPLE)
        if not any(NODE in each for each in words):
            raise BadUsage(f"{text!r} leads to the same machine for every node: it has no {NODE}", hint=_EXAMPLE)
        if any("\0" in each for each in words):
            raise BadUsage(f"{text!r} is no command: it holds a null character", hint=_EXAMPLE)
        return cls(words)

    def command(self, node: str, words: Sequence[str]) -> tuple[str, ...]:
        """Return what runs `garboard WORDS` on a node; everything but plain words goes by standard input."""
        # A name that begins with a dash would be an option of the operator's program.
        if subdomain_problems(node):
            raise BadUsage(f"{node!r} is no name of a node", hint="nodes have the names that kubectl get nodes shows")
        # ssh joins the words with spaces for the login shell of the node.
        for each in words:
            if not is_plain_word(each):
                raise BadUsage(
                    f"{each!r} cannot be given to a command on another node",
                    hint="such words have letters, digits and _ . / = : , - alone; what else there is goes by stdin",
                )
        return (*(each.replace(NODE, node) for each in self.words), PROGRAM, *words)


@dataclass(frozen=True, slots=True)
class CommandEnded:
    """The command has ended on the node, with this status."""

    status: int


@dataclass(frozen=True, slots=True)
class CommandUnknown:
    """The connection was lost: the command may not have begun, may still be at work, or may have ended."""

    reason: str


@dataclass(frozen=True, slots=True)
class CommandFound:
    """What the node says of a command whose connection was lost: the runs that it has begun, gone on with or ended."""

    reason: str
    runs: tuple[RemoteRun, ...]

    @property
    def is_open(self) -> bool:
        """Whether the node has a run that needs resume or undo."""
        return any(each.state in ("open", "damaged") for each in self.runs)


Outcome: TypeAlias = CommandEnded | CommandUnknown


class NodeUnknown(ClusterUnreachable):
    """Nobody can tell what became of a command on another node: everything else has to wait."""

    exit_code: ClassVar[int] = 5
    default_class = "node-unknown"


class Carrier:
    """Runs garboard on other nodes through the operator's command."""

    def __init__(self, via: Via, reporter: Reporter, clock: Clock = CLOCK) -> None:
        self._via, self._reporter, self._clock = via, SteadyReporter(reporter), clock
        self._same_version = set[str]()

    def require_same_version(self, nodes: Iterable[str]) -> None:
        """Refuse unless all nodes answer and have this very version of garboard; only such nodes can be changed."""
        found = self._ask_all(tuple(nodes), VERSION, read_version)
        silent = {node: answer for node, answer in found.items() if isinstance(answer, GarboardError)}
        if silent:
            node, error = next(iter(silent.items()))
            others = f" (and {len(silent) - 1} more: {', '.join([*silent][1:])})" if len(silent) > 1 else ""
            raise NodeUnknown(f"{error.message}{others}", hint=error.hint or f"try it: {self._shown(node, VERSION)}")
        differing = [f"{node} has {version}" for node, version in found.items() if version != __version__]
        if differing:
            raise NotReady(
                f"garboard is {__version__} here, and {', '.join(differing)}; nothing has been changed",
                hint="install the same version on all nodes",
                error_class="version-skew",
            )
        self._same_version.update(found)

    def status(self, node: str) -> RemoteStatus:
        """Ask a node for its runs, also the closed ones, and for the command that is at work."""
        return self.ask(node, STATUS, read_status)

    def run(self, node: str, words: Sequence[str], *, stdin: bytes = b"", timeout_s: float) -> Outcome:
        """Run `garboard WORDS` on a node and report its output line by line; secrets and files go by `stdin`."""

        def report(line: str) -> None:
            self._reporter.report(f"[{node}] {line}")

        lines: dict[Stream, Lines] = {"stdout": Lines(report), "stderr": Lines(report)}
        command = self._via.command(node, words)
        status = run_piped(command, lambda name, data: lines[name].feed(data), stdin=stdin, timeout_s=timeout_s)
        for each in lines.values():
            each.end()
        return _outcome(status, timeout_s)

    def change(
        self,
        node: str,
        words: Sequence[str],
        *,
        stdin: bytes = b"",
        before: RemoteStatus | None = None,
        timeout_s: float,
        find_out_s: float,
    ) -> CommandEnded | CommandFound:
        """Run a command that changes a node; if the connection is lost, ask the node until it is known what happened.

        Raise `NodeUnknown` if that is not known within `find_out_s`. `before` is what the node has just said.
        """
        assert node in self._same_version, "the versions of all nodes are compared before the first write"
        before = before or self.status(node)
        outcome = self.run(node, words, stdin=stdin, timeout_s=timeout_s)
        if isinstance(outcome, CommandEnded):
            return outcome
        self._reporter.report(f"[{node}] {outcome.reason}; asking what became of garboard {' '.join(words)}")
        return self.find_out(node, words, before, outcome.reason, find_out_s)

    def find_out(
        self, node: str, words: Sequence[str], before: RemoteStatus, reason: str, timeout_s: float,
        *, has_ended: bool = False,
    ) -> CommandFound:  # fmt: skip
        """Ask a node what became of a command, until nothing is at work there; `before` is what it said before that.

        One that may still be on its way is waited for.
        """
        quiet_s = 0.0 if has_ended else min(QUIET_S, timeout_s)
        found: list[RemoteStatus] = []
        reported, lost_at = set[str](), self._clock.now_s()

        def problem() -> str | None:
            try:
                answer = self.status(node)
            except GarboardError as error:
                return error.message
            found[:] = [answer]
            if answer.locked_by:
                return f"{answer.locked_by} is at work there"
            if not answer.since(before) and self._clock.now_s() - lost_at < quiet_s:
                return "no run has begun there yet"
            return None

        def report(text: str | None) -> str | None:
            if text is not None and text not in reported:
                reported.add(text)
                self._reporter.report(f"[{node}] {text}")
            return text

        last = wait_until(lambda: report(problem()), timeout_s=timeout_s, pauses=_PAUSES, clock=self._clock)
        if last is not None:
            raise NodeUnknown(
                f"what became of `garboard {' '.join(words)}` on {node} is unknown after {timeout_s:.0f} s: "
                f"{reason}, then {last}",
                hint=f"nothing else was begun; look at the node with: {self._shown(node, STATUS)}",
            )
        return CommandFound(reason, found[0].since(before))

    def ask(
        self,
        node: str,
        words: Sequence[str],
        read: Callable[[str], Answer],
        *,
        stdin: bytes = b"",
        timeout_s: float = ANSWER_WITHIN_S,
    ) -> Answer:
        """Return what a command answers; one that changes something has to bear being asked again."""
        answer, said = bytearray(), bytearray()

        def take(name: Stream, data: bytes) -> None:
            kept = answer if name == "stdout" else said
            kept.extend(data)
            if len(answer) > LONGEST_ANSWER:
                raise NodeUnknown(f"{node} answers garboard {' '.join(words)} without end")
            del said[:-LONGEST_ANSWER]

        status = run_piped(self._via.command(node, words), take, stdin=stdin, timeout_s=timeout_s)
        if status != 0:
            outcome = _outcome(status, timeout_s)
            reason = outcome.reason if isinstance(outcome, CommandUnknown) else f"it ended with status {outcome.status}"
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise NodeUnknown(
                f"{node} does not answer garboard {' '.join(words)}: {reason}"
                + (f" ({printable(last)})" if last else ""),
                hint=f"try it: {self._shown(node, words)}",
            )
        try:
            return read(answer.decode("utf-8", "replace"))
        except GarboardError as error:
            raise NodeUnknown(f"{node}: {error.message}", hint=error.hint) from error

    def _ask_all(
        self, nodes: Sequence[str], words: Sequence[str], read: Callable[[str], Answer]
    ) -> dict[str, Answer | GarboardError]:
        def ask(node: str) -> Answer | GarboardError:
            try:
                return self.ask(node, words, read)
            except NodeUnknown as error:
                return error

        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            return dict(zip(nodes, pool.map(ask, nodes), strict=True))

    def _shown(self, node: str, words: Sequence[str]) -> str:
        return shlex.join(self._via.command(node, words))


def _outcome(status: int | None, timeout_s: float) -> Outcome:
    if status is None:
        return CommandUnknown(f"it did not end within {timeout_s:.0f} s")
    if status < 0:
        return CommandUnknown(f"the connection was ended by signal {-status}")
    if status == _LOST:
        return CommandUnknown("the connection failed (status 255)")
    if status >= _SIGNALLED_FROM and status != _INTERRUPTED:
        return CommandUnknown(f"the connection or the command was ended by signal {status - 128}")
    return CommandEnded(status)


class Lines:
    """Splits bytes into lines as they come; one that does not end is cut, and what is no text is replaced."""

    def __init__(self, take: Callable[[str], None], longest: int = LONGEST_LINE) -> None:
        self._take, self._longest = take, longest
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for each in lines:
            self._pass_on(each)
        while len(self._rest) > self._longest:
            self._pass_on(self._rest[: self._longest])
            self._rest = self._rest[self._longest :]

    def end(self) -> None:
        """Pass on what has no line break behind it."""
        rest, self._rest = self._rest, b""
        if rest:
            self._pass_on(rest)

    def _pass_on(self, line: bytes) -> None:
        for start in range(0, max(len(line), 1), self._longest):
            self._take(printable(line[start : start + self._longest].decode("utf-8", "replace")))


def printable(line: str) -> str:
    """Return a line without what would move the cursor, change colours or ring the bell."""
    return "".join(each if each.isprintable() else " " if each == "\t" else "\ufffd" for each in line.rstrip("\r"))
