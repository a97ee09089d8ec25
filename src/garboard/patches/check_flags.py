"""Checking command lines: flags, their values and feature gates against what the component of a minor accepts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from garboard.documents import DocumentPath, Json
from garboard.errors import PatchFailed
from garboard.model import SUPPORTED_VERSIONS
from garboard.patches.args import flag_name, flags_of
from garboard.patches.check_flag_values import bad_value, is_known_to_take
from garboard.patches.notes import Notes
from garboard.schema import Component, Flag, Schema, load_schema, suggest

GATES_FLAG = "feature-gates"
_BOOLEANS = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


@dataclass(frozen=True, slots=True)
class Word:
    """One flag of a command line: its name, its value if it has one, and where it stands."""

    name: str
    value: str | None
    at: DocumentPath


@dataclass(frozen=True, slots=True)
class FlagCheck:
    """Knows the components of one minor; `component` is the one that the patched target runs, if any."""

    notes: Notes
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
            self.notes.error(
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
        """Check the flags among words, of which those before `first` are no flags."""
        component = self.schema.component(program)
        if component is not None:
            for word in _flags_among(words, component, program, at, first):
                self._word(word, component, program)

    def one_word(self, text: str, program: str, at: DocumentPath) -> None:
        """Check a single word of a command line that stands alone at `at`."""
        component = self.schema.component(program)
        if component is not None and _is_flag(text, program):
            name, equals, value = text.lstrip("-").partition("=")
            self._word(Word(name, value if equals else None, at), component, program)

    def args(self, args: Json, *, is_pod: bool) -> None:
        """Check an args patch: a mapping of flag to value."""
        component = self.schema.component(self.component or "") if is_pod else None
        try:
            flags = flags_of(args)
        except PatchFailed as error:
            self.notes.error(error.error_class, error.message, (), error.hint)
            return
        if component is None or self.component is None:
            hint = "args patches work on kube-apiserver, kube-controller-manager, kube-scheduler and etcd"
            self.notes.error("bad-document", "an args patch needs a Pod that runs a known program", (), hint)
            return
        for name, values in flags.items():
            for value in values or (None,):
                if isinstance(value, dict | list) or (value is None and values):
                    message = f"the value of flag {name!r} must be text, a number or a boolean"
                    self.notes.error("wrong-type", message, (name,))
                else:
                    self._word(Word(name.lstrip("-"), _text_of(value), (name,)), component, self.component)

    def gate_map(self, gates: Json, program: str, at: DocumentPath) -> None:
        """Check `featureGates` of a component's configuration."""
        component = self.schema.component(program)
        if component is not None and isinstance(gates, dict):
            for name, value in gates.items():
                if not name.startswith("$") and value is not None:
                    self._gate(name, value if isinstance(value, bool) else None, component, program, (*at, name))

    def _program(self, command: Json) -> str | None:
        """Return the component that a command list runs, by the last part of its first word."""
        first = command[0] if isinstance(command, list) and command else None
        name = first.rpartition("/")[2] if isinstance(first, str) else ""
        return name if self.schema.component(name) is not None else None

    def _word(self, word: Word, component: Component, program: str) -> None:
        flag = _find(word.name, component, program)
        if flag is None:
            near = suggest(word.name, component.flags)
            self.notes.error(
                "unknown-flag",
                f"{program} of Kubernetes {self.schema.version.as_minor} has no flag --{word.name}",
                word.at,
                self._elsewhere(program, lambda other: _find(word.name, other, program) is not None)
                or (f"did you mean --{near}?" if near else f"{program} refuses to start with it"),
            )
            return
        if flag.is_deprecated:
            self.notes.warning("deprecated-flag", f"--{flag.name} of {program} is deprecated", word.at)
        if word.value is None or "$(" in word.value:  # a value from the environment is known only when it runs
            return
        if flag.name == GATES_FLAG:
            self._gates(word.value, component, program, word.at)
            return
        self._value(flag, word.value, component, program, word.at)

    def _value(self, flag: Flag, value: str, component: Component, program: str, at: DocumentPath) -> None:
        problem = bad_value(flag, value, component.choices.get(flag.name))
        if problem is not None:
            elsewhere = self._elsewhere(
                program, lambda other: bad_value(flag, value, other.choices.get(flag.name)) is None
            )
            self.notes.error("bad-flag-value", f"--{flag.name}: {problem.reason}", at, elsewhere or problem.hint)

    def _elsewhere(self, program: str, is_accepted: Callable[[Component], bool]) -> str | None:
        """Return the hint that the program of another minor accepts what this one does not, if one does."""
        for version in SUPPORTED_VERSIONS:
            other = load_schema(version).component(program)
            if version.as_minor != self.schema.version.as_minor and other is not None and is_accepted(other):
                return f"Kubernetes {version.as_minor} accepts it; the patch cannot serve both minors"
        return None

    def _gates(self, text: str, component: Component, program: str, at: DocumentPath) -> None:
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = pair.partition("=")
            name = name.removeprefix("kube:").strip()
            wanted = _BOOLEANS.get(value.strip().lower())
            if not equals or wanted is None:
                self.notes.error("bad-flag-value", f"--{GATES_FLAG}: {name!r} needs =true or =false", at)
            self._gate(name, wanted, component, program, at)

    def _gate(self, name: str, wanted: bool | None, component: Component, program: str, at: DocumentPath) -> None:
        gate = component.feature_gates.get(name)
        if gate is None:
            near = suggest(name, component.feature_gates)
            self.notes.error(
                "unknown-feature-gate",
                f"{program} of Kubernetes {self.schema.version.as_minor} has no feature gate {name!r}",
                at,
                self._elsewhere(program, lambda other: name in other.feature_gates)
                or (f"did you mean {near!r}?" if near else f"{program} refuses to start with it"),
            )
        elif gate.is_locked and wanted is not None and wanted != gate.default:
            message = f"the feature gate {name!r} is locked to {str(gate.default).lower()}"
            self.notes.error("locked-feature-gate", message, at, f"remove it: {program} refuses to start with it")


def _text_of(value: Json) -> str | None:
    """Return a flag's value as it would stand in a command; nothing for a flag that is removed."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flags_among(
    words: Sequence[Json], component: Component, program: str, at: DocumentPath, first: int
) -> Iterator[Word]:
    """Yield the flags of a command line; the word after a flag without `=` may be its value."""
    index = first
    while index < len(words):
        word, place = words[index], (*at, index)
        index += 1
        if word == "--":
            return
        if not isinstance(word, str) or not _is_flag(word, program):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        following = words[index] if index < len(words) else None
        if not equals and is_known_to_take(_find(name, component, program)) and isinstance(following, str):
            yield Word(name, following, place)
            index += 1
        else:
            yield Word(name, value if equals else None, place)


def _is_flag(word: str, program: str) -> bool:
    # One dash begins a shorthand of the Kubernetes components (-v=2); only etcd takes long names after it.
    return re.match(r"--?[^-=]" if program == "etcd" else r"--[^-=]", word) is not None and flag_name(word) != ""


def _find(name: str, component: Component, program: str) -> Flag | None:
    return component.flags.get(name if program == "etcd" else name.replace("_", "-"))
