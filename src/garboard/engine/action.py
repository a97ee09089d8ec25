"""Everything that can be done to a machine or a cluster, as a small closed set of values."""

from dataclasses import field
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias

from garboard.documents import Json
from garboard.values import dataclass

ServiceVerb: TypeAlias = Literal["start", "stop", "restart"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A placeholder in a file: what an earlier step found out, such as the members of etcd, stands there in the end."""

    placeholder: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeFolder:
    """A folder with its parents; those that are missing get `mode`."""

    path: str
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """A file as a whole. `mode` is for a new file, `folder_mode` for its folder; what exists keeps its own."""

    path: str
    content: bytes = field(repr=False)
    mode: int
    folder_mode: int = 0o755
    is_secret: bool = False
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """A file or a link that shall no longer be there; one that has gone already is no failure."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFolder:
    """A folder that shall no longer be there, if nothing is left in it."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyFolder:
    """All that is below a folder goes, and the folder itself stays; what is mounted there is not descended into.

    What is in the folder by a name of `keeps` stays as well.
    """

    path: str
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmount:
    """What is mounted below a path is unmounted, the last first; what is mounted at the path itself stays.

    `flags` are those of umount(2) by name, such as MNT_DETACH.
    """

    path: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOwner:
    """Who a file belongs to, by number; without `mode` the path is a folder, and all below it changes hands."""

    path: str
    uid: int
    gid: int
    mode: int | None = None


class IssueRequest(Protocol):
    """What shall be issued, for the issuer to understand; the engine only prints it, so it holds no secret."""

    def describe(self) -> dict[str, Json]:
        """Say what is asked for."""
        ...


@dataclass(frozen=True, slots=True)
class IssuedFile:
    """A file whose content is only known once it has been issued."""

    path: str
    mode: int
    holds: str  # what it will hold, in words: the placeholder in a printed plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Keys, certificates and what is made of them: the specification and the files to be, never the bytes."""

    name: str
    files: tuple[IssuedFile, ...]
    request: IssueRequest
    folder_mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Filling:
    """A placeholder in an object: the base64 of a file that an earlier step makes stands there in the end.

    With a `key` the file is sealed with it first; one that is not needed and not there leaves nothing in its place.
    """

    placeholder: str
    path: str
    key: bytes = field(default=b"", repr=False)
    is_needed: bool = True


@dataclass(frozen=True, slots=True)
class Ending:
    """A placeholder in an object: the base64 of the moment that long after the object is put, as RFC 3339 writes it."""

    placeholder: str
    after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PutObject:
    """An object of the API server as it shall be; `namespace` is empty for one of the whole cluster.

    One that exists is replaced, or with `keeps_other_data` only gets the keys of `data` that are given here. An owner
    that it names without a `uid` is there by then, and gives its own.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    content: Json = field(repr=False)
    is_secret: bool = False
    fillings: tuple[Filling, ...] = ()
    endings: tuple[Ending, ...] = ()
    keeps_other_data: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchObject:
    """A strategic merge patch of an object that is there by then.

    `united` are paths of lists that the API server would replace: what is in them and not in the patch is kept.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    content: Json = field(repr=False)
    united: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """An object that shall no longer be there; one that has gone already is no failure.

    If it is not `is_needed`, that we have no right to delete it is told and the plan goes on.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    is_needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlService:
    """A service of the machine. If it is not `is_needed`, a failure is told and the plan goes on.

    `fills` are the folders that a service which starts will write to, `writes` the files that it makes elsewhere, and
    `registers` is the Node that it will make of this machine, if there is none yet: whoever undoes the start has to
    take all of that away. Where the file `unless` is there, nothing needs to be done.
    """

    service: str
    verb: ServiceVerb
    is_needed: bool = True
    fills: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    registers: str = ""
    unless: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullImage:
    """An image that the container runtime shall have; `is_always` pulls it even if it has it.

    Those of `beside` are pulled at the same time. If it is not `is_needed`, a failure is told and the plan goes on.
    """

    image: str
    is_always: bool = False
    beside: tuple[str, ...] = ()
    is_needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSandboxes:
    """The pod sandboxes of this node, stopped and removed with their containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMember:
    """A learner of etcd. The members there are then, as `--initial-cluster` wants them, is its outcome `outcome`."""

    name: str
    peer_url: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteMember:
    """A learner that shall vote, once it has caught up."""

    peer_url: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember:
    """A member that etcd shall forget, known by its peer URL; one that has gone already is no failure."""

    peer_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTurn:
    """A Lease that only one node holds at a time: the others wait, and are told for whom.

    `peer_url` is that of the member that the holder adds: it is kept with the Lease, and a learner of it is removed by
    whoever has the turn after a holder that died.
    """

    name: str
    namespace: str
    holder: str
    timeout_s: float
    peer_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTurn:
    """The Lease is for the next one."""

    name: str
    namespace: str
    holder: str


class Gate(Protocol):
    """A condition to wait for, for the one who looks to understand; it holds no secret."""

    @property
    def name(self) -> str:
        """What is waited for, in words: it ends the sentence "wait for …"."""
        ...

    @property
    def timeout_s(self) -> float: ...

    def describe(self) -> dict[str, Json]:
        """Say what will be looked at."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitGate:
    """Wait until a gate is open; if it does not open in time, the failure carries the evidence."""

    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Something for the one who runs the plan to read and keep, such as the next command to type.

    It may hold secrets, so a plan shows only what it is about. Each of `pins` stands for the fingerprints of the
    certificates in a file, by which others know them.
    """

    about: str
    text: str = field(repr=False)
    pins: tuple[Filling, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Something that has its place in the order but that nobody here can do; a plan with it is never begun."""

    what: str


FileAction: TypeAlias = MakeFolder | WriteFile | RemoveFile | RemoveFolder | EmptyFolder | Unmount | ChangeOwner
ObjectAction: TypeAlias = PutObject | PatchObject | DeleteObject
MemberAction: TypeAlias = AddMember | PromoteMember | RemoveMember
RuntimeAction: TypeAlias = PullImage | RemoveSandboxes
TurnAction: TypeAlias = TakeTurn | EndTurn
Action: TypeAlias = (
    FileAction
    | Issue
    | ObjectAction
    | ControlService
    | RuntimeAction
    | MemberAction
    | TurnAction
    | AwaitGate
    | Tell
    | Unsupported
)
