"""`reset phase remove-etcd-member`: the member of this node leaves, before anything else is touched."""

from collections.abc import Iterator

from garboard.engine import EmptyFolder, Note, RemoveFolder, RemoveMember, Step
from garboard.errors import ClusterUnreachable
from garboard.model.go_paths import join_path
from garboard.phases.reset.context import CLEANUP, ResetContext
from garboard.phases.reset.member import MANIFEST, LocalMember


def plan_remove_member(context: ResetContext) -> Iterator[Step | Note]:
    """Plan that etcd forgets the member of this node; its data go later, when nothing runs that writes them."""
    if context.local is None:
        yield Note(f"there is no {MANIFEST}: no member is removed, and no data of etcd are touched")
        return
    yield from _plan_member(context, context.local)
    if CLEANUP not in context.selected:
        yield from plan_data(context)


def _plan_member(context: ResetContext, local: LocalMember) -> Iterator[Step | Note]:
    ours = next((member for member in context.members if context.is_ours(member)), None)
    voters = [member for member in context.members if not member.is_learner]
    if context.etcd_failure:
        yield _unreached(context, local)
    elif ours is None:
        yield Note(f"etcd has no member with the peer URL {local.peer_urls[0]} any more")
    elif voters == [ours]:
        yield Note(f"{ours.name} is the only voting member of etcd: it is not removed, and its data go with it")
    else:
        yield Step(RemoveMember(peer_url=local.peer_urls[0]), "the others must not wait for it")


def _unreached(context: ResetContext, local: LocalMember) -> Note:
    """Warn where a cluster may never have come up, and refuse where there is one that would keep an orphan."""
    if local.is_first:
        return Note(
            f"etcd cannot be asked for its members ({context.etcd_failure}); if other control-plane nodes exist, "
            f"remove the member {local.peer_urls[0]} there",
            is_warning=True,
        )
    raise ClusterUnreachable(
        f"the etcd member of this node cannot be removed: {context.etcd_failure}",
        hint="make etcd reachable; or leave member and data as they are with --skip-phases remove-etcd-member, "
        "and remove the member on another node",
    )


def plan_data(context: ResetContext) -> Iterator[Step | Note]:
    """Plan to remove what the member has stored, and nothing else that may be in that folder."""
    if context.local is None:
        return
    folder = join_path(context.local.data_dir, "member")
    if context.machine.has_folder(folder):
        yield Step(EmptyFolder(path=folder), "the data of the member")
        yield Step(RemoveFolder(path=folder), "the data of the member")
    others = [name for name in context.machine.entries(context.local.data_dir) if name != "member"]
    if others:
        yield Note(f"{context.local.data_dir} also holds {', '.join(others)}, which etcd did not make: that stays")
