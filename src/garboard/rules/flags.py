"""Flags of the components: whether they exist, can be read, and go together, for one minor."""

from collections.abc import Callable, Iterator, Sequence

from garboard.documents import DocumentPath, Json
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.model.go import BOOLEANS
from garboard.rules.command_line import CommandLine, StrayWord, Word, find_flag, read_words
from garboard.rules.findings import ResultFinding
from garboard.rules.flag_conflicts import check_together
from garboard.rules.flag_values import bad_value
from garboard.schema import ComponentFlag, ComponentOptions, Schema, load_schema, suggest
from garboard.values import dataclass

GATES_FLAG = "feature-gates"


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """What is wrong with one flag; a deprecated one works, for now."""

    code: str
    message: str
    hint: str | None = None
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class FlagRules:
    """The rules of one program of a minor."""

    schema: Schema
    program: str
    options: ComponentOptions

    def problems(self, word: Word) -> Iterator[FlagProblem]:
        """Yield what is wrong with one flag of a command line."""
        flag = find_flag(word.name, self.options, self.program)
        if flag is None:
            yield self._unknown(word.name)
            return
        if flag.is_deprecated:
            yield FlagProblem("deprecated-flag", f"--{flag.name} of {self.program} is deprecated", is_warning=True)
        if word.value is None or "$(" in word.value:  # a value from the environment is known only when it runs
            return
        if flag.name == GATES_FLAG:
            yield from self._gates(word.value)
        else:
            yield from self._value(flag, word.value)

    def gate(self, name: str, wanted: bool | None) -> Iterator[FlagProblem]:
        """Yield what is wrong with setting a feature gate."""
        gate = self.options.feature_gates.get(name)
        if gate is None:
            near = suggest(name, self.options.feature_gates)
            message = f"{self.program} of Kubernetes {self.schema.version.as_minor} has no feature gate {name!r}"
            hint = f"did you mean {near!r}?" if near else f"{self.program} refuses to start with it"
            elsewhere = self._elsewhere(lambda other: name in other.feature_gates)
            yield FlagProblem("unknown-feature-gate", message, elsewhere or hint)
        elif gate.is_locked and wanted is not None and wanted != gate.default:
            message = f"the feature gate {name!r} is locked to {str(gate.default).lower()}"
            yield FlagProblem("locked-feature-gate", message, f"remove it: {self.program} refuses to start with it")

    def _unknown(self, name: str) -> FlagProblem:
        near = suggest(name, self.options.flags)
        elsewhere = self._elsewhere(lambda other: find_flag(name, other, self.program) is not None)
        hint = f"did you mean --{near}?" if near else f"{self.program} refuses to start with it"
        message = f"{self.program} of Kubernetes {self.schema.version.as_minor} has no flag --{name}"
        return FlagProblem("unknown-flag", message, elsewhere or hint)

    def _value(self, flag: ComponentFlag, value: str) -> Iterator[FlagProblem]:
        problem = bad_value(flag, value, self.options.choices.get(flag.name))
        if problem is not None:
            elsewhere = self._elsewhere(lambda other: bad_value(flag, value, other.choices.get(flag.name)) is None)
            yield FlagProblem("bad-flag-value", f"--{flag.name}: {problem.reason}", elsewhere or problem.hint)

    def _gates(self, text: str) -> Iterator[FlagProblem]:
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = pair.partition("=")
            name = name.removeprefix("kube:").strip()
            wanted = BOOLEANS.get(value.strip())
            if not equals or wanted is None:
                yield FlagProblem("bad-flag-value", f"--{GATES_FLAG}: {name!r} needs =true or =false")
            yield from self.gate(name, wanted)

    def _elsewhere(self, is_accepted: Callable[[ComponentOptions], bool]) -> str | None:
        """Return the hint that another minor accepts what this one refuses, if one does."""
        for version in SUPPORTED_VERSIONS:
            other = load_schema(version).component(self.program)
            if version.as_minor != self.schema.version.as_minor and other is not None and is_accepted(other):
                return f"Kubernetes {version.as_minor} accepts it; what is written here cannot serve both minors"
        return None


def flag_rules(schema: Schema, program: str) -> FlagRules | None:
    """Return the rules of a program, if its flags are known."""
    options = schema.component(program)
    return None if options is None else FlagRules(schema, program, options)


def check_flags(
    program: str, words: Sequence[Json], version: KubernetesVersion, at: DocumentPath = ()
) -> list[ResultFinding]:
    """Return what a component refuses in its flags: `words` are those after the program, `at` is where they stand."""
    rules = flag_rules(load_schema(version), program)
    if rules is None:
        return []
    read = list(read_words([(word, (*at, index)) for index, word in enumerate(words)], rules.options, program))
    flags = [each for each in read if isinstance(each, Word)]
    strays = [each for each in read if isinstance(each, StrayWord)]
    found = [
        ResultFinding(each.code, word.at, each.message, each.hint)
        for word in flags
        for each in rules.problems(word)
        if not each.is_warning
    ]
    found += [ResultFinding("stray-word", each.at, each.message, each.hint) for each in strays]
    return [*found, *check_together(CommandLine(rules.options, program, tuple(flags), at), rules.schema)]
