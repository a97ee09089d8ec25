"""The service manager of this machine: systemd, else OpenRC, else nobody."""

import os
from collections.abc import Sequence

from garboard.errors import GarboardError
from garboard.host import processes
from garboard.host.root import at, changed_root
from garboard.values import dataclass

TIMEOUT_S = 120.0
LOG_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Commands of one service manager; `{}` stands for the service. Each verb is a list of commands."""

    name: str
    start_commands: tuple[tuple[str, ...], ...]
    stop_commands: tuple[tuple[str, ...], ...]
    status_command: tuple[str, ...]
    active_words: tuple[str, ...]  # what the status says of a service that runs, or soon will
    exists_command: tuple[str, ...]
    missing_words: tuple[str, ...]
    enabled_command: tuple[str, ...]
    is_enabled_listed: bool = False

    def start(self, service: str) -> None:
        """Start it with its newest settings; one that runs is started again."""
        self._run(self.start_commands, service)

    restart = start

    def stop(self, service: str) -> None:
        self._run(self.stop_commands, service)

    def is_active(self, service: str) -> bool:
        words = self.state(service).split()
        return any(word in words for word in self.active_words)

    def exists(self, service: str) -> bool:
        """Say whether there is such a service at all."""
        command = _for(service, self.exists_command)
        try:
            ended = processes.run(command, timeout_s=TIMEOUT_S, check=False)
        except GarboardError:
            return False
        return not any(words in ended.stdout + ended.stderr for words in self.missing_words)

    def is_enabled(self, service: str) -> bool:
        """Say whether the service starts with the machine."""
        try:
            ended = processes.run(_for(service, self.enabled_command), timeout_s=TIMEOUT_S, check=False)
        except GarboardError:
            return False
        # OpenRC lists every service, systemd answers for one by its status.
        return service in ended.stdout if self.is_enabled_listed else ended.status == 0

    def state(self, service: str) -> str:
        """Return what it calls the state of a service, such as `active`; `unknown` if it says nothing."""
        try:
            told = processes.run(_for(service, self.status_command), timeout_s=TIMEOUT_S, check=False).stdout
        except GarboardError:
            return "unknown"
        return told.strip() or "unknown"

    def log(self, service: str, lines: int) -> list[str]:
        """Return the end of what a service wrote; nothing where the machine keeps no journal."""
        if not processes.find_program("journalctl"):
            return []
        command = ["journalctl", "-u", service, "-n", str(lines), "--no-pager", "-o", "cat"]
        try:
            return processes.run(command, timeout_s=LOG_TIMEOUT_S, check=False).stdout.splitlines()[-lines:]
        except GarboardError:
            return []

    def _run(self, commands: Sequence[tuple[str, ...]], service: str) -> None:
        for command in commands:
            processes.run(_for(service, command), timeout_s=TIMEOUT_S)


def _for(service: str, command: tuple[str, ...]) -> list[str]:
    root = changed_root()
    return [*(("chroot", str(root)) if root else ()), *(part.format(service) for part in command)]


def _has(program: str) -> bool:
    """Whether a program is there, on the machine whose root is in use."""
    if changed_root() is None:
        return processes.find_program(program) is not None
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(at(os.path.join(folder, program)), os.X_OK) for folder in folders)  # noqa: PTH118


_SYSTEMD = ServiceManager(
    "systemd",
    (("systemctl", "daemon-reload"), ("systemctl", "restart", "{}")),
    (("systemctl", "stop", "{}"),),
    ("systemctl", "is-active", "{}"),
    ("active", "activating"),
    ("systemctl", "status", "{}"),
    ("Loaded: not-found", "could not be found"),
    ("systemctl", "is-enabled", "{}"),
)
_OPENRC = ServiceManager(
    "OpenRC",
    (("rc-service", "{}", "restart"),),
    (("rc-service", "{}", "stop"),),
    ("rc-service", "{}", "status"),
    ("started", "starting"),
    ("rc-service", "{}", "status"),
    ("does not exist",),
    ("rc-update", "show", "default"),
    is_enabled_listed=True,
)


def service_manager() -> ServiceManager | None:
    """Return the service manager that is there."""
    if _has("systemctl"):
        return _SYSTEMD
    if _has("rc-service") and _has("rc-update"):
        return _OPENRC
    return None
