"""Running another program with its standard streams as pipes: passed on as it writes, until a deadline.

Memory does not grow with what the program writes, and no stream waits for another one.
"""

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, TypeAlias

from garboard.host.processes import CommandFailed
from garboard.retry import Deadline

Stream: TypeAlias = Literal["stdout", "stderr"]
Take: TypeAlias = Callable[[Stream, bytes], None]

_CHUNK_BYTES = 65_536
# A program that has ended may leave another behind that keeps its streams open, as ssh leaves a shared connection.
_DRAIN_S = 1.0
_LOOK_EVERY_S = 0.25
_END_WITHIN_S = 5.0


def run_piped(
    command: Sequence[str],
    take: Take,
    *,
    stdin: bytes = b"",
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
) -> int | None:
    """Run `command`, pass on what it writes, and return its status as `subprocess` does; None after a timeout.

    `env` is added to our environment, and `keep` are descriptors that it gets open, such as that of a lock.

    It has a session of its own: a Ctrl-C at our terminal does not reach it, and it cannot ask for a password there.
    After a timeout, and when `take` raises, it is ended with all that it has started in that session.
    """
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, cwd=cwd, env={**os.environ, **env} if env is not None else None, pass_fds=keep,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandFailed(f"cannot run {command[0]}: {reason}", hint="is it installed and on PATH?") from error
    with process:
        try:
            if _Pipes(process, take, stdin).pass_on(timeout_s):
                return process.wait()
            _end(process)
            return None
        except BaseException:
            _end(process)
            raise


class _Pipes:
    """The streams of a process that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", take: Take, stdin: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._take, self._unsent = process, take, memoryview(stdin)
        self._stdin: IO[bytes] = process.stdin
        self._sources: dict[IO[bytes], Stream] = {process.stdout: "stdout", process.stderr: "stderr"}

    def pass_on(self, timeout_s: float) -> bool:
        """Pass on until the process has ended and what it wrote is read; False if it has not ended in time."""
        end, is_draining = Deadline.after(timeout_s), False
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while selector.get_map() and (left_s := end.left_s()):
                for key, _ in selector.select(min(left_s, _LOOK_EVERY_S)):
                    self._serve(selector, key.fileobj)
                if not is_draining and self._process.poll() is not None:
                    end, is_draining = Deadline.after(_DRAIN_S), True
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(end.left_s())
        return self._process.returncode is not None

    def _register(self, selector: selectors.BaseSelector) -> None:
        for each in self._sources:
            selector.register(each, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)
        selector.register(self._stdin, selectors.EVENT_WRITE)

    def _serve(self, selector: selectors.BaseSelector, stream: object) -> None:
        if stream is self._stdin:
            if self._is_sent():
                selector.unregister(self._stdin)
                self._stdin.close()
            return
        source = next(each for each in self._sources if each is stream)
        data = os.read(source.fileno(), _CHUNK_BYTES)
        if data:
            self._take(self._sources[source], data)
        else:
            selector.unregister(source)
            del self._sources[source]

    def _is_sent(self) -> bool:
        try:
            sent = os.write(self._stdin.fileno(), self._unsent[:_CHUNK_BYTES]) if self._unsent else 0
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True  # it wants no more, and its status says whether that was well
        self._unsent = self._unsent[sent:]
        return not self._unsent


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the session of a process, by force if it takes long."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_END_WITHIN_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
