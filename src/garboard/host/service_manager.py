"""The service manager of this machine: systemd, else OpenRC, else nobody."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from garboard.errors import GarboardError
from garboard.host import processes
from garboard.host.root import at, changed_root

TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Commands of one service manager; `{}` stands for the service. Each verb is a list of commands."""

    name: str
    start_commands: tuple[tuple[str, ...], ...]
    stop_commands: tuple[tuple[str, ...], ...]
    status_command: tuple[str, ...]
    active_words: tuple[str, ...]  # what the status says of a service that runs, or soon will

    def start(self, service: str) -> None:
        """Start it with its newest settings; one that runs is started again."""
        self._run(self.start_commands, service)

    restart = start

    def stop(self, service: str) -> None:
        self._run(self.stop_commands, service)

    def is_active(self, service: str) -> bool:
        try:
            told = processes.run(_for(service, self.status_command), timeout_s=TIMEOUT_S, check=False).stdout
        except GarboardError:
            return False
        return any(word in told.split() for word in self.active_words)

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
)
_OPENRC = ServiceManager(
    "OpenRC",
    (("rc-service", "{}", "restart"),),
    (("rc-service", "{}", "stop"),),
    ("rc-service", "{}", "status"),
    ("started", "starting"),
)


def service_manager() -> ServiceManager | None:
    """Return the service manager that is there."""
    if _has("systemctl"):
        return _SYSTEMD
    if _has("rc-service") and _has("rc-update"):
        return _OPENRC
    return None
