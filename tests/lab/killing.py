"""Runs in a node that do not survive a certain point of their journal."""

from dataclasses import dataclass
from typing import Literal

_KILLING = """
import os, signal
from garboard.engine.journal import Journal
told = Journal.{moment}
def telling(self, index, *more):
    if "{moment}" == "end" and index == {index}: os.kill(os.getpid(), signal.SIGKILL)
    told(self, index, *more)
    if index == {index}: os.kill(os.getpid(), signal.SIGKILL)
Journal.{moment} = telling
"""


@dataclass(frozen=True)
class KillPoint:
    """Where a run is killed: when the begin of a step is on disk, or when it is done and its end is not yet."""

    moment: Literal["begin", "end"]
    index: int

    def of(self, garboard: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command that runs garboard, whose last word is Python code, with this end."""
        return (*garboard[:-1], _KILLING.format(moment=self.moment, index=self.index) + garboard[-1])
