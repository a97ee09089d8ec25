"""Edges for tests of how a run is wired."""

from typing import Any


class EveryEdge:
    """Satisfies every Protocol of the interpreters, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_kwargs: None
