"""A change is confirmed anew before each member that is asked: one that hangs takes longer than a Lease lasts."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from garboard.etcd import EtcdMembers, EtcdUnreachable, Member

LEARNER = Member(id=2, name="", peer_urls=("https://b:2380",), client_urls=(), is_learner=True)
VOTERS = tuple(
    Member(id=number, name=name, peer_urls=(f"https://{name}:2380",), client_urls=(f"https://{name}:2379",))
    for number, name in ((1, "a"), (3, "c"), (4, "d"))
)


@dataclass
class HangingEtcd:
    """Lists its members, and does not answer a request for a change; `asked` is what happened, in its order."""

    endpoints: tuple[str, ...] = ("a", "c", "d")
    asked: list[str] = field(default_factory=list)

    @property
    def by_preference(self) -> tuple[str, ...]:
        return self.endpoints

    def at(self, *endpoints: str) -> "HangingEtcd":
        return HangingEtcd(endpoints, self.asked)

    def members(self) -> tuple[Member, ...]:
        return (*VOTERS, LEARNER)

    sync = members

    def _hang(self, *_arguments: object, shown: str = "") -> None:
        self.asked.append(f"change at {len(self.endpoints)}")
        raise EtcdUnreachable("it does not answer")

    add_learner = remove = promote = _hang


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda members: members.add("x", "https://x:2380"), id="added"),
        pytest.param(lambda members: members.remove("https://b:2380"), id="removed"),
        pytest.param(lambda members: members.add("new", "https://new:2380"), id="a learner that was abandoned"),
    ],
)
def test_every_member_that_is_asked_is_asked_right_after_the_lease_was_confirmed(
    change: Callable[[EtcdMembers], object], request: pytest.FixtureRequest
) -> None:
    client = HangingEtcd()
    left = ("https://b:2380",) if "abandoned" in request.node.name else ()
    members = EtcdMembers(
        client,  # type: ignore[arg-type]
        confirm=lambda: client.asked.append("confirm"),
        abandoned=lambda: left,
        change_within_s=0.0,
    )
    with pytest.raises(EtcdUnreachable):
        change(members)
    assert client.asked[-6:] == ["confirm", "change at 1"] * 3
