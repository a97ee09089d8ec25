"""The phases of join that only a control-plane node runs: what it is made of, its etcd member, and waiting for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from garboard.engine import (
    AddMember,
    AwaitGate,
    Note,
    OutcomePlaceholder,
    PromoteMember,
    QuorumChange,
    RestartLearner,
    Step,
    WriteFile,
)
from garboard.lazy import lazy_module
from garboard.model.component import LocalEtcd
from garboard.phases.control_plane_lease import MEMBER, acquire_lease, release_lease
from garboard.phases.gates import EtcdHealthy
from garboard.phases.join.context import JoinContext
from garboard.phases.join.kubelet import plan_end
from garboard.pki.files import SECRET_MODE

if TYPE_CHECKING:
    from garboard.phases.node import credentials, static_pods
else:  # a worker neither issues nor renders
    credentials = lazy_module("garboard.phases.node.credentials")
    static_pods = lazy_module("garboard.phases.node.static_pods")

INITIAL_CLUSTER = "initial-cluster"
_PLACEHOLDER = "<members-of-etcd>"
# Waiting for the data of the other members; without them the learner is only slower.
_SNAPSHOT_WITHIN_S = 15.0


def plan_download_certs(context: JoinContext) -> Iterator[Step | Note]:
    """Plan the files that control planes share; they came encrypted with the certificate key."""
    if context.config.control_plane is None or not context.config.control_plane.certificate_key:
        yield Note("Skipping certs download: no certificate key was given")
        return
    for file in context.joined.shared:
        path = context.shared_path(file.name)
        found = context.machine.read(path)
        if found == file.data:
            yield Note(f"{path} is as it should be")
            continue
        is_secret = file.mode == SECRET_MODE
        action = WriteFile(path=path, content=file.data, mode=file.mode, is_secret=is_secret)
        yield Step(action, "there is no such file" if found is None else "it is not the one that control planes share")


def plan_certs(context: JoinContext) -> Iterator[Step | Note]:
    yield from credentials.plan_joining_certificates(context)


def plan_kubeconfigs(context: JoinContext) -> Iterator[Step | Note]:
    yield from credentials.plan_joining_kubeconfigs(context)


def plan_control_plane(context: JoinContext) -> Iterator[Step | Note]:
    yield from static_pods.plan_components(context)


def plan_check_etcd(context: JoinContext) -> Iterator[Step | Note]:
    """Plan to look at etcd before anything depends on it: a member more does not heal a cluster."""
    if isinstance(context.cluster.etcd, LocalEtcd):
        gate = EtcdHealthy(timeout_s=context.timeouts.etcd_api_call.seconds)
        yield Step(AwaitGate(gate=gate), "this node's member joins it")


def plan_etcd_join(context: JoinContext) -> Iterator[Step | Note]:
    """Plan the member of this node, first as a learner, then with a vote; an external etcd is not ours to change.

    A lease lets one node join at a time.
    """
    local, holder = context.cluster.etcd, context.node_name
    if not isinstance(local, LocalEtcd):
        yield Note(static_pods.EXTERNAL_ETCD)
        return
    peer_url = static_pods.etcd_peer_url(context)
    yield Step(acquire_lease(holder, payload=f"{MEMBER}:{peer_url}"), "etcd takes one learner at a time")
    yield from static_pods.plan_etcd_folder(context, local)
    add = AddMember(name=context.node_name, peer_url=peer_url, outcome=INITIAL_CLUSTER)
    yield Step(add, "the others have to know it before it starts", quorum_after=QuorumChange())
    # Who the members are is only known once ours was added, so a placeholder stands for them.
    yield from static_pods.plan_etcd_pod(context, _PLACEHOLDER, (OutcomePlaceholder(_PLACEHOLDER, INITIAL_CLUSTER),))
    yield Step(
        RestartLearner(
            client_url=static_pods.etcd_client_url(context),
            data_dir=local.data_dir,
            timeout_s=_SNAPSHOT_WITHIN_S,
            peer_url=peer_url,
        ),
        "it announces itself to etcd before it can, and would wait 7 s before it does so again",
        restarts=("etcd",),
    )
    timeout_s = context.timeouts.etcd_api_call.seconds
    promoted = PromoteMember(peer_url=peer_url, timeout_s=timeout_s)
    yield Step(promoted, "a learner has no vote", quorum_after=QuorumChange(voters=1, up=1))
    yield Step(release_lease(holder), "the next node may join")


def plan_wait_control_plane(context: JoinContext) -> Iterator[Step | Note]:
    yield from static_pods.wait_for_control_plane(context)
    yield from plan_end(context, has_member=isinstance(context.cluster.etcd, LocalEtcd))
