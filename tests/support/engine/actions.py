"""Actions for tests, and interpreters that keep what they are given in memory."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from garboard.documents import Json
from garboard.engine import Issue, IssuedFile, IssueRequest, Step
from garboard.engine.pre_image import digest_of
from garboard.errors import GarboardError, StalePlan


@dataclass(frozen=True)
class Wish:
    """A request that says what it is for."""

    text: str

    def describe(self) -> dict[str, Json]:
        return {"wish": self.text}


def issue(text: str, *paths: str) -> Issue:
    return Issue(name=text, files=tuple(IssuedFile(path, 0o600, f"<{path}>") for path in paths), request=Wish(text))


@dataclass
class MemoryFiles:
    """A machine whose files are a mapping from path to mode and content."""

    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    owners: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)
    mounts: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        return self.files[path][1] if path in self.files else None

    def has_folder(self, path: str) -> bool:
        return path in self.folders

    def resolve(self, path: str) -> str:
        return next(
            (path.replace(link, target, 1) for link, target in self.links.items() if path.startswith(link)), path
        )

    def owner(self, path: str) -> tuple[int, int, int] | None:
        if path in self.folders:
            return (0, 0, self.folders[path])
        if path not in self.files:
            return None
        uid, gid, mode = self.owners.get(path, (0, 0, None))
        return uid, gid, self.files[path][0] if mode is None else mode

    def entries(self, path: str) -> tuple[str, ...]:
        return tuple(sorted({each[len(path) + 1 :].partition("/")[0] for each in self.paths_below(path)}))

    def paths_below(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(each for each in (*self.files, *self.folders) if each.startswith(f"{path}/")))

    def change_owner(self, path: str, *, uid: int, gid: int, mode: int | None) -> None:
        self.owners[path] = (uid, gid, mode)

    def make_folder(self, path: str, *, mode: int) -> None:
        self.folders.setdefault(path, mode)

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int, expected: str | None = None) -> None:
        found = self.read(path)
        if expected is not None and expected != ("" if found is None else digest_of(found)):
            raise StalePlan(f"the plan is stale: {path} has moved")
        self.make_folder(path.rpartition("/")[0], mode=folder_mode)
        mode, _ = self.files.get(path, (new_mode, b""))
        self.files[path] = (mode, data)

    @contextmanager
    def new_file(self, path: str, *, mode: int, folder_mode: int) -> Iterator[Callable[[bytes], object]]:
        if path in self.files:
            raise GarboardError(f"{path} is there already", error_class="exists")
        written = bytearray()
        yield written.extend
        self.make_folder(path.rpartition("/")[0], mode=folder_mode)
        self.files[path] = (mode, bytes(written))

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def remove_folder(self, path: str) -> None:
        if not any(each.startswith(f"{path}/") for each in (*self.files, *self.folders)):
            self.folders.pop(path, None)

    def empty_folder(
        self,
        path: str,
        *,
        keeps: tuple[str, ...] = (),
        only: tuple[str, ...] = (),
        is_resolved: bool = False,
        mount: str = "",
    ) -> None:
        def goes(name: str) -> bool:
            return name.startswith(f"{path}/") and name.removeprefix(f"{path}/").split("/")[0] not in keeps

        self.files = {name: file for name, file in self.files.items() if not goes(name)}
        self.folders = {name: mode for name, mode in self.folders.items() if not goes(name)}

    def mounts_below(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(each for each in self.mounts if each.startswith(f"{path}/")))

    def unmount(self, path: str, *, flags: tuple[str, ...] = (), keeps: tuple[str, ...] = ()) -> None:
        self.mounts -= {each for each in self.mounts_below(path) if each not in keeps}


class WishIssuer:
    """Fulfils a wish by writing it into /wish."""

    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        assert isinstance(request, Wish)
        return {"/wish": request.text.encode()}


@dataclass
class FakeServices:
    running: set[str] = field(default_factory=set)
    is_broken: bool = False

    def is_active(self, service: str) -> bool:
        return service in self.running

    def start(self, service: str) -> None:
        if self.is_broken:
            raise GarboardError("the manager does not answer")
        self.running.add(service)

    restart = start

    def stop(self, service: str) -> None:
        self.running.discard(service)


@dataclass
class FakeTimers:
    """Timers that are enabled; each must have its unit files among the files of the machine."""

    files: "MemoryFiles"
    enabled: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)

    def is_timer_enabled(self, timer: str) -> bool:
        return timer in self.enabled

    def enable_timer(self, timer: str) -> None:
        self._note("enable", timer)
        self.enabled.add(timer)

    def disable_timer(self, timer: str) -> None:
        self._note("disable", timer)
        self.enabled.discard(timer)

    def forget_timer(self, timer: str) -> None:
        assert self.files.read(f"/etc/systemd/system/{timer}.timer") is None, "its files go first"
        self.log.append(f"forget {timer}")

    def _note(self, verb: str, timer: str) -> None:
        found = self.files.read(f"/etc/systemd/system/{timer}.timer")
        if found is None:
            raise GarboardError(f"Unit {timer}.timer could not be found.")
        self.log.append(f"{verb} {found.decode()}")


@dataclass
class FakeUnitFiles:
    """Services with unit files, and what they were told; one that is enabled runs."""

    files: "MemoryFiles"
    enabled: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)

    def is_active(self, service: str) -> bool:
        return service in self.running

    def is_service_enabled(self, service: str) -> bool:
        return service in self.enabled

    def enable_service(self, service: str) -> None:
        self._note("enable", service)
        self.enabled.add(service)
        self.running.add(service)

    def disable_service(self, service: str) -> None:
        self._note("disable", service)
        self.enabled.discard(service)
        self.running.discard(service)

    def forget_service(self, service: str) -> None:
        assert self.files.read(f"/etc/systemd/system/{service}.service") is None, "its file goes first"
        self.log.append(f"forget {service}")

    def _note(self, verb: str, service: str) -> None:
        found = self.files.read(f"/etc/systemd/system/{service}.service")
        assert found is not None, "its file is there while it is controlled"
        self.log.append(f"{verb} {found.decode()}")


@dataclass
class FakeLinks:
    """The addresses of a node, by link."""

    addresses: dict[str, str] = field(default_factory=dict)

    def has_address(self, address: str) -> bool:
        return address in self.addresses

    def add_address(self, address: str, link: str) -> None:
        self.addresses[address] = link

    def remove_address(self, address: str, link: str) -> None:
        self.addresses.pop(address, None)


@dataclass
class Diary:
    """A recorder that remembers."""

    lines: list[str] = field(default_factory=list)

    def begin(self, index: int, step: Step) -> None:
        self.lines.append(f"begin {index} {step.phase}")

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        self.lines.append(f"learned {index}")

    def end(self, index: int, step: Step, outcomes: Mapping[str, str]) -> None:
        self.lines.append(f"end {index} {step.phase}")
