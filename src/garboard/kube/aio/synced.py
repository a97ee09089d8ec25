"""Whether stores have been filled once: nothing is decided from a store that has not."""

import asyncio
from collections.abc import Iterable


class Synced:
    """Set once, and then for ever."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()


async def all_synced(each: Iterable[Synced]) -> None:
    """Wait until all are."""
    for one in each:
        await one.wait()
