"""The services of a node with stand-ins for processes: what systemctl answers, and that what dies is started again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from garboard.lab.services import Units
from garboard.lab.units import Answer


class FakeService:
    """A program that runs until it is told to end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = asyncio.Event()

    async def wait(self) -> int:
        await self.ended.wait()
        return 0

    async def first_line(self, timeout_s: float) -> str:
        return ""

    def kill(self) -> None:
        self.ended.set()


class FakeServices:
    """Processes are numbers: a door has an even one, the program behind it the next."""

    def __init__(self) -> None:
        self.started: list[FakeService] = []

    async def start_service(self, command: Sequence[str], *, log: Path, stdin: bytes | None = None) -> FakeService:
        self.started.append(FakeService(100 + 2 * len(self.started)))
        return self.started[-1]

    async def run_briefly(self, command: Sequence[str], stdin: str = "") -> tuple[int, str]:
        return 0, ""

    def child_of(self, pid: int) -> int | None:
        return pid + 1

    def send_signal(self, pid: int, number: int) -> bool:
        for each in self.started:
            if each.pid == pid - 1:
                each.ended.set()
                return True
        return False


def play(scene: Callable[[Units, FakeServices], Awaitable[None]]) -> None:
    async def run() -> None:
        services = FakeServices()
        units = Units(services, lambda script: ["sh", "-c", script], lambda name: Path(name))
        await asyncio.wait_for(scene(units, services), 20)
        units.forget()

    asyncio.run(run())


def test_a_started_unit_is_active_and_a_stopped_one_is_not() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        assert await units.systemctl(["is-active", "kubelet"]) == Answer("inactive\n", 3)
        assert await units.systemctl(["start", "kubelet.service"]) == Answer("")
        assert await units.systemctl(["is-active", "kubelet"]) == Answer("active\n")
        assert units.words() == {"containerd": "inactive", "kubelet": "active"}
        await units.systemctl(["start", "kubelet"])
        assert len(services.started) == 1, "what runs is not started twice"
        await units.systemctl(["stop", "kubelet"])
        assert await units.systemctl(["is-active", "kubelet"]) == Answer("inactive\n", 3)

    play(scene)


def test_a_unit_that_dies_is_started_again() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        await units.systemctl(["start", "containerd"])
        services.started[0].kill()
        while len(services.started) < 2 or units.words()["containerd"] != "active":
            await asyncio.sleep(0.01)

    play(scene)


def test_a_stopped_unit_stays_down() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        await units.systemctl(["start", "containerd"])
        await units.systemctl(["stop", "containerd"])
        await asyncio.sleep(0.7)
        assert len(services.started) == 1

    play(scene)


def test_enabling_alone_starts_nothing_and_now_does() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        await units.systemctl(["disable", "kubelet"])
        assert await units.systemctl(["is-enabled", "kubelet"]) == Answer("disabled\n", 1)
        await units.systemctl(["enable", "kubelet"])
        assert services.started == []
        await units.systemctl(["enable", "--now", "kubelet"])
        assert units.words()["kubelet"] == "active"
        await units.systemctl(["restart", "kubelet"])
        assert len(services.started) == 2

    play(scene)


def test_what_is_not_there_or_not_known_is_answered_as_systemctl_does() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        assert (await units.systemctl(["status", "docker"])).status == 4
        assert (await units.systemctl(["levitate", "kubelet"])).status == 1
        assert await units.systemctl(["daemon-reload"]) == Answer("")
        assert services.started == []

    play(scene)
