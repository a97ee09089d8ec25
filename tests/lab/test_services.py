"""The services of a node with stand-ins for processes: what systemctl answers, and that what dies is started again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from garboard.lab.services import Units
from garboard.lab.systemctl import SystemctlAnswer
from tests.support.lab.unit_folders import MemoryUnitFolders


class FakeService:
    """A program that runs until it is told to end."""

    def __init__(self, pid: int, command: Sequence[str]) -> None:
        self.pid, self.command = pid, tuple(command)
        self.ended = asyncio.Event()
        self.status = 0

    async def wait(self) -> int:
        await self.ended.wait()
        return self.status

    def end(self, status: int) -> None:
        self.status = status
        self.ended.set()

    async def first_line(self, timeout_s: float) -> str:
        return ""

    def kill(self) -> None:
        self.ended.set()


class FakeServices:
    """Processes are numbers: nsenter has an even one, the program that it runs the next."""

    def __init__(self) -> None:
        self.started: list[FakeService] = []

    async def start_service(self, command: Sequence[str], *, log: Path, stdin: bytes | None = None) -> FakeService:
        self.started.append(FakeService(100 + 2 * len(self.started), command))
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


Scene = Callable[[Units, FakeServices], Awaitable[None]]


def play(scene: Scene, folders: MemoryUnitFolders | None = None) -> None:
    async def run() -> None:
        services, found = FakeServices(), folders or MemoryUnitFolders()
        units = Units(services, lambda script: ["sh", "-c", script], lambda name: Path(name), found, found.clock_s)
        await asyncio.wait_for(scene(units, services), 20)
        units.forget()

    asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_started_unit_is_active_and_a_stopped_one_is_not() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        assert await units.systemctl(["is-active", "kubelet"]) == SystemctlAnswer("inactive\n", 3)
        assert await units.systemctl(["start", "kubelet.service"]) == SystemctlAnswer("")
        assert await units.systemctl(["is-active", "kubelet"]) == SystemctlAnswer("active\n")
        assert units.words() == {"containerd": "inactive", "kubelet": "active"}
        await units.systemctl(["start", "kubelet"])
        assert len(services.started) == 1, "what runs is not started twice"
        await units.systemctl(["stop", "kubelet"])
        assert await units.systemctl(["is-active", "kubelet"]) == SystemctlAnswer("inactive\n", 3)

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
        assert await units.systemctl(["is-enabled", "kubelet"]) == SystemctlAnswer("disabled\n", 1)
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
        assert await units.systemctl(["daemon-reload"]) == SystemctlAnswer("")
        assert services.started == []

    play(scene)


ONESHOT = "[Service]\nType=oneshot\nExecStart=/usr/bin/garboard undo\n"
TIMER = "[Timer]\nOnCalendar=1970-01-01 00:16:40 UTC\nPersistent=true\n[Install]\nWantedBy=timers.target\n"
AT_S = 1000.0


def test_oneshot_service_is_waited_for_and_may_fail() -> None:
    async def scene(units: Units, services: FakeServices) -> None:
        for status, word, answered in ((0, "inactive", 0), (7, "failed", 1)):
            start = asyncio.ensure_future(units.systemctl(["start", "x"]))
            await until(lambda: units.words().get("x") == "activating" and bool(services.started))
            assert not start.done()
            services.started.pop().end(status)
            assert (await start).status == answered
            assert (await units.systemctl(["is-active", "x"])).text == f"{word}\n"

    play(scene, MemoryUnitFolders({"x.service": ONESHOT}))


@pytest.mark.parametrize(
    ("restart", "status", "is_started_again"),
    [("no", 1, False), ("on-failure", 0, False), ("on-failure", 1, True), ("always", 0, True)],
)
def test_service_is_started_again_as_its_unit_says(restart: str, status: int, is_started_again: bool) -> None:
    text = f"[Service]\nExecStart=/bin/x\nRestart={restart}\nRestartSec=1ms\n"

    async def scene(units: Units, services: FakeServices) -> None:
        assert (await units.systemctl(["start", "x.service"])).status == 0
        services.started[0].end(status)
        await until(lambda: len(services.started) == 2 if is_started_again else units.words()["x"] != "active")
        word = "active" if is_started_again else "failed" if status else "inactive"
        await until(lambda: units.words()["x"] == word)

    play(scene, MemoryUnitFolders({"x.service": text}))


def test_timer_starts_its_service_at_its_moment_and_only_once() -> None:
    folders = MemoryUnitFolders({"x.service": ONESHOT, "x.timer": TIMER}, now_s=AT_S - 10)

    async def scene(units: Units, services: FakeServices) -> None:
        assert await units.systemctl(["enable", "--now", "x.timer"]) == SystemctlAnswer("")
        assert await units.systemctl(["is-active", "x.timer"]) == SystemctlAnswer("active\n")
        assert await units.systemctl(["is-enabled", "x.timer"]) == SystemctlAnswer("enabled\n")
        assert services.started == []
        folders.now_s = AT_S
        await until(lambda: bool(services.started))
        assert "exec /usr/bin/garboard undo" in services.started[0].command[-1]
        services.started[0].end(0)
        # Others fire meanwhile: those had the chance to see this one fire twice.
        folders.now_s = AT_S + 100
        folders.texts["y.service"] = ONESHOT
        folders.texts["y.timer"] = TIMER.replace("00:16:40", "00:18:21")
        await units.systemctl(["start", "y.timer"])
        folders.now_s = AT_S + 200
        await until(lambda: len(services.started) > 1)
        assert len(services.started) == 2

    play(scene, folders)


def test_timer_whose_moment_passed_while_the_node_was_down_fires_when_it_starts() -> None:
    folders = MemoryUnitFolders({"x.service": ONESHOT, "x.timer": TIMER}, now_s=AT_S - 10)

    async def enabled(units: Units, services: FakeServices) -> None:
        await units.systemctl(["enable", "--now", "x.timer"])

    async def started_again(units: Units, services: FakeServices) -> None:
        units.start_enabled()
        await until(lambda: bool(services.started))
        assert folders.stamps["x.timer"] == AT_S + 500

    async def once_more(units: Units, services: FakeServices) -> None:
        units.start_enabled()
        folders.texts["y.service"], folders.texts["y.timer"] = ONESHOT, TIMER.replace("00:16:40", "01:00:00")
        await units.systemctl(["start", "y.timer"])
        folders.now_s = 3600.0
        await until(lambda: bool(services.started))
        assert units.words() == {
            "containerd": "inactive", "kubelet": "inactive", "y": "activating", "x.timer": "active",
            "y.timer": "active",
        }  # fmt: skip

    play(enabled, folders)
    folders.now_s = AT_S + 500
    play(started_again, folders)
    play(once_more, folders)


def test_timer_that_is_disabled_or_was_late_does_not_fire() -> None:
    folders = MemoryUnitFolders({"x.service": ONESHOT, "x.timer": TIMER, "late.timer": TIMER}, now_s=AT_S - 10)
    folders.texts["y.service"], folders.texts["y.timer"] = ONESHOT, TIMER.replace("00:16:40", "01:00:00")

    async def scene(units: Units, services: FakeServices) -> None:
        await units.systemctl(["enable", "--now", "x.timer"])
        assert await units.systemctl(["disable", "--now", "x.timer"]) == SystemctlAnswer("")
        assert await units.systemctl(["is-enabled", "x.timer"]) == SystemctlAnswer("disabled\n", 1)
        folders.now_s = AT_S + 1
        await units.systemctl(["start", "late.timer"])
        await units.systemctl(["start", "y.timer"])
        folders.now_s = 3600.0
        await until(lambda: bool(services.started))
        assert [name for name in units.words() if name in ("x", "late")] == []

    play(scene, folders)


def test_daemon_reload_reads_another_moment_and_forgets_what_is_gone() -> None:
    folders = MemoryUnitFolders({"x.service": ONESHOT, "x.timer": TIMER}, now_s=AT_S - 10)

    async def scene(units: Units, services: FakeServices) -> None:
        await units.systemctl(["start", "x.timer"])
        folders.texts["x.timer"] = TIMER.replace("00:16:40", "00:16:35")
        folders.texts["bad.service"] = "[Service]\nType=forking\n"
        assert await units.systemctl(["daemon-reload"]) == SystemctlAnswer("")
        folders.now_s = AT_S - 4
        await until(lambda: bool(services.started))
        services.started[0].end(0)
        await until(lambda: units.words()["x"] == "inactive")
        del folders.texts["x.service"]
        await units.systemctl(["daemon-reload"])
        assert (await units.systemctl(["status", "x"])).status == 4

    play(scene, folders)


def test_unit_file_that_cannot_be_followed_is_named_and_stops_no_other() -> None:
    folders = MemoryUnitFolders(
        {"bad.service": "[Service]\nType=forking\nExecStart=/x\n", "x.service": ONESHOT},
        links={"bad.service", "x.service"},
    )

    async def scene(units: Units, services: FakeServices) -> None:
        answer = await units.systemctl(["start", "bad"])
        assert answer.status == 1
        assert "Type=forking" in answer.text
        units.start_enabled()
        await until(lambda: bool(services.started))

    play(scene, folders)
