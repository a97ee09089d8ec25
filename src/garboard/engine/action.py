"""Everything that can be done to a machine or a cluster, as a small closed set of values.

What the engine knows about each kind (title, what it waits for or loses, its pre-image, its probe) is its row in
`traits`; how it is carried out is its interpreter in `node`.
"""

from dataclasses import field
from typing import Literal, Protocol, Self, TypeAlias

from garboard.documents import Json
from garboard.engine.gate import Gate
from garboard.engine.placeholder import ExpiryPlaceholder, FilePlaceholder, OutcomePlaceholder
from garboard.values import dataclass

# Outcomes of AddMember and AcquireLease.
MEMBER_ID, LEASE_TOKEN = "member-id", "lease-token"
ServiceVerb: TypeAlias = Literal["start", "stop", "restart"]
TimerVerb: TypeAlias = Literal["enable", "disable", "forget"]
UnitFileVerb: TypeAlias = Literal["enable", "disable", "forget"]
LinkVerb: TypeAlias = Literal["add", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeFolder:
    """Make a folder and its missing parents, all with `mode`."""

    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class NewerContent:
    """What a file holds where there is no way back any more: the gate is open then, and it is looked at once."""

    gate: Gate
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """Write a whole file. `mode` is for a new file, `folder_mode` for a new folder; existing ones keep their modes.

    On the way back of a unit, `unless` has what is written instead if by then the former content would not do.
    """

    path: str
    content: bytes = field(repr=False)
    mode: int
    folder_mode: int = 0o755
    is_secret: bool = False
    outcomes: tuple[OutcomePlaceholder, ...] = ()
    unless: NewerContent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """Remove a file or a link; it is no failure if there is none."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFolder:
    """Remove a folder if it is empty."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyFolder:
    """Remove everything below a folder, but not the folder itself; mounts below it are left alone.

    Entries of the folder that are named in `keeps` stay. If there is an entry that `only` does not cover (see
    `model.folder_names`), nothing is removed. A path that `is_resolved` has no links: one that is there by now is
    refused. No service of the node writes into a folder that `is_quiet`: what comes into it is somebody else's. A
    folder that is not in what is mounted at `mount` any more, if that is given, is another one, and is refused.
    """

    path: str
    keeps: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    is_resolved: bool = False
    is_quiet: bool = False
    mount: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmount:
    """Unmount everything that is mounted below a path, the last mount first; a mount at the path itself stays.

    The path has no links: one that is there by now is not followed.

    `flags` are those of umount(2) by name, such as MNT_DETACH. As many mounts stay at a path as `keeps` names it.
    """

    path: str
    flags: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOwner:
    """Change owner, group and mode of a file; without `mode` the path is a folder, which is changed recursively."""

    path: str
    uid: int
    gid: int
    mode: int | None = None


class IssueRequest(Protocol):
    """What is to be issued; only the issuer reads it, the engine prints it, so it contains no secret."""

    def describe(self) -> dict[str, Json]:
        """Return the request as the plan prints it."""
        ...


@dataclass(frozen=True, slots=True)
class IssuedFile:
    """A file that issuing makes; its content does not exist before."""

    path: str
    mode: int
    holds: str  # what it will hold, in words: the placeholder in a printed plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Issue keys, certificates or kubeconfigs: what is requested and which files are made, never their content."""

    name: str
    files: tuple[IssuedFile, ...]
    request: IssueRequest
    folder_mode: int = 0o755


@dataclass(frozen=True, slots=True)
class SharedKey:
    """A key of `data` that several nodes use: each names it by the value of a key of its own, or by an annotation."""

    key: str
    value: str  # of the keys of its users
    annotation: str = ""
    annotated: str = ""  # the value that this annotation has on the Nodes that use the key


@dataclass(frozen=True, slots=True, kw_only=True)
class PutObject:
    """Create or replace an object of the API server; `namespace` is empty for a cluster-scoped one.

    With `keeps_other_data`, only the keys of `data` that are given here are set in an existing object; undo leaves
    those of `shared_keys` that another node uses. Undo also leaves an object that serves another one, which `serves`
    names by its kind, namespace and name, while that one exists. Owner references without a `uid` get the uid of the
    owner, which must exist by then. With a `resource_version`, only exactly that version of the object is replaced: if
    it has another one, or has gone, the plan is stale. With `keeps_existing`, an object that exists stays as it is, or
    with both, one of another version.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    content: Json = field(repr=False)
    is_secret: bool = False
    fillings: tuple[FilePlaceholder, ...] = ()
    endings: tuple[ExpiryPlaceholder, ...] = ()
    keeps_other_data: bool = False
    shared_keys: tuple[SharedKey, ...] = ()
    serves: tuple[str, ...] = ()
    resource_version: str = ""
    keeps_existing: bool = False

    @classmethod
    def of(
        cls,
        content: dict[str, Json],
        *,
        fillings: tuple[FilePlaceholder, ...] = (),
        keeps_other_data: bool = False,
        shared_keys: tuple[SharedKey, ...] = (),
        serves: tuple[str, ...] = (),
        resource_version: str = "",
        keeps_existing: bool = False,
    ) -> Self:
        """Return the action that puts an object, named by its content; that of a Secret is shown by its digest."""
        metadata = content["metadata"]
        assert isinstance(metadata, dict)
        texts = (content["apiVersion"], content["kind"], metadata["name"], metadata.get("namespace", ""))
        api_version, kind, name, namespace = map(str, texts)
        return cls(
            api_version=api_version, kind=kind, name=name, namespace=namespace,
            content=content,
            is_secret=kind == "Secret",
            fillings=fillings,
            keeps_other_data=keeps_other_data,
            shared_keys=shared_keys,
            serves=serves,
            resource_version=resource_version,
            keeps_existing=keeps_existing,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchObject:
    """Apply a strategic merge patch to an object that exists by then.

    `united` are paths of lists that the API server would replace: their existing elements are kept. Keys of `data` that
    the patch removes stay if they are among `shared_keys` and another node uses them. With `deletes_empty`, the object
    is deleted if no key of `data` is left; it is no failure then if there is none.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    content: Json = field(repr=False)
    united: tuple[tuple[str, ...], ...] = ()
    shared_keys: tuple[SharedKey, ...] = ()
    deletes_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """Delete an object; it is no failure if there is none.

    If it is not `is_needed` and the user may not delete it, this is reported and the plan goes on. An object that
    serves another one stays while that exists, which `unless` names by its kind, namespace and name. With
    `may_be_left`, a cluster that does not answer is no reason to stop either.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    is_needed: bool = True
    unless: tuple[str, ...] = ()
    may_be_left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPods:
    """Evict the pods of a node, as their disruption budgets allow, but for static ones and those of DaemonSets.

    Unless the action allows them, pods that nobody would make again, and pods with data in emptyDir volumes, are
    refused before the first is evicted. Without `grace_s` every pod has its own grace period.
    """

    node_name: str
    timeout_s: float
    grace_s: int | None = None
    deletes_unmanaged: bool = False
    deletes_empty_dirs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePods:
    """Delete the pods of a node in a namespace whose labels have the values of `selector`, until they have gone.

    Their controller makes others, which get the ConfigMaps that they mount as these are by then. A container that is
    only stopped starts again with what the kubelet had fetched before.
    """

    node_name: str
    namespace: str
    selector: tuple[tuple[str, str], ...]
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlService:
    """Start, stop or restart a service. If it is not `is_needed`, a failure is reported and the plan goes on.

    `fills` are the folders that the started service will write to, `writes` the files that it makes elsewhere, and
    `registers` the Node that it will register, if there is none yet: undo removes all of these. If the file `unless`
    exists, nothing is done.
    """

    service: str
    verb: ServiceVerb
    is_needed: bool = True
    fills: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    registers: str = ""
    unless: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTimer:
    """Enable a timer of the service manager, whose unit files are there, or disable it; both take effect at once.

    `timer` is its name without `.timer`. One that is disabled does not fire any more, whether it is there or not. Once
    its unit files have gone, the service manager is to `forget` it.
    """

    timer: str
    verb: TimerVerb


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlUnitFile:
    """Enable a service whose unit file is there, so that it runs now and whenever the machine starts; or disable it.

    `service` is its name without `.service`. One that is disabled has stopped. Once its unit file has gone, the service
    manager is to `forget` it. Unlike a service of `ControlService`, it leads to the cluster: undo stops it last.
    """

    service: str
    verb: UnitFileVerb


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLink:
    """Give this node an address that no other machine is to reach, on a link of its own; or remove both."""

    address: str
    link: str
    verb: LinkVerb


@dataclass(frozen=True, slots=True, kw_only=True)
class PullImage:
    """Pull an image; with `is_always` even if the container runtime has it.

    Those of `beside` are pulled in parallel. If it is not `is_needed`, a failure is reported and the plan goes on.
    """

    image: str
    is_always: bool = False
    beside: tuple[str, ...] = ()
    is_needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSandboxes:
    """Stop and remove the pod sandboxes of this node with their containers; those with the ids of `keeps` stay."""

    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopContainer:
    """Stop a container of a static pod at once, `after_s` from now, unless its manifest is there: it is to run then."""

    container: str
    manifest: str
    after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPods:
    """Stop the containers of the pods of this node in a namespace whose labels have the values of `selector`.

    The kubelet starts them again: this is how a pod reads its files anew. Each container has `grace_s` to end.
    """

    namespace: str
    selector: tuple[tuple[str, str], ...]
    grace_s: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMember:
    """Add a learner to etcd. All members, in the form of `--initial-cluster`, become the outcome named `outcome`.

    The id of the new member becomes the outcome `MEMBER_ID`, so that undo removes this one and no other.
    """

    name: str
    peer_url: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLearner:
    """Restart the learner of this node, once, if it has the data of the others and still does not serve clients.

    A member that votes is never restarted; without a `peer_url`, as in journals of earlier releases, none is.
    """

    client_url: str
    data_dir: str
    timeout_s: float
    peer_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteMember:
    """Promote a learner to a voting member once it has caught up."""

    peer_url: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember:
    """Remove an etcd member: that with the id, or, if the id is not known, that with the peer URL.

    It is no failure if there is none. The id has hexadecimal digits, as etcd prints it.
    """

    peer_url: str
    member_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSnapshot:
    """Save the database of the etcd member with the client URL into a new file, which only root may read.

    A file that is there already is refused. The file holds all secrets of the cluster. Of those with the same ending
    in its folder, the newest stay by the last part of their names, `keeps` with it; 0 removes none.
    """

    path: str
    client_url: str
    keeps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLeader:
    """Have another voting member lead etcd than the one with the peer URL; nothing is done if another one does."""

    peer_url: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireLease:
    """Acquire a Lease that one node holds at a time: other nodes wait until it is released, and report its holder.

    `payload` is a kind and a value, as `etcd-member:URL`. It is stored in the Lease: if the holder dies, the next one
    that knows the kind clears away what is meant, such as a learner with that peer URL. A holder that does not renew
    the Lease keeps it for `duration_s`. A holder that is about to take its own API server away acquires the Lease once
    more, for longer; and again with the usual duration afterwards. If it is not needed, an API server that does not
    answer is no reason to stop. The token of the Lease becomes the outcome `LEASE_TOKEN`.
    """

    name: str
    namespace: str
    holder: str
    timeout_s: float
    peer_url: str = ""  # the payload in runs of earlier releases: that of the member that the holder adds
    duration_s: float = 0.0  # the usual one
    payload: str = ""
    is_needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLease:
    """Release the Lease for the next node."""

    name: str
    namespace: str
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitGate:
    """Wait until a gate is open; if it does not open in time, the error carries the evidence."""

    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowMessage:
    """Show the user a message, such as the next command to type.

    It may contain secrets, so a plan prints only `about`. Each of `pins` is a placeholder for the public key hashes
    of the certificates in a file.
    """

    about: str
    text: str = field(repr=False)
    pins: tuple[FilePlaceholder, ...] = ()


FileAction: TypeAlias = MakeFolder | WriteFile | RemoveFile | RemoveFolder | EmptyFolder | Unmount | ChangeOwner
ObjectAction: TypeAlias = PutObject | PatchObject | DeleteObject
MemberAction: TypeAlias = AddMember | RestartLearner | PromoteMember | RemoveMember
EtcdAction: TypeAlias = SaveSnapshot | MoveLeader
RuntimeAction: TypeAlias = PullImage | RemoveSandboxes | StopContainer | StopPods
LeaseAction: TypeAlias = AcquireLease | ReleaseLease
Action: TypeAlias = (
    FileAction
    | Issue
    | ObjectAction
    | EvictPods
    | DeletePods
    | ControlService
    | ControlTimer
    | ControlUnitFile
    | ControlLink
    | RuntimeAction
    | MemberAction
    | EtcdAction
    | LeaseAction
    | AwaitGate
    | ShowMessage
)
