import asyncio

import pytest

from garboard.errors import NotReady
from garboard.tunnel.background import beside


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _fail() -> None:
    raise ZeroDivisionError


def test_jobs_end_with_the_body_and_its_error_is_not_wrapped() -> None:
    async def scenario() -> None:
        before = len(asyncio.all_tasks())
        async with beside(_for_ever(), _for_ever()):
            assert len(asyncio.all_tasks()) == before + 2
        assert len(asyncio.all_tasks()) == before
        async with beside(_for_ever()):
            raise NotReady("no")

    with pytest.raises(NotReady):
        asyncio.run(scenario())


def test_job_that_fails_ends_the_body() -> None:
    async def scenario() -> None:
        async with beside(_fail()):
            await asyncio.sleep(10)

    with pytest.raises(ExceptionGroup) as failed:
        asyncio.run(scenario())
    assert isinstance(failed.value.exceptions[0], ZeroDivisionError)
