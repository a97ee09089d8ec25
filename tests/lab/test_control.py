import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.lab.control import SupervisorGone, answer_one, ask, short_path


async def _dispatch(request: dict[str, Json]) -> Json:
    if request["do"] == "fail":
        raise GarboardError("node cp1 is not running", hint="start it", error_class="node-stopped")
    if request["do"] == "break":
        raise KeyError("surprise")
    return {"echo": request["do"]}


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Path]:
    """A server behind a socket whose path is far longer than the kernel takes."""
    folder = tmp_path / ("deep/" * 30)
    folder.mkdir(parents=True)
    path = folder / "control.sock"
    assert len(str(path)) > 108
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        with short_path(path) as short:
            await asyncio.start_unix_server(lambda r, w: answer_one(r, w, _dispatch), short)

    loop.run_until_complete(serve())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield path
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_an_answer_comes_back(control: Path) -> None:
    assert ask(control, {"do": "hello"}) == {"echo": "hello"}


def test_an_error_arrives_as_the_error_it_was(control: Path) -> None:
    with pytest.raises(GarboardError, match="node cp1 is not running") as raised:
        ask(control, {"do": "fail"})
    assert (raised.value.hint, raised.value.error_class) == ("start it", "node-stopped")


def test_a_bug_in_the_supervisor_is_an_answer_and_not_its_end(control: Path) -> None:
    with pytest.raises(GarboardError, match="the supervisor failed"):
        ask(control, {"do": "break"})
    assert ask(control, {"do": "again"}) == {"echo": "again"}


def test_nobody_behind_the_socket_has_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(SupervisorGone, match="does not answer"):
        ask(tmp_path / "control.sock", {"do": "ping"})
