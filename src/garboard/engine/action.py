"""Everything that can be done to a machine or a cluster, as a small closed set of values."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from garboard.documents import Json

ServiceVerb: TypeAlias = Literal["start", "stop", "restart"]


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
    """A placeholder in an object: the base64 of a file that an earlier step makes stands there in the end."""

    placeholder: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutObject:
    """An object of the API server as it shall be; `namespace` is empty for one of the whole cluster."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    content: Json = field(repr=False)
    is_secret: bool = False
    fillings: tuple[Filling, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlService:
    """A service of the machine. If it is not `is_needed`, a failure is told and the plan goes on."""

    service: str
    verb: ServiceVerb
    is_needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Something that has its place in the order but that nobody here can do; a plan with it is never begun."""

    what: str


Action: TypeAlias = MakeFolder | WriteFile | ChangeOwner | Issue | PutObject | ControlService | Unsupported
