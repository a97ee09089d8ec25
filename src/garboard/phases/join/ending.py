"""What is said once a node has joined."""

from collections.abc import Iterator

from garboard.engine import Step, Tell
from garboard.phases.init.context import ADMIN_CONF
from garboard.phases.join.context import JoinContext

_WORKER = """
{node} has joined the cluster at {server}: its kubelet has a certificate of its own.

See it on a control-plane node: kubectl get node {node}
"""
_CONTROL_PLANE = """
{node} has joined the cluster at {server} as a control plane: its components answer{member}.

To use it as an administrator, run as that user:

  mkdir -p $HOME/.kube
  sudo cp -i {admin} $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

See it: kubectl get node {node}
"""


def plan_end(context: JoinContext, *, has_member: bool = False) -> Iterator[Step]:
    """Plan to say that all is done, if all was asked for."""
    if not context.is_whole:
        return
    text = _WORKER if context.config.control_plane is None else _CONTROL_PLANE
    told = text.format(
        node=context.node_name,
        server=context.found.server,
        admin=ADMIN_CONF,
        member=", and its etcd member votes" if has_member else "",
    )
    yield Step(Tell(about="that the node has joined", text=told), "")
