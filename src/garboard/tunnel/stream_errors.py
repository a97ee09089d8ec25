"""Streams that ended otherwise than well, counted under the stock programs' name and labels."""

from collections.abc import Iterable
from typing import Final

from garboard.rpc import Status, StatusCode
from garboard.tunnel.metrics import Counter

# As Go writes them, which is how dashboards ask for them.
_GO_NAMES: Final = {
    **{code: code.name.title().replace("_", "") for code in StatusCode},
    StatusCode.CANCELLED: "Canceled",
    StatusCode.OK: "OK",
}


class StreamErrors:
    """By segment, code and packet type, which nobody knows of a packet that did not come."""

    def __init__(self) -> None:
        self.counter = Counter("segment", "code", "packet_type")

    def ended(self, segment: str, status: Status) -> None:
        if not status.is_ok:
            self.counter.of(segment, _GO_NAMES[status.code], "Unknown").value += 1

    def not_sent(self, segment: str, status: Status, packet_types: Iterable[str]) -> None:
        """Packets that the end of their stream overtook."""
        if not status.is_ok:
            for packet_type in packet_types:
                self.counter.of(segment, _GO_NAMES[status.code], packet_type).value += 1
