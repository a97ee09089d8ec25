"""Who carries actions out: a Protocol for each kind of them, and all of them together."""

from collections.abc import Mapping
from typing import Protocol

from garboard.engine.action import (
    Action,
    AddMember,
    AwaitGate,
    ControlService,
    DeleteObject,
    EndTurn,
    Gate,
    Issue,
    IssueRequest,
    PatchObject,
    PromoteMember,
    PullImage,
    PutObject,
    RemoveMember,
    RemoveSandboxes,
    TakeTurn,
    Tell,
    Unsupported,
)
from garboard.values import dataclass


class FileWriter(Protocol):
    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        ...

    def make_folder(self, path: str, *, mode: int) -> None:
        """Make a folder; `mode` is for all that have to be made on the way."""
        ...

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int) -> None:
        """Replace a file in one move; one that exists keeps its mode."""
        ...

    def change_owner(self, path: str, *, uid: int, gid: int, mode: int | None) -> None:
        """Give a file away with that mode; without one, a folder and all below it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a link; one that is not there is no failure."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder if nothing is in it."""
        ...

    def empty_folder(self, path: str, *, keeps: tuple[str, ...]) -> None:
        """Remove everything below a folder but what is mounted there, and what is in it by those names."""
        ...

    def unmount(self, path: str, *, flags: tuple[str, ...] = ()) -> None:
        """Unmount what is mounted below a path."""
        ...


class Issuer(Protocol):
    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        """Make what is asked for; return the content of every file that was announced, by path."""
        ...


class ServiceControl(Protocol):
    def is_active(self, service: str) -> bool: ...

    def start(self, service: str) -> None: ...

    def stop(self, service: str) -> None: ...

    def restart(self, service: str) -> None: ...


class ObjectWriter(Protocol):
    def put(self, action: PutObject) -> None:
        """Create the object, or bring the existing one to what is asked for."""
        ...

    def patch(self, action: PatchObject) -> None:
        """Apply a strategic merge patch to an object that is there."""
        ...

    def delete(self, action: DeleteObject) -> None:
        """Delete an object; one that is not there is no failure."""
        ...


class Members(Protocol):
    """The members of etcd."""

    def add(self, action: AddMember) -> str:
        """Add a learner, or find the one that was added; return what `--initial-cluster` has to say."""
        ...

    def promote(self, action: PromoteMember) -> None: ...

    def remove(self, action: RemoveMember) -> None:
        """Remove a member and make sure that it has gone."""
        ...


class Runtime(Protocol):
    """The container runtime."""

    def pull(self, action: PullImage) -> None: ...

    def remove_sandboxes(self) -> None: ...


class Turns(Protocol):
    def take(self, action: TakeTurn) -> None:
        """Wait until the Lease is ours, and keep it alive until `end`."""
        ...

    def end(self, action: EndTurn) -> None: ...


class Watcher(Protocol):
    def wait(self, gate: Gate) -> None:
        """Return once the gate is open; raise with the evidence if it is not in time."""
        ...


class Narrator(Protocol):
    def tell(self, action: Tell) -> None:
        """Show the text to the one who runs the plan, fingerprints in place of its pins."""
        ...


class Sealer(Protocol):
    def seal(self, data: bytes, key: bytes) -> bytes:
        """Encrypt a file so that only who has the key can read it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The interpreters that there are; a plan that needs one of the others is refused before it begins."""

    files: FileWriter
    issuer: Issuer | None = None
    services: ServiceControl | None = None
    objects: ObjectWriter | None = None
    members: Members | None = None
    runtime: Runtime | None = None
    turns: Turns | None = None
    watcher: Watcher | None = None
    narrator: Narrator | None = None
    sealer: Sealer | None = None

    def missing(self, action: Action) -> str | None:
        """Say what nobody here can do, if the action needs that."""
        needs: tuple[object, str] | None = None
        match action:
            case Unsupported():
                return action.what
            case Issue():
                needs = self.issuer, "issuing certificates"
            case ControlService():
                needs = self.services, "controlling services"
            case PutObject() if any(each.key for each in action.fillings) and self.sealer is None:
                return "sealing files"
            case PutObject() | PatchObject() | DeleteObject():
                needs = self.objects, "putting objects into the cluster"
            case AddMember() | PromoteMember() | RemoveMember():
                needs = self.members, "changing the members of etcd"
            case PullImage() | RemoveSandboxes():
                needs = self.runtime, "talking to the container runtime"
            case TakeTurn() | EndTurn():
                needs = self.turns, "waiting for a turn"
            case AwaitGate():
                needs = self.watcher, "waiting for a gate"
            case Tell():
                needs = self.narrator, "showing what to do next"
            case _:
                pass
        return needs[1] if needs and needs[0] is None else None
