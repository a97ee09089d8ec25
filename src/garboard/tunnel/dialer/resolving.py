"""Names of endpoints as addresses: each name looked up once at a time, in a thread of its own, and kept for seconds.

The system's resolver blocks for as long as its servers are silent, and cannot be stopped. So a slow name never has a
thread that another name waits for, and every tenant has a resolver of its own.
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

MOST_AWAITED: Final = 64  # names that dials wait for
MOST_THREADS: Final = 256  # with those that nobody waits for any more
FOUND_S: Final = 5.0
MISSING_S: Final = 1.0
MOST_KEPT: Final = 1024

Addresses = tuple[str, ...]
LookUp = Callable[[str], Addresses]  # blocks; raises `OSError`


class TooManyLookUps(OSError):
    """No more names can be looked up at once."""


def system_look_up(host: str) -> Addresses:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


class _Running:
    """One look-up: its outcome once there is one, and how many dials wait for it."""

    __slots__ = ("outcome", "waiting")

    def __init__(self, outcome: "asyncio.Future[Addresses | OSError]") -> None:
        self.outcome = outcome
        self.waiting = 0


class Resolver:
    """The look-ups of one tenant, or of an agent."""

    def __init__(self, look_up: LookUp = system_look_up, clock: Callable[[], float] = time.monotonic) -> None:
        self._look_up = look_up
        self._clock = clock
        self._running: dict[str, _Running] = {}
        self._kept: dict[str, tuple[Addresses | OSError, float]] = {}  # with the moment until when it is good

    async def addresses(self, host: str) -> Addresses:
        """The addresses of a name. Raises `OSError`; one who stops waiting frees the place."""
        outcome = self._known(host)
        if outcome is None:
            running = self._running.get(host)
            if running is None or not running.waiting:
                self._check_room()
            running = running or self._start(host)
            running.waiting += 1
            try:
                outcome = await asyncio.shield(running.outcome)
            finally:
                running.waiting -= 1
        if isinstance(outcome, OSError):
            raise outcome.with_traceback(None)  # it may be raised many times
        return outcome

    def _known(self, host: str) -> Addresses | OSError | None:
        outcome, until = self._kept.get(host, (None, 0.0))
        return outcome if self._clock() < until else None

    def _check_room(self) -> None:
        awaited = sum(each.waiting > 0 for each in self._running.values())
        if awaited >= MOST_AWAITED or len(self._running) >= MOST_THREADS:
            raise TooManyLookUps("too many names are being looked up")

    def _start(self, host: str) -> _Running:
        loop = asyncio.get_running_loop()
        running = self._running[host] = _Running(loop.create_future())

        def run() -> None:
            outcome: Addresses | OSError
            try:
                outcome = self._look_up(host)
            except OSError as error:
                outcome = error
            except UnicodeError:
                outcome = socket.gaierror(socket.EAI_NONAME, "the name cannot be encoded")
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._end, host, running, outcome)

        try:
            threading.Thread(target=run, name="look-up", daemon=True).start()
        except RuntimeError as error:  # the machine lets this process have no more; nothing would ever end the look-up
            del self._running[host]
            raise TooManyLookUps("no thread is left to look it up") from error
        return running

    def _end(self, host: str, running: _Running, outcome: Addresses | OSError) -> None:
        del self._running[host]
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[host] = outcome, self._clock() + (MISSING_S if isinstance(outcome, OSError) else FOUND_S)
        if not running.outcome.done():
            running.outcome.set_result(outcome)
