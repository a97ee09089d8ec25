"""Workers on a queue: each key is worked on until that succeeds, whatever goes wrong on the way."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from garboard.errors import GarboardError
from garboard.kube.aio.work_queue import QueueClosed, WorkQueue

log = logging.getLogger("garboard.kube")

KeyT = TypeVar("KeyT")


def _logged(key: object, error: Exception, pause_s: float) -> None:
    log.warning("work.failed key=%s again_in_s=%.3f reason=%r", key, pause_s, str(error))


async def run_workers(
    queue: WorkQueue[KeyT],
    count: int,
    work: Callable[[KeyT], Awaitable[float | None]],
    *,
    report: Callable[[KeyT, Exception, float], None] = _logged,
    pause_for: Callable[[GarboardError], float | None] = lambda _error: None,
) -> None:
    """Have so many workers on a queue, until it is shut down and empty.

    `work` returns in how many seconds its key wants work again, None for not before something changes. A key whose work
    fails comes again after its pause, or after what `pause_for` says of the error. `report` hears of failures; one that
    is no `GarboardError` is a bug, and is logged with its traceback, but the other keys go on.
    """
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_worker(queue, work, report, pause_for))


async def _worker(
    queue: WorkQueue[KeyT],
    work: Callable[[KeyT], Awaitable[float | None]],
    report: Callable[[KeyT, Exception, float], None],
    pause_for: Callable[[GarboardError], float | None],
) -> None:
    while True:
        try:
            key = await queue.get()
        except QueueClosed:
            return
        try:
            again_s = await work(key)
        except GarboardError as error:
            given_s = pause_for(error)
            if given_s is not None:
                queue.add_after(key, given_s)
            report(key, error, given_s if given_s is not None else queue.add_failed(key))
        except Exception as error:
            log.exception("work.bug key=%s", key)
            report(key, error, queue.add_failed(key))
        else:
            queue.forget(key)
            if again_s is not None:
                queue.add_after(key, again_s)
        finally:
            queue.done(key)
