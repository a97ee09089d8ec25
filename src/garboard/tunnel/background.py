"""Endless jobs beside the work of an end, owned by a task group: one that fails takes the end with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def beside(*jobs: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the jobs while the context is open. What the body raises comes out as it is, not in a group."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        try:
            yield
        except Exception as error:  # noqa: BLE001  # raised below, where the group does not wrap it
            failure = error
        finally:
            for task in tasks:
                task.cancel()
    if failure is not None:
        raise failure
