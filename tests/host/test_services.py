import asyncio
import signal
from pathlib import Path

from garboard.host.services import child_of, run_briefly, send_signal, start_service


def test_output_goes_to_the_log_and_the_status_comes_back(tmp_path: Path) -> None:
    async def scene() -> int:
        service = await start_service(["sh", "-c", "echo out; echo err >&2; exit 4"], log=tmp_path / "log")
        return await service.wait()

    assert asyncio.run(scene()) == 4
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_the_first_line_tells_that_a_program_is_ready(tmp_path: Path) -> None:
    async def scene() -> tuple[str, str]:
        ready = await start_service(["sh", "-c", "read line; echo $line; cat"], log=tmp_path / "log", stdin=b"ready\n")
        said = await ready.first_line(10)
        ended = await start_service(["true"], log=tmp_path / "log", stdin=b"")
        nothing = await ended.first_line(10)
        await ended.wait()
        await ready.wait()
        return said, nothing

    assert asyncio.run(scene()) == ("ready", "")


def test_a_child_is_found_and_can_be_signalled(tmp_path: Path) -> None:
    async def scene() -> int:
        parent = await start_service(["sh", "-c", "sleep 60; exit 9"], log=tmp_path / "log")
        while (child := child_of(parent.pid)) is None:
            await asyncio.sleep(0.01)
        assert send_signal(child, signal.SIGTERM)
        return await parent.wait()

    assert asyncio.run(scene()) == 9


def test_a_process_that_has_gone_cannot_be_signalled(tmp_path: Path) -> None:
    async def scene() -> bool:
        service = await start_service(["true"], log=tmp_path / "log")
        await service.wait()
        return send_signal(service.pid, signal.SIGTERM)

    assert asyncio.run(scene()) is False


def test_brief_commands_take_input_and_return_everything_they_wrote() -> None:
    assert asyncio.run(run_briefly(["sh", "-c", "cat; echo err >&2; exit 2"], "in\n")) == (2, "in\nerr\n")
