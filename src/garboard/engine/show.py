"""Plans for readers: as text and as JSON. Secrets are shown by their digest, keys are not in a plan at all."""

import hashlib
import json

from garboard.documents import Json, write_yaml
from garboard.engine.action import (
    Action,
    AddMember,
    AwaitGate,
    ChangeOwner,
    ControlService,
    DeleteObject,
    EmptyFolder,
    EndTurn,
    FileAction,
    Issue,
    MakeFolder,
    MemberAction,
    ObjectAction,
    PatchObject,
    PromoteMember,
    PullImage,
    PutObject,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    TakeTurn,
    Tell,
    Unmount,
    Unsupported,
    WriteFile,
)
from garboard.engine.plan import Plan, Step

_INDENT = "    "
_KINDS: dict[type[Action], str] = {
    MakeFolder: "make-folder",
    WriteFile: "write-file",
    RemoveFile: "remove-file",
    RemoveFolder: "remove-folder",
    EmptyFolder: "empty-folder",
    Unmount: "unmount",
    ChangeOwner: "change-owner",
    Issue: "issue",
    PutObject: "put-object",
    PatchObject: "patch-object",
    DeleteObject: "delete-object",
    PullImage: "pull-image",
    RemoveSandboxes: "remove-sandboxes",
    AddMember: "add-member",
    PromoteMember: "promote-member",
    RemoveMember: "remove-member",
    TakeTurn: "take-turn",
    EndTurn: "end-turn",
    AwaitGate: "wait",
    Tell: "tell",
    Unsupported: "unsupported",
}


def plan_as_json(plan: Plan) -> Json:
    """Return the plan as a document."""
    return {
        "steps": [
            {"phase": step.phase, "node": step.node, "cause": step.cause, "action": _action_document(step.action)}
            for step in plan.steps
        ],
        "notes": [{"phase": note.phase, "text": note.text, "warning": note.is_warning} for note in plan.notes],
    }


def _action_document(action: Action) -> dict[str, Json]:
    return {"type": _kind(action), **_members(action)}


def _kind(action: Action) -> str:
    """Return the word for an action; of a service, the verb is part of it."""
    return f"{action.verb}-service" if isinstance(action, ControlService) else _KINDS[type(action)]


def _members(action: Action) -> dict[str, Json]:
    """Return what an action is about, as a document."""
    match action:
        case MakeFolder() | WriteFile() | RemoveFile() | RemoveFolder() | EmptyFolder() | Unmount() | ChangeOwner():
            return {"path": action.path, **_of_file(action)}
        case PutObject() | PatchObject() | DeleteObject():
            place: dict[str, Json] = {"apiVersion": action.api_version, "kind": action.kind}
            return {**place, "namespace": action.namespace, "name": action.name, **_of_object(action)}
        case AddMember() | PromoteMember() | RemoveMember():
            return _of_member(action)
        case TakeTurn() | EndTurn():
            return {"namespace": action.namespace, "name": action.name, "holder": action.holder}
        case Issue():
            return _of_issue(action)
        case ControlService():
            return {"service": action.service, **_traces(action)}
        case PullImage():
            beside: dict[str, Json] = {"beside": [*action.beside]} if action.beside else {}
            return {"image": action.image, **beside, "always": action.is_always}
        case AwaitGate():
            gate = action.gate
            return {"for": gate.name, "timeoutSeconds": gate.timeout_s, "looksAt": gate.describe()}
        case RemoveSandboxes():
            return {}
        case Tell():
            return {"about": action.about}
        case Unsupported():
            return {"what": action.what}


def _of_file(action: FileAction) -> dict[str, Json]:
    match action:
        case MakeFolder():
            return {"mode": _mode(action.mode)}
        case WriteFile():
            return {"mode": _mode(action.mode), **_content(action.content, is_secret=action.is_secret)}
        case ChangeOwner():
            mode: dict[str, Json] = {} if action.mode is None else {"mode": _mode(action.mode)}
            return {"uid": action.uid, "gid": action.gid, **mode}
        case Unmount() if action.flags:
            return {"flags": [*action.flags]}
        case EmptyFolder() if action.keeps:
            return {"keeps": [*action.keeps]}
        case _:
            return {}


def _of_object(action: ObjectAction) -> dict[str, Json]:
    match action:
        case PutObject():
            return _object_content(action)
        case PatchObject():
            united: list[Json] = ["/".join(path) for path in action.united]
            return {"patch": action.content, **({"united": united} if united else {})}
        case DeleteObject():
            return {}


def _of_member(action: MemberAction) -> dict[str, Json]:
    if isinstance(action, AddMember):
        return {"name": action.name, "peerURL": action.peer_url, "placeholder": action.outcome}
    return {"peerURL": action.peer_url}


def _of_issue(action: Issue) -> dict[str, Json]:
    files: list[Json] = [
        {"path": file.path, "mode": _mode(file.mode), "placeholder": file.holds} for file in action.files
    ]
    return {"name": action.name, "files": files, "request": action.request.describe()}


def _traces(action: ControlService) -> dict[str, Json]:
    fills: dict[str, Json] = {"fills": [*action.fills]} if action.fills else {}
    writes: dict[str, Json] = {"writes": [*action.writes]} if action.writes else {}
    registers: dict[str, Json] = {"registers": action.registers} if action.registers else {}
    unless: dict[str, Json] = {"unless": action.unless} if action.unless else {}
    return {**fills, **writes, **registers, **unless}


def _content(data: bytes, *, is_secret: bool) -> dict[str, Json]:
    if not is_secret:
        try:
            return {"content": data.decode()}
        except UnicodeDecodeError:
            pass  # no text: a digest stands for it as well
    return {"sha256": hashlib.sha256(data).hexdigest()}


def _object_content(action: PutObject) -> dict[str, Json]:
    if not action.is_secret:
        return {"content": action.content}
    return {"sha256": hashlib.sha256(json.dumps(action.content, sort_keys=True).encode()).hexdigest()}


def step_title(step: Step) -> str:
    """Say in one line what a step does."""
    action = step.action
    verb = _kind(action).partition("-")[0]
    match action:
        case PutObject() | PatchObject() | DeleteObject():
            place = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return f"{verb} {action.kind} {place}"
        case PromoteMember() | RemoveMember():
            return f"{verb} etcd member {action.peer_url}"
        case AddMember():
            return f"add etcd member {action.name} as a learner ({action.peer_url})"
        case TakeTurn():
            return f"take a turn with Lease {action.namespace}/{action.name}"
        case EndTurn():
            return f"pass Lease {action.namespace}/{action.name} on"
        case AwaitGate():
            return f"wait for {action.gate.name} (at most {action.gate.timeout_s:.0f} s)"
        case Issue():
            return f"issue {action.name}"
        case ControlService():
            return f"{verb} service {action.service}" + (f", unless {action.unless} is there" if action.unless else "")
        case PullImage():
            return f"pull {', '.join((action.image, *action.beside))}"
        case RemoveSandboxes():
            return "remove pod sandboxes"
        case Tell():
            return f"show {action.about}"
        case Unsupported():
            return f"not built yet: {action.what}"
        case _:
            return _file_title(action, verb)


def _file_title(action: FileAction, verb: str) -> str:
    match action:
        case MakeFolder():
            return f"make folder {action.path} ({_mode(action.mode)})"
        case WriteFile():
            return f"write {action.path} ({_mode(action.mode)})"
        case ChangeOwner():
            mode = "" if action.mode is None else f" ({_mode(action.mode)})"
            return f"give {action.path} to {action.uid}:{action.gid}{mode}"
        case Unmount():
            return f"unmount what is below {action.path}"
        case EmptyFolder() if action.keeps:
            return f"empty {action.path} but for {', '.join(action.keeps)}"
        case _:
            return f"{verb} {action.path}"


def plan_as_text(plan: Plan) -> str:
    """Return the plan for people: a line for each step with its cause, and below it what will be written."""
    lines = [f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}" for note in plan.notes]
    for step in plan.steps:
        because = f"  # {step.cause}" if step.cause else ""
        lines.append(f"[{step.phase}] {step_title(step)}{because}")
        lines += [_INDENT + line for line in _details(step.action)]
    lines.append(_summary(plan))
    return "\n".join(lines) + "\n"


def _details(action: Action) -> list[str]:
    match action:
        case WriteFile():
            return _content_lines(_content(action.content, is_secret=action.is_secret))
        case PutObject():
            return _content_lines(_object_content(action))
        case Issue():
            request = write_yaml(action.request.describe()).splitlines()
            return [*request, *(f"-> {file.path} ({_mode(file.mode)}): {file.holds}" for file in action.files)]
        case PatchObject():
            return write_yaml(action.content).splitlines()
        case AwaitGate():
            return write_yaml(action.gate.describe()).splitlines()
        case _:
            return []


def _content_lines(content: dict[str, Json]) -> list[str]:
    if "sha256" in content:
        return [f"(secret, sha256 {content['sha256']})"]
    text = content["content"]
    return (text if isinstance(text, str) else write_yaml(text)).splitlines()


def _summary(plan: Plan) -> str:
    if not plan.steps:
        return "plan: nothing to do"
    nodes = sorted({step.node for step in plan.steps if step.node})
    where = f" on {', '.join(nodes)}" if nodes else ""
    return f"plan: {len(plan.steps)} {'step' if len(plan.steps) == 1 else 'steps'}{where}"


def _mode(mode: int) -> str:
    return f"{mode:04o}"
