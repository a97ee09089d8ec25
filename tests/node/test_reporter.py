import pytest

from garboard.node.reporter import SteadyReporter
from tests.support.node.reporters import MemoryReporter


class Lost(MemoryReporter):
    """A reporter whose reader has gone."""

    def report(self, line: str, /) -> None:
        raise BrokenPipeError(line)

    def show(self, text: str, /) -> None:
        raise OSError(5, "Input/output error")

    def ask(self, question: str, /) -> str:
        raise BrokenPipeError(question)


def test_what_cannot_be_delivered_is_dropped_but_a_question_is_not() -> None:
    steady = SteadyReporter(Lost())
    steady.report("progress")
    steady.show("data")
    with pytest.raises(BrokenPipeError):
        steady.ask("really? ")


def test_what_can_be_delivered_is_passed_on() -> None:
    reporter = MemoryReporter(answers=["yes"])
    steady = SteadyReporter(reporter)
    steady.report("progress")
    steady.show("data")
    assert steady.ask("really? ") == "yes"
    assert (reporter.lines, reporter.shown) == (["progress", "really? "], ["data"])
