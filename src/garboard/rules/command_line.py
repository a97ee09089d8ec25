"""The command line of a component: which words are flags, and which value each of them has."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from garboard.documents import DocumentPath, Json
from garboard.model.go import BOOLEANS
from garboard.rules.findings import ResultFinding
from garboard.schema import ComponentFlag, ComponentOptions
from garboard.values import dataclass

_LISTS = ("stringSlice", "stringArray", "mapStringString", "mapStringBool")  # they grow with each use


@dataclass(frozen=True, slots=True)
class Word:
    """One flag of a command line: its name, its value if it has one, and where it stands."""

    name: str
    value: str | None
    at: DocumentPath


def flag_name(word: str) -> str:
    """Return the name of a flag as it stands in a command list, without dashes; empty for anything else."""
    return word.partition("=")[0].lstrip("-") if word.startswith("-") else ""


@dataclass(frozen=True, slots=True)
class StrayWord:
    """A word that the program refuses to read: it is no flag, or a flag without the value that it needs."""

    message: str
    at: DocumentPath
    hint: str | None = None


PlacedWord: TypeAlias = tuple[Json, DocumentPath]


def flags_among(
    words: Sequence[Json], component: ComponentOptions, program: str, at: DocumentPath, first: int
) -> Iterator[Word]:
    """Yield the flags of a command line; the word after a flag without `=` may be its value."""
    placed = [(word, (*at, index)) for index, word in enumerate(words)][first:]
    return (each for each in read_words(placed, component, program) if isinstance(each, Word))


def read_words(words: Sequence[PlacedWord], component: ComponentOptions, program: str) -> Iterator[Word | StrayWord]:
    """Yield what a program reads of the words after its name, as Go's flag package (etcd) and pflag (others) do."""
    left = list(reversed(words))
    while left:
        text, at = left.pop()
        if not isinstance(text, str) or (not text and program != "etcd"):
            continue
        if text == "--":
            yield from (_stray(str(word), place, component) for word, place in reversed(left) if word)
            return
        found = _flag_parts(text, program)
        if found is None:
            if "$(" not in text:  # what it is, the environment decides
                yield _stray(text, at, component)
            continue
        name, value = found
        if value is None and takes_next_word(find_flag(name, component, program)):
            if not left:
                yield StrayWord(f"--{name}: it needs a value", at, f"write it as --{name}=VALUE")
                return
            value = str(left.pop()[0])
        yield Word(name, value, at)


def _flag_parts(text: str, program: str) -> tuple[str, str | None] | None:
    """Return the name and the value of a flag as it is written, or nothing if the word is none."""
    if is_flag(text, program):
        name, equals, value = text.lstrip("-").partition("=")
        return name, value if equals else None
    short = re.fullmatch(r"-([vh])(?:=(.+)|(.*))", text, re.DOTALL) if program != "etcd" else None
    if short is None or (short[1] == "h" and short[3]):
        return None
    return ("v", short[2] or short[3] or None) if short[1] == "v" else ("help", short[2])


def _stray(text: str, at: DocumentPath, component: ComponentOptions) -> StrayWord:
    """Return a word that is no flag; of its text only the name of a flag is repeated, the rest may be a secret."""
    name = re.sub(r"^[\s\W_]+", "", text).partition("=")[0].strip()
    if name in component.flags:
        return StrayWord("a word of the command is no flag", at, f"write it as --{name}=VALUE, without blanks")
    hint = "every word is a flag, --NAME=VALUE; the value of one that is true or false follows its `=`"
    return StrayWord("a word of the command is no flag", at, hint)


def is_flag(word: str, program: str) -> bool:
    """Tell whether a word is a flag with a long name, which only etcd takes after one dash."""
    return re.match(r"--?[^-=]" if program == "etcd" else r"--[^-=]", word) is not None


def find_flag(name: str, component: ComponentOptions, program: str) -> ComponentFlag | None:
    return component.flags.get(name if program == "etcd" else name.replace("_", "-"))


def takes_next_word(flag: ComponentFlag | None) -> bool:
    """Tell whether a flag without `=` takes the next word as its value; flags like booleans never do."""
    return flag is not None and flag.type not in ("bool", "ignored", "version")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """All flags of one run of a program."""

    options: ComponentOptions
    program: str
    flags: tuple[Word, ...]
    at: DocumentPath = ()

    def all(self, name: str) -> list[Word]:
        """Return every place where a flag stands, whichever way its name is written."""
        return [
            word
            for word in self.flags
            if (found := find_flag(word.name, self.options, self.program)) is not None and found.name == name
        ]

    def last(self, name: str) -> Word | None:
        return next(reversed(self.all(name)), None)

    def value(self, name: str) -> str:
        """Return the value that counts, empty if there is none; a flag of lists has its values joined by commas."""
        words = [word.value or "" for word in self.all(name)]
        flag = self.options.flags.get(name)
        is_list = flag is not None and flag.type in _LISTS
        return ",".join(filter(None, words)) if is_list else words[-1] if words else ""

    def values(self, name: str) -> list[str]:
        """Return the elements of a list, whose quotes may hold commas."""
        text = self.value(name)
        return next(csv.reader([text]), []) if '"' in text else text.split(",") if text else []

    def finding(self, code: str, name: str, message: str, hint: str | None = None) -> ResultFinding:
        """Return a finding at the last place of a flag, or at the whole command if it is not there."""
        word = self.last(name)
        return ResultFinding(code, self.at if word is None else word.at, f"--{name}: {message}", hint)

    def is_on(self, name: str, *, default: bool = False) -> bool:
        """Tell whether a boolean is true; `default` is what the program takes if it is not given."""
        word = self.last(name)
        return default if word is None else word.value is None or BOOLEANS.get(word.value, False)

    def is_gate_on(self, name: str) -> bool:
        """Tell whether a feature gate of the program is on: by its default, or by the flags."""
        for pair in reversed(self.value("feature-gates").split(",")):
            given, _, value = pair.partition("=")
            if given.removeprefix("kube:").strip() == name:
                return BOOLEANS.get(value.strip(), False)
        gate = self.options.feature_gates.get(name)
        return gate is not None and gate.default

    @property
    def is_certain(self) -> bool:
        """Whether every value is known: one from the environment is not."""
        return not any("$(" in (word.value or "") for word in self.flags)
