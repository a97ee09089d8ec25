import os
import sys
from collections.abc import Iterator
from typing import TextIO

import pytest

from garboard.cli.console import ConsoleReporter


@pytest.fixture
def lost() -> Iterator[TextIO]:
    """A stream into a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w", buffering=1)
    yield stream
    stream.close()


def test_progress_that_nobody_takes_is_dropped(lost: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", lost)
    for _ in range(2):
        ConsoleReporter().report("[certs] issue ca")
    lost.flush()


def test_data_that_nobody_takes_is_a_failure_once_and_no_second_one_at_exit(
    lost: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", lost)
    with pytest.raises(BrokenPipeError):
        ConsoleReporter().show("plan: 3 steps\n")
    lost.flush()


def test_stream_that_is_no_file_is_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleReporter().report("progress")
    ConsoleReporter().show("data")
    assert capsys.readouterr() == ("data", "progress\n")
