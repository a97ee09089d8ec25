"""What a node refuses while it watches an unconfirmed change: what is built on that could not be taken back with it."""

from typing import Protocol

from garboard.change.outcomes import ChangeInProgress

ARMED = "/var/lib/garboard/change/armed.json"
_HINT = "garboard change confirm keeps it; garboard change status and garboard status say how far it is"


class FileReader(Protocol):
    def read(self, path: str) -> bytes | None: ...


def refuse_armed(machine: FileReader) -> None:
    """Refuse to begin anything on a node that watches an unconfirmed change."""
    if machine.read(ARMED) is not None:
        raise ChangeInProgress("a change of this node waits to be confirmed, or to be told how it ended", hint=_HINT)
