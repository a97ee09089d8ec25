"""What a host says of itself, and what follows from it: may it be claimed, what is next there, may it be reset. Pure.

A host belongs to the cluster whose infraID it shows. That alone is no proof that it still does: somebody may have made
something else of it by hand. So the authority of what is there has to be that of the cluster as well.
"""

from typing import TypeAlias

from garboard.documents import Json
from garboard.errors import BadDocument, NotReady
from garboard.values import dataclass

_ENDED_WELL = ("committed", "unconfirmed")
_OPEN = ("open",)


class HostRefused(NotReady):
    """A host belongs to somebody else, or is not bare; nothing has been changed on it."""

    default_class = "host-refused"


@dataclass(frozen=True, slots=True)
class HostClaim:
    """Whose a host is; `runs` are those that it had before, `authority` is the pin of the cluster's CA."""

    infra_id: str
    host: str
    authority: str
    runs: tuple[str, ...] = ()

    def document(self) -> dict[str, Json]:
        return {"infraID": self.infra_id, "host": self.host, "authority": self.authority, "runs": list(self.runs)}


@dataclass(frozen=True, slots=True)
class HostRun:
    """A run of garboard on a host that began after the host was claimed."""

    name: str
    command: str
    state: str
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """What a host says: its claim, what is below /etc/kubernetes, whose authorities are there, and its runs since."""

    claim: HostClaim | None = None
    files: tuple[str, ...] = ()  # the first few
    authorities: tuple[str, ...] = ()
    runs: tuple[HostRun, ...] = ()
    locked_by: str = ""

    def document(self) -> dict[str, Json]:
        runs: list[Json] = [
            {"run": each.name, "command": each.command, "state": each.state, "failure": each.failure}
            for each in self.runs
        ]
        return {
            "claim": self.claim.document() if self.claim else None,
            "files": list(self.files),
            "authorities": list(self.authorities),
            "runs": runs,
            "lockedBy": self.locked_by,
        }


def read_claim(document: Json) -> HostClaim:
    found = document if isinstance(document, dict) else {}
    infra_id, host, authority = (found.get(each) for each in ("infraID", "host", "authority"))
    if not isinstance(infra_id, str) or not isinstance(host, str) or not isinstance(authority, str) or not infra_id:
        raise BadDocument("a claim has infraID, host and authority", error_class="bad-answer")
    return HostClaim(infra_id, host, authority, _texts(found.get("runs")))


def read_view(document: Json) -> HostView:
    """Read the answer of a host; one that is nothing of the kind is refused."""
    if not isinstance(document, dict) or not {"claim", "files", "authorities", "runs"} <= document.keys():
        raise BadDocument("it does not answer what a host says of itself", error_class="bad-answer")
    runs = document["runs"]
    return HostView(
        claim=None if document["claim"] is None else read_claim(document["claim"]),
        files=_texts(document["files"]),
        authorities=_texts(document["authorities"]),
        runs=tuple(map(_run, runs if isinstance(runs, list) else [])),
        locked_by=str(document.get("lockedBy") or ""),
    )


def _run(document: Json) -> HostRun:
    found = document if isinstance(document, dict) else {}
    return HostRun(*(str(found.get(each) or "") for each in ("run", "command", "state", "failure")))


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def why_not_claimed(view: HostView, wanted: HostClaim) -> str:
    """Say why a host cannot be claimed; empty if it can, or if it has been by this very cluster."""
    claim = view.claim
    if claim is None:
        shown = ", ".join(view.files[:3])
        return f"there is something in /etc/kubernetes ({shown}), and no infraID beside it" if view.files else ""
    if claim.infra_id != wanted.infra_id:
        return f"it carries the infraID {claim.infra_id}"
    if claim.host != wanted.host:
        return f"it is {claim.host} of this very cluster: two hosts of the install config lead to one machine"
    return reuse_of(view, wanted)


def reuse_of(view: HostView, wanted: HostClaim) -> str:
    """Say what shows that a host has become part of another cluster since it was claimed; empty if nothing does."""
    if any(wanted.authority not in each.split(",") for each in view.authorities):
        return "what is in /etc/kubernetes belongs to another cluster: its authority is not that of the infraID"
    return ""


@dataclass(frozen=True, slots=True)
class BeginCommand:
    """Nothing has been done there: give the command."""


@dataclass(frozen=True, slots=True)
class ResumeRun:
    """The command was cut short: resume its run."""

    run: str


@dataclass(frozen=True, slots=True)
class CommandDone:
    """The command has been carried out."""


NextCommand: TypeAlias = BeginCommand | ResumeRun | CommandDone


def next_command(view: HostView, command: str, host: str) -> NextCommand:
    """Decide what is next on a claimed host that is to carry out `init` or `join`."""
    for each in view.runs:
        if each.state in _OPEN and each.command == command:
            return ResumeRun(each.name)
        if each.state in _OPEN or each.state == "damaged":
            raise HostRefused(
                f"{host}: run {each.name} ({each.command}) is {each.state}: {each.failure or 'nobody has ended it'}",
                hint="end it there with garboard resume or undo, or take the cluster back: garboard fleet deprovision",
            )
    ended = [each for each in view.runs if each.state in _ENDED_WELL and each.command in (command, "reset")]
    return CommandDone() if ended and ended[-1].command == command else BeginCommand()
