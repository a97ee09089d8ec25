"""What the phases of reset plan from: the configuration, and what is on the machine and in etcd."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, Self

from garboard.engine import Step
from garboard.errors import GarboardError
from garboard.model.lifecycle import ResetConfiguration
from garboard.phases.reset.member import MANIFEST, EtcdView, LocalMember, SeenMember, read_member

REMOVE_MEMBER, CLEANUP = "remove-etcd-member", "cleanup-node"


class ResetMachine(Protocol):
    """The machine as planning sees it."""

    def read(self, path: str) -> bytes | None: ...

    def has_folder(self, path: str) -> bool: ...

    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        ...

    def has_service_manager(self) -> bool: ...

    def is_active(self, service: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetContext:
    """A node that is to be one no more."""

    config: ResetConfiguration
    machine: ResetMachine
    node_name: str
    selected: frozenset[str]  # the phases that run
    has_runtime: bool
    local: LocalMember | None = None  # None where no member of etcd runs
    members: tuple[SeenMember, ...] = ()
    etcd_failure: str = ""  # why etcd could not be asked

    def after(self, steps: tuple[Step, ...]) -> Self:
        return self

    @property
    def other_client_urls(self) -> tuple[str, ...]:
        """Where etcd can be asked once the member of this node has gone."""
        return tuple(url for each in self.members if not self.is_ours(each) for url in each.client_urls)

    def is_ours(self, member: SeenMember) -> bool:
        return self.local is not None and bool(set(self.local.peer_urls) & set(member.peer_urls))


def observe_reset(
    config: ResetConfiguration,
    *,
    machine: ResetMachine,
    etcd: EtcdView,
    node_name: str,
    selected: Iterable[str],
    has_runtime: Callable[[str], bool],
) -> ResetContext:
    """Look at the machine, and at etcd if this node has a member of it that shall leave."""
    phases = frozenset(selected)
    local, members, failure = None, tuple[SeenMember, ...](), ""
    if REMOVE_MEMBER in phases and (data := machine.read(MANIFEST)) is not None:
        local = read_member(data)
        try:
            members = etcd.members(local.client_urls)
        except GarboardError as error:
            failure = error.message
    return ResetContext(
        config=config,
        machine=machine,
        node_name=node_name,
        selected=phases,
        has_runtime=has_runtime(config.cri_socket),
        local=local,
        members=members,
        etcd_failure=failure,
    )
