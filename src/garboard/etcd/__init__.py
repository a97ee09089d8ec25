"""etcd, over the JSON form of its API: who its members are, how they fare, and changing them without losing quorum.

`EtcdMembers` satisfies the executor's Protocol `Members`. When a member joins or leaves is decided by phases; where
etcd is comes from the annotations of its Pods, or from whoever knows better.
"""

from garboard.etcd.client import EtcdAccess, EtcdClient
from garboard.etcd.endpoints import PodReader, endpoints_of_pods, find_endpoints
from garboard.etcd.errors import EtcdRefused, EtcdUnreachable, MembershipRefused
from garboard.etcd.health import Health, await_quorum, look_at
from garboard.etcd.members import EtcdMembers
from garboard.etcd.values import Member, MemberStatus, initial_cluster

__all__ = [
    "EtcdAccess",
    "EtcdClient",
    "EtcdMembers",
    "EtcdRefused",
    "EtcdUnreachable",
    "Health",
    "Member",
    "MemberStatus",
    "MembershipRefused",
    "PodReader",
    "await_quorum",
    "endpoints_of_pods",
    "find_endpoints",
    "initial_cluster",
    "look_at",
]
