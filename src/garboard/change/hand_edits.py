"""What somebody has typed into the manifests of components which a change has to replace; flags are judged here."""

from collections.abc import Iterator, Sequence

from garboard.change.edits import FieldEdit
from garboard.change.field_edits import SECTIONS, field_edits
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.node_work import ClusterWork
from garboard.change.snapshot import SnapshotNode
from garboard.change.validation import PlacedFinding
from garboard.documents import Json, read_yaml
from garboard.rules import DocumentField

# Existing members ignore these, and kubeadm renders them in another way each time.
_OF_MEMBERS = ("--initial-cluster", "--initial-cluster-state")


def hand_edits(context: ChangeContext, work: ClusterWork, *, overwrites: bool = False) -> Iterator[PlacedFinding]:
    """Yield every flag and field of a touched component that neither the configuration nor a patch has so.

    Flags that are overwritten are none any more.
    """
    touched = work.touched
    for node in context.snapshot.control_planes:
        before, after = work.renderings[node.name]
        yield from field_edits(context, node, (before, after), touched.get(node.name, frozenset()))
        for component, pod in before.pods.items():
            if component not in touched.get(node.name, frozenset()):
                continue
            live = None if overwrites else live_command(node, component)
            if live is not None:
                wanted = after.pods[component].document if component in after.pods else {}
                yield from _edits(node.name, component, _words(pod.document), _words(wanted), live)


def adoptable(context: ChangeContext, work: ClusterWork) -> tuple[FieldEdit, ...]:
    """Return the edits that put flags into the configuration which somebody has typed into a touched component.

    Only what the configuration can say for all control planes is adopted: one value, the same wherever it was typed.
    """
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for node in context.snapshot.control_planes:
        before, after = work.renderings[node.name]
        for component in work.touched.get(node.name, frozenset()) & before.pods.keys() & after.pods.keys():
            own, wanted = (_flags(_words(each.pods[component].document)) for each in (before, after))
            live = _flags(live_command(node, component) or [])
            for flag in (live.keys() - own.keys()) | {each for each in own if own[each] != live.get(each, own[each])}:
                if flag not in _OF_MEMBERS and own.get(flag) == wanted.get(flag):
                    found.setdefault((component, flag.lstrip("-")), set()).add(tuple(live[flag]))
    return tuple(
        FieldEdit.parse(f"{SECTIONS[component]}.extraArgs[{name}]={next(iter(values))[0]}")
        for (component, name), values in sorted(found.items())
        if len(values) == 1 and len(next(iter(values))) == 1
    )


def _edits(
    node: str, component: str, base: Sequence[str], target: Sequence[str], live: Sequence[str]
) -> Iterator[PlacedFinding]:
    own, wanted, found = _flags(base), _flags(target), _flags(live)
    for flag in sorted({*own, *found}):
        if flag in _OF_MEMBERS or found.get(flag) in (own.get(flag), wanted.get(flag)):
            continue
        if own.get(flag) != wanted.get(flag):
            continue  # this is a conflict, which is told where the change is carried over
        values = found.get(flag)
        name = flag.lstrip("-")
        if values is None:
            reason, edit = f"{flag} was taken out by hand", f"--unset '{SECTIONS[component]}.extraArgs[{name}]'"
        else:
            shown = ", ".join(values)
            reason = f"{flag}={shown} was typed in by hand, and the configuration does not have it"
            edit = f"--set '{SECTIONS[component]}.extraArgs[{name}]={shown}'"
        route = f"put it into the configuration ({edit}), or keep it where it is"
        finding = ChangeFinding(code="hand-edit", reason=reason, route=route, found=_shown(values))
        yield PlacedFinding(f"{component} on {node}: {flag}", finding)


def _shown(values: Sequence[str] | None) -> Json:
    return None if values is None else values[0] if len(values) == 1 else [*values]


def live_command(node: SnapshotNode, component: str) -> list[str] | None:
    """Return the command line that a node really has: of the file, where it was seen, else of the mirror pod."""
    if node.manifests is not None and component in node.manifests:
        return _words(read_yaml(node.manifests[component], source=component))
    pod = node.mirror_pods.get(component)
    return pod.command if pod else None


def _words(document: Json) -> list[str]:
    containers = DocumentField(document).at("spec")["containers"]
    first = next(iter(containers.elements()), None)
    return [*first["command"].words, *first["args"].words] if first is not None else []


def _flags(words: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("-"):
            name, _, value = word.partition("=")
            found.setdefault(name, []).append(value)
    return found
