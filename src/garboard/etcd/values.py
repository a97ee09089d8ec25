"""Members of etcd and their status as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from garboard.documents import Json


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the cluster knows it; it has a name and client URLs once it has started."""

    id: int = 0
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False

    @classmethod
    def read(cls, document: Json) -> Self:
        """Return a member from its JSON, in which zeros are left out."""
        fields = document if isinstance(document, dict) else {}
        return cls(
            id=_number(fields.get("ID")),
            name=str(fields.get("name") or ""),
            peer_urls=_texts(fields.get("peerURLs")),
            client_urls=_texts(fields.get("clientURLs")),
            is_learner=fields.get("isLearner") is True,
        )

    @property
    def has_started(self) -> bool:
        return bool(self.name)

    @property
    def hex_id(self) -> str:
        """The id as etcd's own tools print it."""
        return f"{self.id:x}"

    def __str__(self) -> str:
        return f"{self.name or 'not started'} ({self.hex_id}, {', '.join(self.peer_urls)})"


@dataclass(frozen=True, slots=True)
class AddedMember:
    """A member that was added, and all members in the form of `--initial-cluster`."""

    member: Member
    initial_cluster: str


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """The status that one member reports; `errors` are its own alarms, such as a full disk or no leader."""

    member_id: int
    version: str
    leader: int
    raft_index: int
    applied_index: int
    db_bytes: int
    is_learner: bool
    errors: tuple[str, ...]


def initial_cluster(members: Iterable[Member]) -> str:
    """Return the value of `--initial-cluster`; a member without a name goes by its id, as with kubeadm."""
    return ",".join(f"{member.name or member.hex_id}={url}" for member in members for url in member.peer_urls)


def _number(value: Json) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else 0


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
