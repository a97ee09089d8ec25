"""What two ends of ours agree on beyond Konnectivity: the direction from nodes, credit, and who is there.

It stands in metadata of the Connect call, which stock peers ignore. What was not agreed on is never used: a stock peer
gets no packet that it does not know.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from garboard.errors import InvalidValue
from garboard.rpc import Metadata
from garboard.tunnel.destinations import AllowList, Destination

FEATURES_KEY: Final = "garboard-tunnel"
TARGETS_KEY: Final = "garboard-targets"
REFUSED_KEY: Final = "garboard-refused"
# Enough for one connection to fill a fast link, and little enough for a thousand readers that have stopped.
WINDOW_BYTES: Final = 1024 * 1024
_LEAST_WINDOW: Final = 64 * 1024
_MOST_WINDOW: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one end may do on a stream; by default what a stock peer expects."""

    takes_dials: bool = False  # whether DIAL_REQ may go from the agent to the server
    send_window: int = 0  # bytes that each connection may send before it gets more credit; 0 is without credit
    receive_window: int = 0
    tells_servers: bool = False  # whether an agent may ask how many servers there are, and which
    refused: tuple[Destination, ...] = ()  # of the agent's targets, by this server

    @property
    def has_credit(self) -> bool:
        return self.send_window > 0


STOCK: Final = Terms()


def offer(targets: Iterable[Destination]) -> Metadata:
    """What an agent adds to its Connect call."""
    wanted = ",".join(map(str, targets))
    return ((FEATURES_KEY, _features()), *(((TARGETS_KEY, wanted),) if wanted else ()))


def answer(asked: Metadata, allowed: AllowList) -> tuple[Metadata, Terms]:
    """A server's answer to that offer and the terms that follow; stock terms for an agent that offered nothing."""
    features = _read_features(asked)
    window = _window(features)
    if not features or not window:
        return (), STOCK
    refused = allowed.refused(_read_destinations(asked, TARGETS_KEY))
    terms = Terms(
        takes_dials="reverse" in features,
        send_window=window,
        receive_window=WINDOW_BYTES,
        tells_servers="servers" in features,
        refused=refused,
    )
    told = ((REFUSED_KEY, ",".join(map(str, refused))),) if refused else ()
    return ((FEATURES_KEY, _features()), *told), terms


def agreed(answered: Metadata) -> Terms:
    """The terms of an agent after a server's answer."""
    features = _read_features(answered)
    window = _window(features)
    if not features or not window:
        return STOCK
    return Terms(
        takes_dials="reverse" in features,
        send_window=window,
        receive_window=WINDOW_BYTES,
        tells_servers="servers" in features,
        refused=tuple(_read_destinations(answered, REFUSED_KEY)),
    )


def _features() -> str:
    return f"reverse=1,credit={WINDOW_BYTES},servers=1"


def _read_features(metadata: Metadata) -> dict[str, str]:
    """The features that are named; words that are not known mean nothing."""
    words = (word.partition("=") for word in _value(metadata, FEATURES_KEY).split(","))
    return {name.strip(): value for name, _, value in words if name.strip()}


def _window(features: dict[str, str]) -> int:
    text = features.get("credit", "")
    window = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
    return window if _LEAST_WINDOW <= window <= _MOST_WINDOW else 0


def _read_destinations(metadata: Metadata, key: str) -> Iterable[Destination]:
    for text in _value(metadata, key).split(","):
        try:
            yield Destination.parse(text)
        except InvalidValue:
            continue  # it will be refused when it is dialled


def _value(metadata: Metadata, key: str) -> str:
    values = [value for name, value in metadata if name == key]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""
