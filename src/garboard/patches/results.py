"""The result of patches, judged by the rules of Kubernetes and by what the cluster loses, each finding at its patch."""

from collections.abc import Sequence

from garboard.documents import DocumentPath, Json
from garboard.patches.exceptions import accepted_in
from garboard.patches.findings import Finding, Severity
from garboard.patches.json_values import Container, value_at
from garboard.patches.patch import Patch
from garboard.patches.targets import PatchSubject, Target
from garboard.patches.trace import Item, Trace, written_below
from garboard.rules import (
    ComponentPod,
    DocumentField,
    ResultFinding,
    check_component,
    check_flags,
    check_kubelet,
    check_pod,
    check_workload,
    weakened,
    weakened_kubelet,
    weakened_workload,
)
from garboard.schema import Schema


def judge(original: Json, result: Json, target: Target, schema: Schema) -> list[ResultFinding]:
    """Return what is wrong with the document of a target, and what it has lost since it was `original`."""
    if target.kind == "KubeletConfiguration":
        return [*check_kubelet(result, schema.version), *weakened_kubelet(original, result)]
    if target.kind in ("Deployment", "DaemonSet"):
        component = target.component or target.object_name
        found = check_workload(result, target.kind, schema.version)
        template = DocumentField(result).at("spec", "template")
        pod = ComponentPod(template["spec"], component, schema)
        return [*found, *_flags(pod), *weakened_workload(original, result, component, schema)]
    if target.component is None:
        return []
    pod = ComponentPod(DocumentField(result)["spec"], target.component, schema)
    lost = weakened(original, result, target.component, schema)
    found = [*check_pod(result, schema.version), *_flags(pod), *check_component(pod), *lost]
    if any(each.code == "mount-removed" for each in lost):
        before = ComponentPod(DocumentField(original)["spec"], target.component, schema)
        found = _without_consequences(found, result, before)
    return found


def _without_consequences(found: list[ResultFinding], result: Json, before: ComponentPod) -> list[ResultFinding]:
    """Return the findings without the files of kubeadm's own flags, which are lost with their mount."""
    own = before.main["command"].words if before.main is not None else ()
    return [each for each in found if each.code != "unmounted-file" or value_at(result, each.path) not in own]


def _flags(pod: ComponentPod) -> list[ResultFinding]:
    """Return what the component refuses in its flags, at their places in the document."""
    if pod.main is None or pod.program != pod.component:
        return []
    words = [*pod.main["command"].words[1:], *pod.main["args"].words]
    places = [each.path for name in ("command", "args") for each in pod.main[name].elements()][1:]
    return [_placed(each, places) for each in check_flags(pod.component, words, pod.schema.version)]


def _placed(finding: ResultFinding, places: Sequence[DocumentPath]) -> ResultFinding:
    """Return a finding about a word of the command line at its place in the Pod."""
    number = finding.path[0] if finding.path else None
    path = places[number] if isinstance(number, int) else places[0][:-1] if places else ()
    return ResultFinding(finding.code, path, finding.message, finding.hint)


def result_findings(
    original: Json, states: Sequence[Json], patches: Sequence[Patch], subject: PatchSubject, trace: Trace
) -> list[Finding]:
    """Return the findings about the last of `states`, the document after each patch, that the patches brought about.

    Each is at the patch after which it was there to stay: its last change for the worse.
    """
    target, schema = subject.target, subject.schema
    if target is None or schema is None or not patches:
        return []
    found = judge(original, states[-1], target, schema)
    if not found:
        return []
    before = {_key(each) for each in judge(original, original, target, schema)}
    steps = [before, *({_key(each) for each in judge(original, state, target, schema)} for state in states)]
    findings = []
    for each in found:
        if _key(each) not in before and not (each.depends_on_node and subject.is_assumed):
            number = max(n for n in range(len(states)) if _key(each) not in steps[n])
            findings.append(_finding(each, patches[number], _place(each.path, states[-1], number, trace)))
    return findings


def _key(finding: ResultFinding) -> tuple[str, str]:
    """Return what makes two findings one, wherever a patch moves the element that they are about."""
    return finding.code, finding.message


def _finding(found: ResultFinding, patch: Patch, at: DocumentPath) -> Finding:
    reason = accepted_in(patch, found.code) if found.rule.is_acceptable else None
    message, hint, severity = found.message, found.hint, Severity.ERROR
    if reason is not None:
        message, hint, severity = f"{message} (accepted: {reason})", None, Severity.NOTE
    elif found.rule.is_acceptable:
        wanted = f"if it is meant, write `# garboard: accept {found.code} because REASON` into the patch"
        hint = f"{hint}; {wanted}" if hint else wanted
    position = patch.source.position(at)
    return Finding(patch.source.name, position, found.code, message, hint, severity)


def _place(path: DocumentPath, document: Json, patch: int, trace: Trace) -> DocumentPath:
    """Return where in a patch a field was written: the deepest part of its path that the patch wrote."""
    place: DocumentPath = ()
    around: list[Container] = []
    for step in path:
        if not isinstance(document, dict | list):
            break
        around.append(document)
        creation = trace.creation(document)
        if creation is not None and creation.patch == patch:
            place = (*creation.at, step)
        member = step if isinstance(step, str) else Item.of(_at(document, step))
        for write in trace.writes(document, member):
            if write.patch == patch:
                place = write.at
        document = _at(document, step)
    if isinstance(document, dict | list):
        creation = trace.creation(document)
        around.append(document)
        if creation is not None and creation.patch == patch:
            place = creation.at
    return place or _place_inside(around, patch, trace)


def _place_inside(around: Sequence[Container], patch: int, trace: Trace) -> DocumentPath:
    """Return the place of what a patch wrote or removed nearest to a field that it did not write itself."""
    for holder in reversed(around):
        parts = [part.at for part in written_below(trace, holder, (), patch)]
        if parts and (holder is not around[0] or len(parts) == 1):
            return parts[0]
    return ()


def _at(document: Json, step: str | int) -> Json:
    if isinstance(document, dict):
        return document.get(str(step))
    return document[step] if isinstance(document, list) and isinstance(step, int) and step < len(document) else None
