"""Checking the command lines that patches write, by the rules of the component that they are for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from garboard.documents import DocumentPath, Json
from garboard.errors import PatchFailed
from garboard.patches.args import flags_of
from garboard.patches.findings import PatchFindings
from garboard.rules.command_line import Word, flags_among, is_flag
from garboard.rules.flags import FlagProblem, FlagRules, flag_rules
from garboard.schema import Schema


@dataclass(frozen=True, slots=True)
class FlagCheck:
    """Checks flags against the components of one minor; `component` is the one that the target runs, if any."""

    findings: PatchFindings
    schema: Schema
    component: str | None = None

    def container(self, members: dict[str, Json], at: DocumentPath) -> None:
        """Check `command` and `args` of a container that runs a component."""
        command, args = members.get("command"), members.get("args")
        is_main = self.component is not None and members.get("name") in (None, self.component)
        program = self._program(command) or (self.component if is_main else None)
        if program is None:
            return
        if isinstance(command, list):
            if self.command(command, program, (*at, "command"), is_main=is_main) and isinstance(args, list):
                self.words(args, program, (*at, "args"), first=0)
        elif isinstance(args, list):
            self.words(args, program, (*at, "args"), first=0)

    def command(self, command: list[Json], program: str, at: DocumentPath, *, is_main: bool) -> bool:
        """Check a whole command list; tell whether it runs the program."""
        first = command[0] if command else None
        if isinstance(first, str) and first.startswith("-") and is_main:
            self.findings.error(
                "missing-program",
                f"the list replaces the whole command but does not begin with {program!r}",
                (*at, 0),
                f"write {program!r} as the first word and every flag after it, or use a +args patch",
            )
        elif self._program(command) != program:
            return False
        self.words(command, program, at, first=0 if isinstance(first, str) and first.startswith("-") else 1)
        return True

    def words(self, words: Sequence[Json], program: str, at: DocumentPath, *, first: int) -> None:
        """Check the flags among words; the words before `first` are no flags."""
        rules = flag_rules(self.schema, program)
        if rules is not None:
            for word in flags_among(words, rules.options, program, at, first):
                self._word(word, rules)

    def one_word(self, text: str, program: str, at: DocumentPath) -> None:
        """Check a single word of a command line that stands alone at `at`."""
        rules = flag_rules(self.schema, program)
        if rules is not None and is_flag(text, program):
            name, equals, value = text.lstrip("-").partition("=")
            self._word(Word(name, value if equals else None, at), rules)

    def args(self, args: Json, *, is_pod: bool) -> None:
        """Check an args patch: a mapping of flag to value."""
        rules = flag_rules(self.schema, self.component or "") if is_pod else None
        try:
            flags = flags_of(args)
        except PatchFailed as error:
            self.findings.error(error.error_class, error.message, (), error.hint)
            return
        if rules is None:
            hint = "args patches work on kube-apiserver, kube-controller-manager, kube-scheduler and etcd"
            self.findings.error("bad-document", "an args patch needs a Pod that runs a known program", (), hint)
            return
        for name, values in flags.items():
            for value in values or (None,):
                if isinstance(value, dict | list) or (value is None and values):
                    message = f"the value of flag {name!r} must be text, a number or a boolean"
                    self.findings.error("wrong-type", message, (name,))
                else:
                    self._word(Word(name.lstrip("-"), _text_of(value), (name,)), rules)

    def gate_map(self, gates: Json, program: str, at: DocumentPath) -> None:
        """Check `featureGates` of a component's configuration."""
        rules = flag_rules(self.schema, program)
        if rules is not None and isinstance(gates, dict):
            for name, value in gates.items():
                if not name.startswith("$") and value is not None:
                    self._add(rules.gate(name, value if isinstance(value, bool) else None), (*at, name))

    def _program(self, command: Json) -> str | None:
        """Return the component that a command list runs, by the last part of its first word."""
        first = command[0] if isinstance(command, list) and command else None
        name = first.rpartition("/")[2] if isinstance(first, str) else ""
        return name if self.schema.component(name) is not None else None

    def _word(self, word: Word, rules: FlagRules) -> None:
        self._add(rules.problems(word), word.at)

    def _add(self, problems: Iterable[FlagProblem], at: DocumentPath) -> None:
        for each in problems:
            add = self.findings.warning if each.is_warning else self.findings.error
            add(each.code, each.message, at, each.hint)


def _text_of(value: Json) -> str | None:
    """Return a flag's value as it would stand in a command; nothing for a flag that is removed."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
