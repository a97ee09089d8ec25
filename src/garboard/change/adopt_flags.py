"""Flags and feature gates of a cluster that runs: refused by its minor or the next, or not alike on control planes."""

from collections.abc import Iterator, Mapping, Sequence

from garboard.change.adopt_codes import AdoptFinding
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import Json, read_yaml
from garboard.drift import flags_document
from garboard.errors import GarboardError
from garboard.model.minors import MINORS
from garboard.model.version import KubernetesVersion, Minor
from garboard.rules.command_line import Word, read_words
from garboard.rules.flags import FlagRules, flag_rules
from garboard.schema import load_schema

_SECTIONS = {
    "kube-apiserver": "apiServer.extraArgs",
    "kube-controller-manager": "controllerManager.extraArgs",
    "kube-scheduler": "scheduler.extraArgs",
    "etcd": "etcd.local.extraArgs",
}
# What a node decides for itself, or etcd once and for all.
_OF_THE_NODE = {
    "kube-apiserver": ("advertise-address", "etcd-servers"),
    "etcd": (
        "advertise-client-urls", "initial-advertise-peer-urls", "initial-cluster", "initial-cluster-state",
        "listen-client-urls", "listen-peer-urls", "name",
    ),
}  # fmt: skip
_GATES = "feature-gates"
_CODES = {"unknown-feature-gate": "removed-gate", "locked-feature-gate": "locked-gate", "unknown-flag": "removed-flag"}


def flag_findings(snapshot: ClusterSnapshot, minor: Minor) -> Iterator[AdoptFinding]:
    """Yield the flags and gates that this minor or the next known one refuses, once for all nodes that have them."""
    known = MINORS.get(minor)
    following = next((row.reference for each, row in MINORS.items() if each > minor), None)
    found: dict[tuple[str, ...], list[str]] = {}
    for node in snapshot.nodes:
        for program, words in _lines(node):
            for key in _refused(program, words, known.reference if known else None, following):
                found.setdefault(key, []).append(node.name)
    for (code, program, name, message), nodes in found.items():
        path = f"{_SECTIONS[program]}[{name}]" if program in _SECTIONS and code.endswith("flag") else ""
        everywhere = len(nodes) == len(snapshot.control_planes) and program != "kubelet"
        yield AdoptFinding(
            code=code,
            node="" if everywhere else ", ".join(nodes),
            subject=f"--{name} of {program}" if code.endswith("flag") else f"gate {name} of {program}",
            message=message,
            cure=_cure(program, name, path),
        )
    yield from _configured_gates(snapshot, following)


def _cure(program: str, name: str, path: str) -> str:
    if path:
        return f"garboard change plan --unset '{path}'"
    if program == "kubelet":
        return f"remove --{name} from /var/lib/kubelet/kubeadm-flags.env on the node, then systemctl restart kubelet"
    section = _SECTIONS[program]
    return f"garboard change plan --set '{section}[{_GATES}]=…' without {name}, or --unset '{section}[{_GATES}]'"


def _lines(node: SnapshotNode) -> Iterator[tuple[str, Sequence[str]]]:
    for component, pod in node.mirror_pods.items():
        yield component, pod.command[1:]
    if node.kubelet_flags:
        document = flags_document(node.kubelet_flags.encode())
        words = next(iter(document.values()), []) if isinstance(document, dict) else []
        yield "kubelet", [str(each) for each in words] if isinstance(words, list) else []


def _refused(
    program: str, words: Sequence[str], own: KubernetesVersion | None, following: KubernetesVersion | None
) -> Iterator[tuple[str, ...]]:
    """Yield code, program, name and message of what is refused by the own minor, or by the next one alone."""
    refused_now: set[str] = set()
    for version in filter(None, (own, following)):
        rules = flag_rules(load_schema(version), program)
        for word in _words(program, words, rules):
            for code, name, message in _problems(word, rules):
                if version == own:
                    refused_now.add(name)
                    if code == "unknown-flag":
                        yield code, program, name, message
                elif name not in refused_now:
                    yield _CODES[code], program, name, message


def _words(program: str, words: Sequence[str], rules: FlagRules | None) -> list[Word]:
    if rules is None:
        return []
    placed: list[tuple[Json, tuple[str | int, ...]]] = [(word, ()) for word in words]
    return [each for each in read_words(placed, rules.options, program) if isinstance(each, Word)]


def _problems(word: Word, rules: FlagRules | None) -> Iterator[tuple[str, str, str]]:
    if rules is None:
        return
    if word.name == _GATES and word.value:
        for pair in word.value.split(","):
            name, _, value = pair.partition("=")
            name = name.strip().removeprefix("kube:")
            for each in rules.gate(name, {"true": True, "false": False}.get(value.strip().lower())):
                yield each.code, name, each.message
        return
    for each in rules.problems(word):
        if each.code == "unknown-flag":
            yield each.code, word.name, each.message


def _configured_gates(snapshot: ClusterSnapshot, following: KubernetesVersion | None) -> Iterator[AdoptFinding]:
    """Yield the gates in the kubelets' and kube-proxy's configuration that the next minor refuses."""
    if following is None:
        return
    for program, kind, name in (
        ("kubelet", "KubeletConfiguration", "kubelet-config"),
        ("kube-proxy", "KubeProxyConfiguration", "kube-proxy"),
    ):
        rules = flag_rules(load_schema(following), program)
        gates = _gates_of(snapshot.stored_text(name))
        for gate, value in gates.items() if rules else ():
            for each in rules.gate(gate, value if isinstance(value, bool) else None) if rules else ():
                yield AdoptFinding(
                    code=_CODES[each.code],
                    subject=f"gate {gate} of {program}",
                    message=each.message,
                    cure=f"garboard change plan --unset '{kind}:featureGates.{gate}'",
                )


def _gates_of(text: str | None) -> Mapping[str, Json]:
    try:
        document = read_yaml(text or "{}", source="ConfigMap")
    except GarboardError:
        return {}
    gates = document.get("featureGates") if isinstance(document, dict) else None
    return gates if isinstance(gates, dict) else {}


def differing_flags(snapshot: ClusterSnapshot) -> Iterator[AdoptFinding]:
    """Yield the flags that the control planes do not have alike."""
    for component, section in _SECTIONS.items():
        lines = {
            node.name: _by_name(node.mirror_pods[component].command[1:], _OF_THE_NODE.get(component, ()))
            for node in snapshot.control_planes
            if component in node.mirror_pods
        }
        for name in sorted({name for flags in lines.values() for name in flags}):
            values = {node: flags.get(name) for node, flags in lines.items()}
            if len({*values.values()}) > 1:
                shown = "; ".join(f"{node}: {value or '(not set)'}" for node, value in values.items())
                yield AdoptFinding(
                    code="flags-differ",
                    subject=f"--{name} of {component}",
                    message=shown,
                    cure=f"on the node that is wrong: garboard change drift; for all: garboard change plan --set "
                    f"'{section}[{name}]=VALUE'",
                )


def _by_name(words: Sequence[str], without: Sequence[str]) -> dict[str, str]:
    """Return the values of flags by their name; of one that is repeated all of them."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name not in without:
            found.setdefault(name, []).append(value or "true")
    return {name: ", ".join(values) for name, values in found.items()}
