"""The shipped flags, feature gates and choices against what the programs themselves say."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import ComponentFlag, ComponentGate, ComponentOptions, load_schema
from tools.harness.answers import Answers
from tools.schema.generate import KUBERNETES_COMPONENTS, etcd_version

# A program that is not there yet is built first.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

VERSIONS = pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
PROGRAMS = pytest.mark.parametrize("name", KUBERNETES_COMPONENTS)
# Where the words of pflag's help differ from the types that its flags say of themselves.
HELP_WORDS = {"stringSlice": "strings", "int64": "int", "float64": "float", "bool": "", "version": "version[=true]"}
# A word in backquotes in a flag's description takes the place of its type.
QUOTED_TYPES = {"seccomp-default": "RuntimeDefault"}
# etcd 3.7 still describes what it no longer takes.
ONLY_IN_ETCD_HELP = {"1.36": set[str](), "1.37": {"discovery", "discovery-proxy"}}
# Only these set their gates before they print their version; kubelet and kube-proxy would start.
CHECK_GATES_FIRST = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


Run = Callable[..., str]


@pytest.fixture
def run(answers: Answers) -> Run:
    """Give what a program prints for its arguments."""

    def printed(program: Path, *arguments: str) -> str:
        done = answers.run(program, *arguments)
        return done.stdout + done.stderr

    return printed


def component_of(name: str, version: KubernetesVersion) -> ComponentOptions:
    found = load_schema(version).component(name)
    assert found is not None
    return found


def described_flags(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and description of every flag in a pflag help text."""
    starts = list(re.finditer(r"^ +(?:-\w, )?--([\w-]+)(?: (\S+))?(?= {2}|$)", text, re.M))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=True):
        yield start[1], start[2] or "", text[start.end() : end]


def listed_gates(text: str) -> dict[str, tuple[str, bool]]:
    """Return stage and default of every gate; what a gate becomes with --min-compatibility-version comes second."""
    gates: dict[str, tuple[str, bool]] = {}
    for found in re.finditer(r"(\w+)=true\|false \((\w+) - default=(true|false)\)", text):
        gates.setdefault(found[1], (found[2].lower(), found[3] == "true"))
    return gates


def listed(gates: Mapping[str, ComponentGate]) -> dict[str, tuple[str, bool]]:
    """Return what a help text tells of gates: those that are settled go without saying."""
    return {name: (gate.stage, gate.default) for name, gate in gates.items() if gate.stage in ("alpha", "beta")}


def help_word(flag: ComponentFlag) -> str:
    return QUOTED_TYPES.get(flag.name) or HELP_WORDS.get(flag.type, flag.type)


@VERSIONS
@PROGRAMS
def test_help_tells_the_shipped_flags(name: str, version: KubernetesVersion, binaries: Binaries, run: Run) -> None:
    program, component = binaries.locate(name, str(version)), component_of(name, version)
    told = {flag: (word, "(DEPRECATED:" in text) for flag, word, text in described_flags(run(program, "--help"))}
    shown = {
        flag.name: (help_word(flag), flag.is_deprecated) for flag in component.flags.values() if not flag.is_hidden
    }
    assert told == shown


@VERSIONS
@PROGRAMS
def test_program_takes_every_hidden_flag(name: str, version: KubernetesVersion, binaries: Binaries, run: Run) -> None:
    program = binaries.locate(name, str(version))
    hidden = [flag.name for flag in component_of(name, version).flags.values() if flag.is_hidden]
    for flag in hidden:
        assert "unknown flag" not in run(program, f"--{flag}=", "--help"), flag
    assert "unknown flag" in run(program, "--no-flag-of-this-name=", "--help")


@VERSIONS
@PROGRAMS
def test_help_tells_the_shipped_feature_gates(
    name: str, version: KubernetesVersion, binaries: Binaries, run: Run
) -> None:
    text = run(binaries.locate(name, str(version)), "--help")
    assert listed_gates(text) == listed(component_of(name, version).feature_gates)


@VERSIONS
@pytest.mark.parametrize("name", CHECK_GATES_FIRST)
def test_settled_gates_are_known_and_exactly_the_locked_ones_cannot_be_turned(
    name: str, version: KubernetesVersion, binaries: Binaries, run: Run
) -> None:
    program = binaries.locate(name, str(version))
    gates = [gate for gate in component_of(name, version).feature_gates.values() if gate.stage in ("ga", "deprecated")]
    turned = ",".join(f"{gate.name}={str(not gate.default).lower()}" for gate in gates)
    said = run(program, f"--feature-gates={turned}", "--version")
    assert "unrecognized" not in said
    locked = re.findall(r"cannot set feature gate (\w+) to \w+, feature is locked", said)
    assert set(locked) == {gate.name for gate in gates if gate.is_locked}
    assert "unrecognized feature gate: NoGate" in run(program, "--feature-gates=NoGate=true", "--version")


@VERSIONS
def test_help_tells_the_shipped_admission_plugins(version: KubernetesVersion, binaries: Binaries, run: Run) -> None:
    told = {
        flag: text for flag, _, text in described_flags(run(binaries.locate("kube-apiserver", str(version)), "--help"))
    }
    choices = component_of("kube-apiserver", version).choices
    for flag in ("enable-admission-plugins", "disable-admission-plugins"):
        found = re.search(r"Comma-delimited list of admission plugins: ([^.]+)\.", told[flag])
        assert found is not None
        assert set(found[1].split(", ")) == choices[flag]


@VERSIONS
def test_program_knows_the_shipped_controllers(version: KubernetesVersion, binaries: Binaries, run: Run) -> None:
    program = binaries.locate("kube-controller-manager", str(version))
    choices = component_of("kube-controller-manager", version).choices["controllers"]
    found = re.search(r"All controllers: (.+)\n", run(program, "--help"))
    assert found is not None
    assert set(found[1].split(", ")) <= choices
    # Older names are not in the help, so the program is asked; it goes no further than a kubeconfig that is not there.
    asked = f"--controllers={','.join(sorted(choices))}"
    kubeconfig = "--kubeconfig=/nowhere/kubeconfig"
    assert "is not in the list" not in run(program, asked, kubeconfig)
    assert '"nobody\\" is not in the list' in run(program, f"{asked},nobody", kubeconfig)


@VERSIONS
def test_etcd_takes_exactly_the_shipped_flags(version: KubernetesVersion, binaries: Binaries, run: Run) -> None:
    minor = str(version.as_minor)
    etcd, flags = binaries.locate("etcd", etcd_version(version)), component_of("etcd", version).flags
    told = set(re.findall(r"^  --([\w-]+)", run(etcd, "--help"), re.M))
    assert told - flags.keys() == ONLY_IN_ETCD_HELP[minor]
    # Those it does not describe are its own --help and --version, and old ones that it ignores.
    for flag in [*(flags.keys() - told), *ONLY_IN_ETCD_HELP[minor]]:
        is_unknown = "flag provided but not defined" in run(etcd, f"--{flag}=", "--help")
        assert is_unknown == (flag not in flags), flag


@VERSIONS
def test_etcd_lists_the_shipped_feature_gates(version: KubernetesVersion, binaries: Binaries, run: Run) -> None:
    text = run(binaries.locate("etcd", etcd_version(version)), "--help")
    assert listed_gates(text) == listed(component_of("etcd", version).feature_gates)
