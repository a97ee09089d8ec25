"""The Lease under which a control plane is changed: by one node at a time, or by one coordinator of several nodes."""

from garboard.engine import AcquireLease, ReleaseLease
from garboard.manifests.objects import KUBE_SYSTEM

LEASE = "garboard-control-plane"
# What earlier releases called it, when only joins held it: runs that they began name it so.
FORMER_LEASE = "garboard-etcd-join"
# Kinds of payloads: the peer URL of a member that is being added, the record of a coordinator, and the node that is in
# the middle of a unit.
MEMBER, COORDINATOR, UNIT = "etcd-member", "coordinator", "unit"
# Each of those who hold the Lease before us may take as long as we may.
ACQUIRED_WITHIN_S = 1800.0


def acquire_lease(
    holder: str, *, payload: str = "", duration_s: float = 0.0, timeout_s: float = ACQUIRED_WITHIN_S
) -> AcquireLease:
    """Return the action that acquires the Lease; `payload` is a kind and a value, such as `etcd-member:URL`."""
    return AcquireLease(
        name=LEASE, namespace=KUBE_SYSTEM, holder=holder, timeout_s=timeout_s, payload=payload, duration_s=duration_s
    )


def release_lease(holder: str) -> ReleaseLease:
    return ReleaseLease(name=LEASE, namespace=KUBE_SYSTEM, holder=holder)
