"""`join phase etcd-join`: this node's member of etcd, first as a learner, then with a vote; one node at a time."""

from collections.abc import Iterator

from garboard.engine import AddMember, AwaitGate, EndTurn, Note, Outcome, PromoteMember, Step, TakeTurn
from garboard.manifests.etcd import PEER_PORT
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.model.addresses import join_host_port
from garboard.model.component import LocalEtcd
from garboard.phases.init.static_pods import plan_etcd_folder, plan_etcd_pod
from garboard.phases.join.context import JoinContext
from garboard.phases.waiting import EtcdHealthy

TURN = "garboard-etcd-join"
INITIAL_CLUSTER = "initial-cluster"
_PLACEHOLDER = "<members-of-etcd>"
# Each of those before us may take as long as we may.
_TURN_TIMEOUT_S = 1800.0


def plan_check_etcd(context: JoinContext) -> Iterator[Step | Note]:
    """Plan to look at etcd before anything depends on it: a member more does not make a sick cluster better."""
    if isinstance(context.joined.configuration.etcd, LocalEtcd):
        gate = EtcdHealthy(timeout_s=context.config.timeouts.etcd_api_call.seconds)
        yield Step(AwaitGate(gate=gate), "this node's member joins it")


def plan_etcd_join(context: JoinContext) -> Iterator[Step | Note]:
    """Plan the member of this node; an external etcd is somebody else's."""
    local = context.joined.configuration.etcd
    if not isinstance(local, LocalEtcd):
        yield Note("External etcd mode. Skipping the creation of a manifest for local etcd")
        return
    peer_url = peer_url_of(context)
    turn = TakeTurn(
        name=TURN, namespace=KUBE_SYSTEM, holder=context.node_name, timeout_s=_TURN_TIMEOUT_S, peer_url=peer_url
    )
    yield Step(turn, "etcd takes one learner at a time")
    yield from plan_etcd_folder(context.node, local)
    add = AddMember(name=context.node_name, peer_url=peer_url, outcome=INITIAL_CLUSTER)
    yield Step(add, "the others have to know it before it starts")
    # Who the members are is only known once ours was added, so a placeholder stands for them.
    yield from plan_etcd_pod(context.node, _PLACEHOLDER, (Outcome(_PLACEHOLDER, INITIAL_CLUSTER),))
    timeout_s = context.config.timeouts.etcd_api_call.seconds
    yield Step(PromoteMember(peer_url=peer_url, timeout_s=timeout_s), "a learner has no vote")
    yield Step(EndTurn(name=TURN, namespace=KUBE_SYSTEM, holder=context.node_name), "the next node may join")


def peer_url_of(context: JoinContext) -> str:
    address = context.node.config.local_api_endpoint.advertise_address
    return f"https://{join_host_port(address, PEER_PORT)}"
