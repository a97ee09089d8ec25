"""An API server, an etcd and a lease, in memory."""

from garboard.documents import Json
from garboard.engine import (
    MEMBER_ID,
    AcquireLease,
    AddMember,
    DeleteObject,
    Outcomes,
    PatchObject,
    PromoteMember,
    PutObject,
    ReleaseLease,
    RemoveMember,
)

TAKE = AcquireLease(name="lock", namespace="kube-system", holder="n", timeout_s=1)


class Cluster:
    """An API server that keeps what is put."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}

    def put(self, action: PutObject) -> None:
        self.objects[action.name] = action.content

    def patch(self, action: PatchObject) -> None:
        self.objects[action.name] = [self.objects[action.name], action.content]

    def delete(self, action: DeleteObject) -> None:
        self.objects.pop(action.name, None)


class OneMember:
    """An etcd of one member, to which others are added."""

    def __init__(self) -> None:
        self.peers = {"a": "https://192.0.2.1:2380"}

    def add(self, action: AddMember) -> Outcomes:
        self.peers[action.name] = action.peer_url
        return {action.outcome: ",".join(f"{name}={url}" for name, url in self.peers.items()), MEMBER_ID: "2b"}

    def promote(self, action: PromoteMember) -> None:
        raise AssertionError("nobody asked for it")

    def remove(self, action: RemoveMember) -> None:
        self.peers = {name: url for name, url in self.peers.items() if url != action.peer_url}


class RecordedLeases:
    """Leases that are always free; what is asked of them is recorded."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.acquired: list[AcquireLease] = []

    def acquire(self, action: AcquireLease) -> Outcomes:
        self.calls.append("take")
        self.acquired.append(action)
        return {}

    def release(self, action: ReleaseLease) -> None:
        self.calls.append("end")
