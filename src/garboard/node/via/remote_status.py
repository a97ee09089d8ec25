"""What `garboard status --all -o json` and `garboard version -o json` of another node say. Pure."""

import json
from collections.abc import Mapping

from garboard.errors import BadDocument
from garboard.values import Json, dataclass


class BadAnswer(BadDocument):
    """What a node answered is not what garboard prints."""

    default_class = "bad-answer"


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run of another node; `state` is one of a journal, such as open, unconfirmed or committed, or damaged."""

    name: str
    command: str
    state: str
    steps: int = 0
    finished: int = 0
    failure: str = ""

    def __str__(self) -> str:
        failure = f": {self.failure}" if self.failure else ""
        return f"run {self.name} ({self.command}) is {self.state}, {self.finished} of {self.steps} steps done{failure}"


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """The runs of another node by name, and the command that is at work there, if any."""

    runs: Mapping[str, RemoteRun]
    locked_by: str = ""

    def since(self, before: "RemoteStatus") -> tuple[RemoteRun, ...]:
        """Return the runs that have begun, gone on or ended since an earlier answer."""
        return tuple(each for name, each in self.runs.items() if before.runs.get(name) != each)


def read_status(answer: str) -> RemoteStatus:
    document = _mapping(answer, "runs", "lockedBy")
    runs = document["runs"]
    if not isinstance(runs, list):
        raise BadAnswer("its runs are no list", hint=_HINT)
    found = [_run(each) for each in runs]
    return RemoteStatus({each.name: each for each in found}, str(document["lockedBy"]))


def status_document(status: RemoteStatus) -> Json:
    """Return a status as it is read by `read_status`."""
    runs: list[Json] = [
        {
            "run": each.name,
            "command": each.command,
            "state": each.state,
            "steps": each.steps,
            "finished": each.finished,
            "failure": each.failure,
        }
        for each in status.runs.values()
    ]
    return {"runs": runs, "lockedBy": status.locked_by}


def read_version(answer: str) -> str:
    return str(_mapping(answer, "garboard")["garboard"])


def _run(item: Json) -> RemoteRun:
    if not isinstance(item, dict) or not isinstance(item.get("run"), str) or not isinstance(item.get("state"), str):
        raise BadAnswer("a run has no name or no state", hint=_HINT)
    steps, finished = item.get("steps"), item.get("finished")
    return RemoteRun(
        name=str(item["run"]),
        command=str(item.get("command", "")),
        state=str(item["state"]),
        steps=steps if isinstance(steps, int) else 0,
        finished=finished if isinstance(finished, int) else 0,
        failure=str(item.get("failure") or ""),
    )


_HINT = "a login shell that prints something of its own is in the way, or the command runs another program"


def _mapping(answer: str, *members: str) -> dict[str, Json]:
    """Return the JSON object that is all of an answer."""
    try:
        document = json.loads(answer)
    except ValueError:
        raise BadAnswer(f"it answers {answer[:200]!r} instead of JSON", hint=_HINT) from None
    if not isinstance(document, dict) or any(each not in document for each in members):
        raise BadAnswer(f"its answer has no {' or no '.join(members)}", hint=_HINT)
    return document
