"""`join phase control-plane-join mark-control-plane` and `wait-control-plane`: the node as a control plane at work."""

from collections.abc import Iterator

from garboard.engine import Note, Step
from garboard.model.component import LocalEtcd
from garboard.phases.control_plane import mark_control_plane, wait_for_control_plane
from garboard.phases.join.context import JoinContext
from garboard.phases.join.ending import plan_end
from garboard.phases.patch_record import record_on_control_plane


def plan_mark(context: JoinContext) -> Iterator[Step | Note]:
    config = context.config
    yield from mark_control_plane(context.node_name, config.node_registration.taints or (), config.timeouts)
    yield from record_on_control_plane(context.node_name, context.node.patches)


def plan_wait_control_plane(context: JoinContext) -> Iterator[Step | Note]:
    yield from wait_for_control_plane(context.config.timeouts)
    yield from plan_end(context, has_member=isinstance(context.node.config.cluster.etcd, LocalEtcd))
