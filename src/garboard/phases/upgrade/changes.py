"""What a plan of an upgrade changes: every file and object with its diff, what restarts for it, and why."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from garboard.documents import Json, read_yaml, without_passwords, write_yaml
from garboard.drift import leaves_of, own_part, with_fields
from garboard.drift.leaves import same_meaning
from garboard.engine import ControlService, Note, Plan, PutObject, RemoveFile, Step, WriteFile
from garboard.engine.show import step_title
from garboard.errors import GarboardError
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.paths import KUBELET_CONF, manifest_path
from garboard.patches.json_values import ABSENT
from garboard.patches.unified import CONTEXT, TextDiff
from garboard.phases.node.kubelet import KUBELET
from garboard.phases.node.revisions import RECORD_PHASE
from garboard.phases.static_pods import ORDER
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.schema import Schema
from garboard.values import dataclass

ReadFile = Callable[[str], bytes | None]
FindObject = Callable[[PutObject], Mapping[str, Json] | None]

_LATER = "it takes effect when the kubelet is restarted, with its new package"
_ROLLED_OUT = {"DaemonSet": "its pods on every node", "Deployment": "its pods, a few at a time"}
_READ_AGAIN = {
    "coredns": "CoreDNS reads its Corefile again by itself",
    "kube-proxy": "kube-proxy reads it when its pods are started, with the DaemonSet",
}
_LONGEST = 400  # characters of a text in one line, such as a packed patch set


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeChange:
    """One file or object of an upgrade; a diff without lines is one of something that stays as it is."""

    name: str
    where: str
    diff: TextDiff
    restarts: tuple[str, ...] = ()
    why: str = ""

    @property
    def is_change(self) -> bool:
        return bool(self.diff.lines)

    @property
    def is_quiet(self) -> bool:
        """Whether neither the file nor anything that runs changes."""
        return not self.is_change and not self.restarts

    @property
    def title(self) -> str:
        """Say in one line what restarts, and why."""
        what = f"restarts {', '.join(self.restarts)}" if self.restarts else "nothing restarts"
        if self.is_quiet:
            return f"{self.name}: is as it should be"
        return f"{self.name}: {what}{f': {self.why}' if self.why else ''}"

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "where": self.where,
            "diff": without_passwords("".join(self.diff.lines)),
            "restarts": [*self.restarts],
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class UpgradeChanges:
    """Everything that an upgrade of this node changes, and what it does besides."""

    node: str
    former: str
    target: str
    changes: tuple[UpgradeChange, ...]
    also: tuple[str, ...] = ()  # what is done that changes neither a file nor an object that is shown
    notes: tuple[Note, ...] = ()

    def as_json(self) -> dict[str, Json]:
        return {
            "apiVersion": "upgrade.garboard.dev/v1alpha1",
            "kind": "UpgradeDiff",
            "node": self.node,
            "from": self.former,
            "to": self.target,
            "changes": [each.as_json() for each in self.changes],
            "restarts": [*restarted(self.changes)],
            "also": [*self.also],
            "notes": [{"phase": each.phase, "text": each.text, "warning": each.is_warning} for each in self.notes],
        }

    def as_text(self) -> str:
        """Return the changes as a unified diff, with a line before each about what restarts; no passwords of URLs."""
        blocks = [without_passwords("".join((f"{each.title}\n", *each.diff.lines))) for each in self.changes]
        also = "".join(f"also: {text}\n" for text in self.also)
        return "\n".join(blocks) + (f"\n{also}" if also else "")


def restarted(changes: Sequence[UpgradeChange]) -> tuple[str, ...]:
    """Return what starts anew, each once, in the order of the changes."""
    return tuple(dict.fromkeys(each for change in changes for each in change.restarts))


def changes_of(
    plan: Plan, manifests: Mapping[str, bytes], read: ReadFile, find: FindObject, schema: Schema, context: int = CONTEXT
) -> tuple[UpgradeChange, ...]:
    """Return what a plan changes on a node and in its cluster, and the static pods that it leaves alone."""
    return (
        *_pods(plan, manifests, context),
        *_files(plan, read, context),
        *(each for each in _objects(plan, find, schema, context) if not each.is_quiet or _is_main(each)),
    )


def _is_main(change: UpgradeChange) -> bool:
    """Say whether a reader wants to know also that an object stays: what there are dozens of is left out."""
    return change.where.partition(" ")[0] in ("ConfigMap", "DaemonSet", "Deployment")


def other_steps(plan: Plan) -> tuple[str, ...]:
    """Return what a plan does besides writing files and objects and restarting pods; waiting is left out."""
    shown = (WriteFile, RemoveFile, PutObject, ControlService)
    titles = (step_title(each) for each in plan.steps if not isinstance(each.action, shown))
    return tuple(dict.fromkeys(title for title in titles if not title.startswith("wait for")))


def _pods(plan: Plan, manifests: Mapping[str, bytes], context: int) -> Iterator[UpgradeChange]:
    written = {each.action.path: each.action.content for each in plan.steps if isinstance(each.action, WriteFile)}
    taken_away = {each.action.path: each for each in plan.steps if isinstance(each.action, RemoveFile)}
    for component in ORDER:
        if component not in manifests:
            continue
        path = manifest_path(component)
        step = taken_away.get(path)
        yield UpgradeChange(
            name=component,
            where=path,
            diff=_diff(path, manifests[component], written.get(path, manifests[component]), context),
            restarts=step.restarts if step else (),
            why=step.cause if step else "",
        )


def _files(plan: Plan, read: ReadFile, context: int) -> Iterator[UpgradeChange]:
    pods = {manifest_path(each) for each in ORDER}
    if not any(isinstance(each.action, WriteFile) and each.action.path == CONFIG_FILE for each in plan.steps):
        yield UpgradeChange(name=CONFIG_FILE, where=CONFIG_FILE, diff=_diff(CONFIG_FILE, b"", b"", context))
    for step in plan.steps:
        if not isinstance(step.action, WriteFile) or step.action.path in pods:
            continue
        path, former = step.action.path, read(step.action.path) or b""
        if path == KUBELET_CONF:
            restarts = _kubelet_restarts(plan.steps)
            diff = _diff(path, _server(former), _server(step.action.content), context)
            yield UpgradeChange(name=path, where=path, diff=diff, restarts=restarts, why=step.cause)
        elif not step.action.is_secret:
            why = _LATER if path == CONFIG_FILE else step.cause
            yield UpgradeChange(name=path, where=path, diff=_diff(path, former, step.action.content, context), why=why)


def _kubelet_restarts(steps: Sequence[Step]) -> tuple[str, ...]:
    found = (each.action for each in steps if isinstance(each.action, ControlService))
    return (KUBELET,) if any(each.service == KUBELET and each.verb == "restart" for each in found) else ()


def _server(kubeconfig: bytes) -> bytes:
    """Return the one line of a kubeconfig that is no secret and that an upgrade changes."""
    try:
        return f"server: {read_kubeconfig(kubeconfig, KUBELET_CONF).server}\n".encode()
    except GarboardError:
        return b""


def _diff(path: str, before: bytes, after: bytes, context: int) -> TextDiff:
    former, wanted = (each.decode("utf-8", "replace") for each in (before, after))
    return TextDiff.of(former, wanted, (path, f"{path} (upgraded)"), context=context)


def _objects(plan: Plan, find: FindObject, schema: Schema, context: int) -> Iterator[UpgradeChange]:
    for step in plan.steps:
        if not isinstance(step.action, PutObject) or step.action.is_secret or step.phase == RECORD_PHASE:
            continue
        action = step.action
        where = f"{action.kind} {action.namespace + '/' if action.namespace else ''}{action.name}"
        live = find(action)
        before, after = _two_texts(live, action, schema)
        diff = TextDiff.of(before, after, (where, f"{where} (upgraded)"), context=context)
        restarts, why = _rollout(action, before, after) if diff.lines else ((), "")
        yield UpgradeChange(name=where, where=where, diff=diff, restarts=restarts, why=why or step.cause)


def _two_texts(live: Mapping[str, Json] | None, action: PutObject, schema: Schema) -> tuple[str, str]:
    """Return an object as it is and as it will be; what means the same is spelt as it will be."""
    wanted = own_part(_mapping(action.content))
    if live is None:
        return "", _text(wanted)
    found = own_part(live)
    if action.keeps_other_data:
        wanted = {**wanted, "data": {**_mapping(found.get("data")), **_mapping(wanted.get("data"))}}
    shape = schema.type_of(action.api_version, action.kind)
    old, new = leaves_of({**found, **_type_of(action)}, shape), leaves_of({**wanted, **_type_of(action)}, shape)
    changed = [path for path in (*old, *new) if not same_meaning(old.get(path), new.get(path))]
    values = {path: old[path].value if path in old else ABSENT for path in changed}
    return _text(with_fields(wanted, values)), _text(wanted)


def _type_of(action: PutObject) -> dict[str, Json]:
    return {"apiVersion": action.api_version, "kind": action.kind}


def _rollout(action: PutObject, before: str, after: str) -> tuple[tuple[str, ...], str]:
    """Return what starts anew when an object changes, and why; of most objects nothing does."""
    if action.kind in _ROLLED_OUT:
        old, new = (_mapping(_mapping(read_yaml(text, source="")).get("spec")) for text in (before, after))
        if old.get("template") == new.get("template"):
            return (), "its pods stay as they are"
        return (f"{action.kind} {action.name}",), f"its template changes, which replaces {_ROLLED_OUT[action.kind]}"
    return (), _READ_AGAIN.get(action.name, "") if action.kind == "ConfigMap" else ""


def _text(content: Json) -> str:
    return write_yaml(_shortened(content))


def _shortened(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    if isinstance(value, str) and len(value) > _LONGEST and "\n" not in value:
        return f"{value[:16]}… ({len(value)} characters)"
    return value


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
