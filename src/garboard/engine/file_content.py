"""What a file is written with: outcomes of earlier steps filled in, what of it is shown, and what a file may hold."""

import hashlib
import re
from collections.abc import Mapping, Sequence

from garboard.documents import write_yaml
from garboard.engine.action import WriteFile
from garboard.engine.trait import Document, ProbeInputs, mode_text


def content_with(action: WriteFile, outcomes: Mapping[str, str]) -> bytes:
    """Return the content of a file with the outcomes of earlier steps in place of their placeholders."""
    content = action.content
    for each in action.outcomes:
        content = content.replace(each.placeholder.encode(), outcomes[each.name].encode())
    return content


def is_written(action: WriteFile, path: str, data: bytes, _facts: Sequence[Mapping[str, str]]) -> bool:
    if path != action.path:
        return False
    if action.unless is not None and data == action.unless.content:
        return True
    # An outcome may be another one by now: that of a member of etcd that was added again.
    placeholders = (re.escape(each.placeholder.encode()) for each in action.outcomes)
    parts = re.split(b"|".join(placeholders), action.content) if action.outcomes else [action.content]
    return re.fullmatch(b".*".join(map(re.escape, parts)), data, re.DOTALL) is not None


def _content(data: bytes, *, is_secret: bool) -> Document:
    if not is_secret:
        try:
            return {"content": data.decode()}
        except UnicodeDecodeError:
            pass  # no text: a digest stands for it as well
    return {"sha256": hashlib.sha256(data).hexdigest()}


def content_lines(content: Document) -> list[str]:
    if "sha256" in content:
        return [f"(secret, sha256 {content['sha256']})"]
    text = content["content"]
    return (text if isinstance(text, str) else write_yaml(text)).splitlines()


def is_file_there(action: WriteFile, inputs: ProbeInputs) -> bool:
    either = {content_with(action, inputs.outcomes), *([action.unless.content] if action.unless else [])}
    return inputs.observers.files.read(action.path) in either


def write_title(action: WriteFile) -> str:
    unless = f", or leave what is newer once there is {action.unless.gate.name}" if action.unless else ""
    return f"write {action.path} ({mode_text(action.mode)}){unless}"


def file_content(action: WriteFile) -> Document:
    return _content(action.content, is_secret=action.is_secret)
