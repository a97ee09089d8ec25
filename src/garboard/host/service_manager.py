"""The service manager of this machine: systemd, else OpenRC, else none."""

import os
import stat
from collections.abc import Sequence

from garboard.errors import GarboardError, NotReady
from garboard.host import processes
from garboard.host.root import changed_root, stat_path
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
    # Unit files, by the name of the unit with its ending; a service manager that reads none has no such commands.
    enable_commands: tuple[tuple[str, ...], ...] = ()
    disable_commands: tuple[tuple[str, ...], ...] = ()
    forget_commands: tuple[tuple[str, ...], ...] = ()

    def start(self, service: str) -> None:
        """Start the service with its newest settings; a running one is restarted."""
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

    def enable_timer(self, timer: str) -> None:
        """Have a timer fire from now on and after each start of the machine; its newest unit files count."""
        self._require_timers()
        self._run(self.enable_commands, f"{timer}.timer")

    def disable_timer(self, timer: str) -> None:
        """Have a timer not fire any more; it is no failure if there is none."""
        self._require_timers()
        if self.exists(f"{timer}.timer"):
            self._run(self.disable_commands, f"{timer}.timer")

    def forget_timer(self, timer: str) -> None:
        """Have the service manager see that the unit files of a timer are gone: until then it knows them still."""
        self._require_timers()
        self._run(self.forget_commands, f"{timer}.timer")

    def is_timer_enabled(self, timer: str) -> bool:
        return bool(self.enable_commands) and self.is_enabled(f"{timer}.timer")

    def _require_timers(self) -> None:
        if not self.enable_commands:
            raise NotReady(f"{self.name} has no timers", hint="timers need systemd", error_class="no-timers")

    def enable_service(self, service: str) -> None:
        """Have a service run now and after each start of the machine; its newest unit file counts."""
        self._require_unit_files(service)
        self._run(self.enable_commands, f"{service}.service")

    def disable_service(self, service: str) -> None:
        """Stop a service and have it not start any more; it is no failure if there is none."""
        self._require_unit_files(service)
        if self.exists(f"{service}.service"):
            self._run(self.disable_commands, f"{service}.service")

    def forget_service(self, service: str) -> None:
        """Have the service manager see that the unit file of a service is gone."""
        self._require_unit_files(service)
        self._run(self.forget_commands, f"{service}.service")

    def is_service_enabled(self, service: str) -> bool:
        return bool(self.enable_commands) and self.is_enabled(f"{service}.service")

    @property
    def reads_unit_files(self) -> bool:
        return bool(self.enable_commands)

    def _require_unit_files(self, service: str) -> None:
        if not self.reads_unit_files:
            raise NotReady(
                f"{self.name} reads no unit files, so {service} cannot be one of its services",
                hint="the machine needs systemd; or run it as a static pod",
                error_class="no-unit-files",
            )

    def state(self, service: str) -> str:
        """Return what it calls the state of a service, such as `active`; `unknown` if it says nothing."""
        try:
            answer = processes.run(_for(service, self.status_command), timeout_s=TIMEOUT_S, check=False).stdout
        except GarboardError:
            return "unknown"
        return answer.strip() or "unknown"

    def log(self, service: str, lines: int) -> list[str]:
        """Return the end of a service's log; nothing if the machine has no systemd journal."""
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
    return any(_is_program(f"{folder}/{program}") for folder in folders)


def _is_program(path: str) -> bool:
    try:
        mode = stat_path(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


_SYSTEMD = ServiceManager(
    "systemd",
    (("systemctl", "daemon-reload"), ("systemctl", "restart", "{}")),
    (("systemctl", "stop", "{}"),),
    ("systemctl", "is-active", "{}"),
    ("active", "activating"),
    ("systemctl", "status", "{}"),
    ("Loaded: not-found", "could not be found"),
    ("systemctl", "is-enabled", "{}"),
    # Started again, and not only started: a timer that has fired is active still, and would stay elapsed.
    enable_commands=(
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", "{}"),
        ("systemctl", "restart", "{}"),
    ),
    disable_commands=(("systemctl", "disable", "--now", "{}"),),
    forget_commands=(("systemctl", "daemon-reload"),),
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
