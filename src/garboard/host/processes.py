"""Running other programs: to their end, line by line while they run, or detached."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from garboard.errors import GarboardError
from garboard.lazy import lazy_module
from garboard.values import dataclass

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")  # loads compression, which commands that run nothing do without

KEPT_LINES = 15


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended."""

    status: int
    stdout: str
    stderr: str


class CommandFailed(GarboardError):
    """A program that we ran ended with an error; the message carries the end of what it wrote."""

    default_class = "command-failed"


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float | None = None,
    check: bool = True,
) -> Finished:
    """Run `command` to its end; with `check`, a status other than 0 is an error that carries its output."""
    try:
        ended = subprocess.run(
            command, cwd=cwd, env=_environment(env), input=stdin, capture_output=True, timeout=timeout_s, check=False
        )
    except OSError as error:
        raise CommandFailed(
            f"cannot run {command[0]}: {error.strerror}", hint="is it installed and on PATH?"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{_shown(command)} did not end within {timeout_s:.0f} s") from error
    finished = Finished(
        ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
    )
    if check and finished.status != 0:
        raise _failure(command, finished.status, (finished.stderr or finished.stdout).splitlines())
    return finished


def stream(
    command: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    shown: str | None = None,
) -> Finished:
    """Run `command`, hand over each line of its output as it comes, and fail if it does; `shown` names it then."""
    last: deque[str] = deque(maxlen=200)
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env=_environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise CommandFailed(
            f"cannot run {command[0]}: {error.strerror}", hint="is it installed and on PATH?"
        ) from error
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                last.append(line.rstrip("\n"))
                on_line(last[-1])
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise _failure([shown] if shown else command, process.returncode, last)
    return Finished(process.returncode, "\n".join(last), "")


def start_detached(command: Sequence[str | Path], *, log: Path, keep: Sequence[int] = ()) -> int:
    """Start `command` in a session of its own, output in `log`, with the descriptors `keep`; return its pid."""
    arguments = [str(part) for part in command]
    program = _on_path(arguments[0])
    if program is None:
        raise CommandFailed(f"cannot run {arguments[0]}: not found", hint="is it installed and on PATH?")
    for descriptor in keep:
        os.set_inheritable(descriptor, True)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(program, arguments, os.environ, file_actions=actions, setsid=True)


def become(command: Sequence[str | Path]) -> NoReturn:
    """Replace this process by `command`, which gets our terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], [str(part) for part in command])


def find_program(name: str) -> Path | None:
    """Return where `name` is on PATH, or beside this Python where wheels put programs, or None."""
    found = _on_path(name) or _on_path(name, str(Path(sys.executable).parent))
    return Path(found) if found else None


def _on_path(name: str, path: str | None = None) -> str | None:
    return shutil.which(name, path=path)


def _environment(extra: Mapping[str, str] | None) -> dict[str, str] | None:
    return {**os.environ, **extra} if extra is not None else None


def _failure(command: Sequence[str | Path], status: int, lines: Sequence[str] | deque[str]) -> CommandFailed:
    said = "\n  ".join(list(lines)[-KEPT_LINES:])
    return CommandFailed(f"{_shown(command)} ended with status {status}" + (f":\n  {said}" if said else ""))


def _shown(command: Sequence[str | Path]) -> str:
    text = " ".join(str(part) for part in command)
    return text if len(text) <= 160 else text[:157] + "…"
