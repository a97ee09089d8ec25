"""etcd, over gRPC: its members, their health, and changing them without losing quorum.

The members can also be read from the database of one of them, for when nobody answers.
When a member joins or leaves, and which endpoints etcd has, is decided by the callers.
"""

from garboard.etcd.bolt import DATABASE, stored_cluster_version, stored_members
from garboard.etcd.client import EtcdAccess, EtcdClient
from garboard.etcd.errors import DatabaseUnreadable, EtcdRefused, EtcdUnreachable, MembershipRefused
from garboard.etcd.health import CaughtUp, Health, await_quorum, check_health
from garboard.etcd.maintenance import Leadership, save_snapshot
from garboard.etcd.members import EtcdMembers
from garboard.etcd.values import AddedMember, Member, MemberStatus, initial_cluster

__all__ = [
    "DATABASE",
    "AddedMember",
    "CaughtUp",
    "DatabaseUnreadable",
    "EtcdAccess",
    "EtcdClient",
    "EtcdMembers",
    "EtcdRefused",
    "EtcdUnreachable",
    "Health",
    "Leadership",
    "Member",
    "MemberStatus",
    "MembershipRefused",
    "await_quorum",
    "check_health",
    "initial_cluster",
    "save_snapshot",
    "stored_cluster_version",
    "stored_members",
]
