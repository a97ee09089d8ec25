"""`reset`: what init and join made on this machine goes; its etcd member leaves first.

A reset cannot be undone. It can be resumed, or simply run again: it plans from what is left. The phases are in the
order of kubeadm, the same at every minor we know.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from garboard.engine import (
    ControlService,
    Note,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    ShowMessage,
    Step,
    Unmount,
    WriteFile,
)
from garboard.errors import ClusterUnreachable, GarboardError, NotReady, StalePlan
from garboard.manifests import NodeHost
from garboard.manifests.rootless import without_users
from garboard.model.component import LocalEtcd
from garboard.model.go import join_path
from garboard.model.lifecycle import ResetConfiguration
from garboard.model.node import NodeRegistration
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR, KUBELET_DIR, KUBERNETES_DIR, MANIFESTS_DIR
from garboard.phases.emptying import (
    CERTIFICATES_ROLE,
    KUBELET_ROLE,
    MANIFESTS_ROLE,
    MEMBER_ROLE,
    TEMPORARY_ROLE,
    plan_emptying,
)
from garboard.phases.node.agent_removal import plan_agent_removal
from garboard.phases.node.context import MachineView, NodeContext
from garboard.phases.node.etcd_member import (
    MANIFEST,
    EtcdView,
    LocalMember,
    ObservedMember,
    StoredMembers,
    read_member,
    read_stored,
)
from garboard.phases.node.kubelet import KUBELET
from garboard.phases.workflow import Phase
from garboard.values import dataclass

PREFLIGHT, REMOVE_MEMBER, CLEANUP = "preflight", "remove-etcd-member", "cleanup-node"
TMP_DIR = f"{KUBERNETES_DIR}/tmp"
KUBECONFIGS = tuple(
    f"{KUBERNETES_DIR}/{name}.conf"
    for name in ("admin", "super-admin", "kubelet", "bootstrap-kubelet", "controller-manager", "scheduler")
)
_LEFT = """
What reset does not touch, and you may want to remove by hand:

  the Node object                kubectl delete node {node}   (on another machine)
  CNI configuration              /etc/cni/net.d
  rules of kube-proxy and CNI    nft or iptables; a restart of the machine removes them
  kubeconfigs of people          $HOME/.kube/config
  the story of garboard's runs   /var/lib/garboard
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetContext(NodeContext):
    """A node that is to be one no more."""

    config: ResetConfiguration
    selected: frozenset[str]  # the phases that run
    has_runtime: bool
    local: LocalMember | None = None  # None where no member of etcd runs
    members: tuple[ObservedMember, ...] = ()
    etcd_failure: str = ""  # why etcd could not be asked
    allowed: frozenset[str] = frozenset()  # the folders, resolved, that may be emptied whatever they hold
    stored: StoredMembers = StoredMembers()  # what the data of the member say then
    own_id: str = ""  # of the member, if etcd knows none with the peer URL of the manifest
    abandons_member: bool = False  # it may stay in etcd if etcd cannot be asked
    orphan: LocalMember | None = None  # the member that certificates and data show, although its manifest is missing

    @property
    def other_client_urls(self) -> tuple[str, ...]:
        """Where etcd can be asked once the member of this node has gone."""
        return tuple(url for each in self.members if not self.is_ours(each) for url in each.client_urls)

    @property
    def is_only_voter(self) -> bool:
        """Whether etcd said that nobody else votes, so that it ends with the data of this node."""
        voters = [member for member in self.members if not member.is_learner]
        return len(voters) == 1 and self.is_ours(voters[0])

    def is_ours(self, member: ObservedMember) -> bool:
        if self.local is None:
            return False
        return member.id == self.own_id if self.own_id else bool(set(self.local.peer_urls) & set(member.peer_urls))


def observe_reset(
    config: ResetConfiguration,
    *,
    machine: MachineView,
    etcd: EtcdView,
    node_name: str,
    now: datetime,
    selected: Iterable[str],
    has_runtime: Callable[[str], bool],
    allowed_paths: Iterable[str] = (),
    abandons_member: bool = False,
) -> ResetContext:
    """Look at the machine, and at etcd if this node has a member of it that shall leave."""
    phases = frozenset(selected)
    local, members, failure, stored, own_id = None, tuple[ObservedMember, ...](), "", StoredMembers(), ""
    orphan = _orphan(node_name, config.certificates_dir, machine) if REMOVE_MEMBER in phases else None
    if orphan:
        stored = read_stored(etcd, orphan, machine)
    elif REMOVE_MEMBER in phases and (data := machine.read(MANIFEST)) is not None:
        local = read_member(data)
        try:
            members = etcd.members(local.client_urls)
        except GarboardError as error:
            failure = error.message
            stored = read_stored(etcd, local, machine)
        else:
            own_id = "" if _by_url(local, members) else _own_id(etcd, local, machine)
    return ResetContext(
        node_registration=NodeRegistration(name=node_name, cri_socket=config.cri_socket),
        machine=machine,
        host=NodeHost(hostname=node_name),
        now=now,
        timeouts=config.timeouts,
        config=config,
        selected=phases,
        has_runtime=has_runtime(config.cri_socket),
        local=local,
        members=members,
        etcd_failure=failure,
        allowed=frozenset(map(machine.resolve, allowed_paths)),
        stored=stored,
        own_id=own_id,
        abandons_member=abandons_member,
        orphan=orphan,
    )


def _orphan(node_name: str, certificates_dir: str, machine: MachineView) -> LocalMember | None:
    """Return the member that this node has by its certificates and its data, if the manifest of etcd is missing.

    Data alone may be those of an etcd that kubeadm knows nothing of.
    """
    has_certificate = machine.read(join_path(certificates_dir, "etcd/peer.crt")) is not None
    if not has_certificate or machine.read(MANIFEST) is not None:
        return None
    found = LocalMember(name=node_name, data_dir=LocalEtcd().data_dir, peer_urls=(), client_urls=(), is_first=True)
    return found if machine.has_files(join_path(found.data_dir, "member")) else None


def _by_url(local: LocalMember, members: Iterable[ObservedMember]) -> ObservedMember | None:
    return next((each for each in members if set(each.peer_urls) & set(local.peer_urls)), None)


def _own_id(etcd: EtcdView, local: LocalMember, machine: MachineView) -> str:
    """Return the id of this node's member, whose peer URL may have been changed: by itself, or else by its data."""
    if found := etcd.own_id(local.client_urls):
        return found
    own = read_stored(etcd, local, machine).own(local)
    return own.id if own else ""


def plan_remove_member(context: ResetContext) -> Iterator[Step | Note]:
    """Plan that etcd forgets the member of this node; its data go later, when nothing runs that writes them."""
    if context.local is None:
        yield _without_manifest(context)
        return
    yield from _plan_member(context, context.local)
    if CLEANUP not in context.selected:
        yield from plan_data(context)


def _plan_member(context: ResetContext, local: LocalMember) -> Iterator[Step | Note]:
    ours = next((member for member in context.members if context.is_ours(member)), None)
    if context.etcd_failure:
        yield _unreached(context, local)
    elif ours is None:
        _refuse_namesake(context, local)
        yield Note(f"etcd has no member with the peer URL {local.peer_urls[0]} any more")
    elif context.is_only_voter:
        yield Note(f"{ours.name} is the only voting member of etcd: it is not removed, and its data go with it")
    else:
        yield Step(RemoveMember(peer_url=local.peer_urls[0], member_id=ours.id), "the others must not wait for it")


def _without_manifest(context: ResetContext) -> Note:
    """Refuse if the member of this node, whose manifest is missing, may still count, unless it may be abandoned."""
    told = f"there is no {MANIFEST}: no member is removed, and no data of etcd are touched"
    orphan = context.orphan
    if orphan is None:
        return Note(told)
    if context.stored.is_last(orphan):
        return Note(f"{told}; those in {orphan.data_dir} name no other member", is_warning=True)
    if context.abandons_member:
        return Note(f"{told}; the member stays in etcd. What remains: {_removal(context, orphan)}", is_warning=True)
    raise NotReady(
        f"there is no {MANIFEST}, but {orphan.data_dir} holds the data of a member of etcd, and "
        f"{_who_counts_it(context, orphan)}",
        hint="put the manifest back (garboard resume or undo does so if its replacement was interrupted); or pass "
        f"--abandon-etcd-member and, {_removal(context, orphan)}; or leave member and data alone with --skip-phases "
        "remove-etcd-member",
    )


def _refuse_namesake(context: ResetContext, local: LocalMember) -> None:
    """Refuse if a member of the same name may be that of this node, unless it may be abandoned."""
    found = next((each for each in context.members if each.name and each.name == local.name), None)
    if found is None or context.abandons_member:
        return
    raise NotReady(
        f"etcd has a member {found.name} with the peer URL {', '.join(found.peer_urls)}, and {MANIFEST} has "
        f"{local.peer_urls[0]}: it cannot be told whether it is the member of this node",
        hint=f"if it is, remove it on another control-plane node (etcdctl member remove {found.id}); then, or if it is "
        "not, pass --abandon-etcd-member",
    )


def refuse_other_members(planned: ResetContext, members: Iterable[ObservedMember]) -> None:
    """Refuse to go on with the last voting member if others have come since that was planned."""
    known = {each.id for each in planned.members}
    others = [each.name or each.peer_urls[0] for each in members if each.id not in known]
    if others:
        raise StalePlan(
            f"the plan is stale: this was the last voting member of etcd, and there are others by now: "
            f"{', '.join(others)}",
            hint="nothing was changed; run the command again: it plans from what is there now",
        )


def _unreached(context: ResetContext, local: LocalMember) -> Note:
    """Refuse if other members would go on counting this one, unless it may be abandoned; warn if none is left."""
    asked = f"etcd cannot be asked for its members: {context.etcd_failure}"
    if context.stored.is_last(local):
        return Note(
            f"{asked}; its data on this machine name no other member. If other control-plane nodes exist, remove the "
            f"member {local.peer_urls[0]} there",
            is_warning=True,
        )
    if context.abandons_member:
        return Note(f"{asked}; the member stays in etcd. What remains: {_removal(context, local)}", is_warning=True)
    raise ClusterUnreachable(
        f"the etcd member of this node cannot be removed, and {_who_counts_it(context, local)}; {asked}",
        hint="make etcd reachable (--cert-dir says where its certificates are); or pass --abandon-etcd-member and, "
        f"{_removal(context, local)}; or leave member and data alone with --skip-phases remove-etcd-member",
    )


def _who_counts_it(context: ResetContext, local: LocalMember) -> str:
    """Say who would go on counting the member, as far as that is known."""
    if context.stored.failure:
        return f"its data do not tell whether others count on it ({context.stored.failure})"
    others = [each.name or each.peer_urls[0] for each in context.stored.others(local)]
    return f"these would go on counting it: {', '.join(others)}" if others else "it joined others, who count on it"


def _removal(context: ResetContext, local: LocalMember) -> str:
    """Say how the member is removed elsewhere."""
    own = context.stored.own(local)
    known = ", ".join(local.peer_urls) or local.name
    member_id = own.id if own else f"ID (`etcdctl member list` shows it beside {known})"
    return f"on another control-plane node: etcdctl member remove {member_id}"


def plan_data(context: ResetContext) -> Iterator[Step | Note]:
    """Plan to remove what the member has stored, and nothing else that may be in that folder."""
    if context.local is None:
        return
    folder = join_path(context.local.data_dir, "member")
    if context.machine.has_folder(folder):
        cause = "the data of the member"
        yield from plan_emptying(context.machine, folder, MEMBER_ROLE, allowed=context.allowed, cause=cause)
        yield Step(RemoveFolder(path=context.machine.resolve(folder)), cause)
    others = [name for name in context.machine.entries(context.local.data_dir) if name != "member"]
    if others:
        yield Note(f"{context.local.data_dir} also holds {', '.join(others)}, which etcd did not make: that stays")


def plan_cleanup(context: ResetContext) -> Iterator[Step | Note]:
    """Plan to stop the kubelet and its pods first, and then to remove files, so that none is written again."""
    # The agent goes before the manifests: by them it is known whether it is a static pod.
    steps = [*_plan_stop(context), *plan_agent_removal(context.machine), *_plan_files(context)]
    yield from steps
    if any(isinstance(each, Step) for each in steps):
        yield Step(ShowMessage(about="what reset leaves", text=_left(context)), "")


def _left(context: ResetContext) -> str:
    text = _LEFT.format(node=context.node_name)
    member = context.orphan or (context.local if context.etcd_failure else None)
    if member is None or context.stored.is_last(member):
        return text
    return f"{text}\nThe etcd member of this node still counts: {_removal(context, member)}\n"


def _plan_stop(context: ResetContext) -> Iterator[Step | Note]:
    machine = context.machine
    if not machine.has_service_manager():
        yield Note("no service manager is found: make sure yourself that the kubelet does not run", is_warning=True)
    elif machine.is_active(KUBELET):
        yield Step(ControlService(service=KUBELET, verb="stop"), "it would start its pods again")
    if not context.has_runtime:
        socket = context.config.cri_socket or "any known socket"
        yield Note(f"no container runtime answers at {socket}: containers are left as they are", is_warning=True)
    elif machine.entries(KUBELET_DIR) or machine.entries(MANIFESTS_DIR):
        yield Step(RemoveSandboxes(), "the pods of this node")
    if machine.entries(KUBELET_DIR):
        yield Step(Unmount(path=machine.resolve(KUBELET_DIR), flags=context.config.unmount_flags), "volumes of pods")


def _plan_files(context: ResetContext) -> Iterator[Step | Note]:
    config, machine = context.config, context.machine
    if REMOVE_MEMBER in context.selected:
        yield from plan_data(context)
    folder = config.certificates_dir
    if folder != DEFAULT_CERTIFICATES_DIR:
        yield Note(f"what is in {folder} goes, for it was named as the folder of certificates", is_warning=True)
    folders = {MANIFESTS_DIR: MANIFESTS_ROLE, KUBELET_DIR: KUBELET_ROLE, folder: CERTIFICATES_ROLE}
    for path, role in {**folders, **({TMP_DIR: TEMPORARY_ROLE} if config.cleanup_tmp_dir else {})}.items():
        yield from plan_emptying(machine, path, role, allowed=context.allowed)
    for path in KUBECONFIGS:
        if machine.read(path) is not None:
            yield Step(RemoveFile(path=path), "")
    yield from _plan_users(context)


def _plan_users(context: ResetContext) -> Iterator[Step]:
    """Plan to take the users of RootlessControlPlane out of the system's files again."""
    for path in ("/etc/passwd", "/etc/group"):
        text = (context.machine.read(path) or b"").decode("utf-8", "surrogateescape")
        kept = without_users(text)
        if kept != text:
            content = kept.encode("utf-8", "surrogateescape")
            yield Step(WriteFile(path=path, content=content, mode=0o644), "users of RootlessControlPlane")


RESET: tuple[Phase[ResetContext], ...] = (
    Phase(
        name=PREFLIGHT,
        summary="Check the user, and ask before anything is removed",
        aliases=("pre-flight",),
        flags=("dry-run", "force", "ignore-preflight-errors"),
    ),
    Phase(
        name=REMOVE_MEMBER,
        summary="Remove this node's member from etcd",
        plan=plan_remove_member,
        flags=("dry-run", "kubeconfig"),
    ),
    Phase(
        name=CLEANUP,
        summary="Stop the kubelet and its pods, remove the files",
        plan=plan_cleanup,
        aliases=("cleanupnode",),
        flags=("cert-dir", "cleanup-tmp-dir", "cri-socket", "dry-run"),
    ),
)
