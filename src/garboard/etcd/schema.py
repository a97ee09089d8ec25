"""Field numbers of `etcdserverpb` (module go.etcd.io/etcd/api/v3), as far as we use it: requests, answers, tables."""

from dataclasses import dataclass

from garboard.etcd.values import Member, MemberStatus
from garboard.rpc.message import boolean, message, nested, raw, repeated, signed, string, unsigned

MEMBER_LIST = "/etcdserverpb.Cluster/MemberList"
MEMBER_ADD = "/etcdserverpb.Cluster/MemberAdd"
MEMBER_PROMOTE = "/etcdserverpb.Cluster/MemberPromote"
MEMBER_REMOVE = "/etcdserverpb.Cluster/MemberRemove"
STATUS = "/etcdserverpb.Maintenance/Status"
SNAPSHOT = "/etcdserverpb.Maintenance/Snapshot"
MOVE_LEADER = "/etcdserverpb.Maintenance/MoveLeader"


@dataclass(frozen=True, slots=True)
class MemberListRequest:
    linearizable: bool = False


@dataclass(frozen=True, slots=True)
class MemberAddRequest:
    peer_urls: tuple[str, ...] = ()
    is_learner: bool = False


@dataclass(frozen=True, slots=True)
class MemberRequest:
    """MemberPromote and MemberRemove."""

    id: int = 0


@dataclass(frozen=True, slots=True)
class MemberAddResponse:
    member: Member | None = None
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MembersResponse:
    """MemberList, MemberPromote and MemberRemove."""

    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class ResponseHeader:
    member_id: int = 0


@dataclass(frozen=True, slots=True)
class StatusResponse:
    header: ResponseHeader | None = None
    version: str = ""
    db_bytes: int = 0
    leader: int = 0
    raft_index: int = 0
    applied_index: int = 0
    errors: tuple[str, ...] = ()
    is_learner: bool = False

    def of_member(self) -> MemberStatus:
        """Return the answer as the status of the member that gave it."""
        return MemberStatus(
            member_id=self.header.member_id if self.header else 0,
            version=self.version,
            leader=self.leader,
            raft_index=self.raft_index,
            applied_index=self.applied_index,
            db_bytes=self.db_bytes,
            is_learner=self.is_learner,
            errors=self.errors,
        )


@dataclass(frozen=True, slots=True)
class MoveLeaderRequest:
    target_id: int = 0


@dataclass(frozen=True, slots=True)
class MoveLeaderResponse:
    """It says nothing."""


@dataclass(frozen=True, slots=True)
class SnapshotResponse:
    """A part of the database; the last ones are its SHA-256."""

    blob: bytes = b""


_MEMBER = message(
    Member,
    id=unsigned(1),
    name=string(2),
    peer_urls=repeated(string(3)),
    client_urls=repeated(string(4)),
    is_learner=boolean(5),
)
MEMBER_LIST_REQUEST = message(MemberListRequest, linearizable=boolean(1))
MEMBER_ADD_REQUEST = message(MemberAddRequest, peer_urls=repeated(string(1)), is_learner=boolean(2))
MEMBER_REQUEST = message(MemberRequest, id=unsigned(1))
MEMBER_ADD_RESPONSE = message(MemberAddResponse, member=nested(2, _MEMBER), members=repeated(nested(3, _MEMBER)))
MEMBERS_RESPONSE = message(MembersResponse, members=repeated(nested(2, _MEMBER)))
STATUS_RESPONSE = message(
    StatusResponse,
    header=nested(1, message(ResponseHeader, member_id=unsigned(2))),
    version=string(2),
    db_bytes=signed(3),
    leader=unsigned(4),
    raft_index=unsigned(5),
    applied_index=unsigned(7),
    errors=repeated(string(8)),
    is_learner=boolean(10),
)
MOVE_LEADER_REQUEST = message(MoveLeaderRequest, target_id=unsigned(1))
MOVE_LEADER_RESPONSE = message(MoveLeaderResponse)
SNAPSHOT_RESPONSE = message(SnapshotResponse, blob=raw(3))
