"""Several processes that acquire a Lease of a real API server."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from garboard.errors import ClusterUnreachable
from garboard.kube import Access, ClusterLeases, HandedLease, KubeClient, LeaseFailed, LeaseLost, ObjectRef
from tests.support.kube.one_lease import DURATION_S, PLACE, claim_of

pytestmark = pytest.mark.real


class Process:
    """One that acquires the Lease, and the lines that it has written so far."""

    def __init__(self, access: Access, holder: str, seconds: float, timeout_s: float = 60.0) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "tests.support.kube.one_lease",
                str(access.port), holder, str(seconds), str(timeout_s),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def at(self, word: str) -> float:
        found = self.line(word)
        assert found, self.lines
        return float(found.split()[1])

    def line(self, word: str) -> str | None:
        return next((line for line in self.lines if line.startswith(word)), None)

    def wait_for(self, word: str, timeout_s: float = 20.0) -> None:
        give_up_at = time.monotonic() + timeout_s
        while not any(word in line for line in self.lines):
            assert time.monotonic() < give_up_at, self.lines
            time.sleep(0.02)

    def wait(self, timeout_s: float = 60.0) -> int:
        status = self.process.wait(timeout_s)
        self._reader.join(5)
        return status

    def let_go(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def start(access: Access) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def starting(*arguments: object) -> Process:
        started.append(Process(access, *arguments))  # type: ignore[arg-type]
        return started[-1]

    yield starting
    for each in started:
        each.kill()
    with KubeClient(access) as client:
        client.delete(ObjectRef("Lease", PLACE["namespace"], PLACE["name"]))


def lease(access: Access) -> dict[str, object] | None:
    with KubeClient(access) as client:
        return client.find("Lease", "kube-system", PLACE["name"])  # type: ignore[return-value]


def test_one_at_a_time_and_the_others_say_for_whom_they_wait(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    others = [start(f"cp-{number}", 0.5) for number in (2, 3)]
    for each in others:
        each.wait_for("waiting: cp-1 holds Lease kube-system/garboard-etcd")
    first.let_go()
    assert [each.wait() for each in (first, *others)] == [0, 0, 0]
    times = sorted((each.at("took"), each.at("ended")) for each in (first, *others))
    assert all(before[1] <= after[0] for before, after in pairwise(times))
    assert times[1][0] - times[0][1] < 2.0
    assert all(len(each.lines) <= 4 for each in others), "told once for each holder"
    assert lease(access) is None


def test_holder_that_lives_keeps_its_lease_beyond_the_duration(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", DURATION_S + 2)
    first.wait_for("took")
    second = start("cp-2", 0.1)
    assert (first.wait(), second.wait()) == (0, 0)
    assert second.at("took") > first.at("ended")


def test_killed_holder_blocks_nobody_for_long_and_leaves_its_peer_url(
    access: Access, start: Callable[..., Process]
) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    others = [start(f"cp-{number}", 0.5) for number in (2, 3)]
    others[0].wait_for("waiting: cp-1 holds Lease kube-system/garboard-etcd")
    killed_at = time.monotonic()
    first.kill()
    assert [each.wait() for each in others] == [0, 0]
    taken = sorted(others, key=lambda each: each.at("took"))
    assert taken[0].at("took") - killed_at < DURATION_S + 5
    assert taken[0].line("took").split("left=")[1] == "https://cp-1:2380"  # type: ignore[union-attr]
    assert lease(access) is None


def test_what_two_dead_holders_left_is_handed_on(access: Access, start: Callable[..., Process]) -> None:
    for name in ("cp-1", "cp-2"):
        holder = start(name, 600.0)
        holder.wait_for("took", DURATION_S + 10)
        holder.kill()
    third = start("cp-3", 0.1)
    assert third.wait() == 0
    assert third.line("took").split("left=")[1] == "https://cp-1:2380,https://cp-2:2380"  # type: ignore[union-attr]


def test_node_that_comes_again_has_its_lease_at_once(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    first.kill()
    again_at = time.monotonic()
    again = start("cp-1", 0.1)
    assert again.wait() == 0
    assert again.at("took") - again_at < 5
    assert again.line("took").split("left=")[1] == ""  # type: ignore[union-attr]


def test_waiting_ends_with_the_holder_named(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    leases = ClusterLeases(lambda: KubeClient(access), lambda _line: None)
    with pytest.raises(LeaseFailed, match="held by cp-1") as caught:
        leases.acquire(claim_of("cp-2"), timeout_s=1.0)
    assert "kubectl -n kube-system delete lease garboard-etcd" in (caught.value.hint or "")


def test_releasing_a_lease_of_another_leaves_it_alone(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    ClusterLeases(lambda: KubeClient(access), lambda _line: None).release(claim_of("cp-2"))
    found = lease(access)
    assert found is not None
    assert found["spec"]["holderIdentity"] == "cp-1"  # type: ignore[index]


def test_run_that_fails_in_between_gives_its_lease_up(access: Access, start: Callable[..., Process]) -> None:
    """The next node has it at once, and hears what was left; then nothing of it remains."""
    with ClusterLeases(lambda: KubeClient(access), lambda _line: None) as leases:
        leases.acquire(claim_of("cp-1"), timeout_s=5.0)
    assert lease(access) is None
    with ClusterLeases(lambda: KubeClient(access), lambda _line: None) as leases:
        leases.acquire(claim_of("cp-1", peer_url="https://cp-1:2380"), timeout_s=5.0)
    assert lease(access) is not None
    claim = claim_of("cp-2", peer_url="https://cp-2:2380")
    with ClusterLeases(lambda: KubeClient(access), lambda _line: None) as leases:
        assert leases.acquire(claim, timeout_s=1.0) == 1
        assert leases.left_behind("etcd-member") == ("https://cp-1:2380",)
        leases.forget_left_behind("etcd-member")
        leases.release(claim)
    assert lease(access) is None


def test_lease_is_lost_to_another_holder_and_not_to_an_api_server_that_is_away(access: Access) -> None:
    is_away = False

    def connect() -> KubeClient:
        if is_away:
            raise ClusterUnreachable("away")
        return KubeClient(access)

    claim = claim_of("cp-1", peer_url="https://cp-1:2380", duration_s=2.0)
    with ClusterLeases(connect, lambda _line: None) as slow, ClusterLeases(lambda: KubeClient(access), print) as quick:
        slow.acquire(claim, timeout_s=5.0)
        is_away = True
        assert quick.acquire(claim_of("cp-2"), timeout_s=30.0) == 1
        slow.check()
        is_away = False
        with pytest.raises(LeaseLost, match="held by cp-2"):
            slow.confirm()
        quick.confirm()
        quick.forget_left_behind("etcd-member")
        quick.release(claim_of("cp-2"))
    assert lease(access) is None


def test_token_that_was_handed_on_is_good_until_another_holder_is_seen(access: Access) -> None:
    claim = claim_of("coordinator", duration_s=2.0)
    with ClusterLeases(lambda: KubeClient(access), lambda _line: None) as holder:
        token = holder.acquire(claim, timeout_s=5.0)
        handed = HandedLease(lambda: KubeClient(access), claim, token)
        handed.confirm()
        time.sleep(2.5)  # the holder renews it, whoever else looks at it
        handed.check()
    with pytest.raises(LeaseLost, match="it was deleted"):
        handed.check()
    with ClusterLeases(lambda: KubeClient(access), lambda _line: None) as other:
        other.acquire(claim_of("cp-2"), timeout_s=5.0)
        with pytest.raises(LeaseLost, match="held by cp-2"):
            handed.check()
        other.release(claim_of("cp-2"))
