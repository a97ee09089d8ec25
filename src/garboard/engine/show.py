"""Plans for readers: as text and as JSON. Secrets are shown by their digest, keys are not in a plan at all."""

import hashlib
import json

from garboard.documents import Json, write_yaml
from garboard.engine.action import (
    Action,
    ChangeOwner,
    ControlService,
    Issue,
    MakeFolder,
    PutObject,
    Unsupported,
    WriteFile,
)
from garboard.engine.plan import Plan, Step

_INDENT = "    "


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
    match action:
        case MakeFolder():
            return {"type": "make-folder", "path": action.path, "mode": _mode(action.mode)}
        case WriteFile():
            content = _content(action.content, is_secret=action.is_secret)
            return {"type": "write-file", "path": action.path, "mode": _mode(action.mode), **content}
        case ChangeOwner():
            mode: dict[str, Json] = {} if action.mode is None else {"mode": _mode(action.mode)}
            return {"type": "change-owner", "path": action.path, "uid": action.uid, "gid": action.gid, **mode}
        case Issue():
            files: list[Json] = [
                {"path": file.path, "mode": _mode(file.mode), "placeholder": file.holds} for file in action.files
            ]
            return {"type": "issue", "name": action.name, "files": files, "request": action.request.describe()}
        case PutObject():
            return {
                "type": "put-object",
                "apiVersion": action.api_version,
                "kind": action.kind,
                "namespace": action.namespace,
                "name": action.name,
                **_object_content(action),
            }
        case ControlService():
            return {"type": f"{action.verb}-service", "service": action.service}
        case Unsupported():
            return {"type": "unsupported", "what": action.what}


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
    match action:
        case MakeFolder():
            return f"make folder {action.path} ({_mode(action.mode)})"
        case WriteFile():
            return f"write {action.path} ({_mode(action.mode)})"
        case ChangeOwner():
            mode = "" if action.mode is None else f" ({_mode(action.mode)})"
            return f"give {action.path} to {action.uid}:{action.gid}{mode}"
        case Issue():
            return f"issue {action.name}"
        case PutObject():
            place = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return f"put {action.kind} {place}"
        case ControlService():
            return f"{action.verb} service {action.service}"
        case Unsupported():
            return f"not built yet: {action.what}"


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
