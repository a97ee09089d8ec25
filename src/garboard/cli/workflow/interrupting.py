"""Ctrl-C and SIGTERM while a plan is carried out: a step that changes something is finished, a wait is not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

from garboard.engine import AwaitGate, PullImage, Step, TakeTurn
from garboard.errors import GarboardError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# These only wait: leaving them changes nothing, and finishing them could take minutes.
_WAITS = (AwaitGate, TakeTurn, PullImage)


class Interrupted(GarboardError):
    """Somebody wants the run to stop; it stands between two steps."""

    exit_code: ClassVar[int] = 130
    default_class = "interrupted"


class Interruption:
    """Stands around steps, and stops the run between two of them."""

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take the signals for as long as a plan is carried out."""
        former = {each: signal.signal(each, self._asked) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in former.items():
                signal.signal(each, handler)

    @contextmanager
    def around(self, step: Step) -> Iterator[None]:
        if self._is_asked:
            raise Interrupted(f"interrupted before {step.phase}")
        self._is_waiting = isinstance(step.action, _WAITS)
        try:
            yield
        finally:
            self._is_waiting = False

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        # The second one is meant: whoever asks twice does not want to wait for the step.
        if self._is_asked or self._is_waiting:
            raise Interrupted("interrupted")
        self._is_asked = True
