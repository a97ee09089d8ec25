"""Conversations as text: what comes in stands at the margin, what must go out is indented below it.

    frontend F: DIAL_REQ tcp 10.0.0.1:80 random=7
        agent A: DIAL_REQ tcp 10.0.0.1:80 random=7

A `#` begins a comment, an empty line separates conversations' parts and means nothing.
"""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet


def parse_packet(text: str) -> Packet:
    name, *words = shlex.split(text)
    named = dict(word.partition("=")[::2] for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    connect_id, random, error = int(named.get("id", 0)), int(named.get("random", 0)), named.get("error", "")
    match name:
        case "DIAL_REQ":
            return packets.DialRequest(plain[0], plain[1], random)
        case "DIAL_RSP":
            return packets.DialResponse(error, connect_id, random)
        case "CLOSE_REQ":
            return packets.CloseRequest(connect_id)
        case "CLOSE_RSP":
            return packets.CloseResponse(error, connect_id)
        case "DATA":
            return packets.Data(connect_id, "", plain[0].encode())
        case "DIAL_CLS":
            return packets.CloseDial(random)
        case "DRAIN":
            return packets.Drain()
        case "CREDIT":
            return packets.Credit(connect_id, int(named["size"]))
        case _:
            raise ValueError(f"no packet is called {name!r}")


def format_packet(packet: Packet | None) -> str:
    """The inverse of `parse_packet`."""
    assert packet is not None
    words = [packets.type_of(packet).name]
    match packet:
        case packets.DialRequest(protocol, address):
            words += [protocol, address]
        case packets.Data(_, _, data):
            words.append(data.decode())
        case _:
            pass  # what the other packets hold is named below
    for name, attribute in (("id", "connect_id"), ("random", "random"), ("error", "error")):
        value = getattr(packet, attribute, None)
        if value:
            words.append(f"{name}={value}" if name != "error" else f"error={shlex.quote(value)}")
    return " ".join(words)


def exchanges(script: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Every input with its line number and the outputs that must follow it."""
    current: tuple[int, str, list[str]] | None = None
    for number, line in enumerate(script.read_text().splitlines(), start=1):
        text = line.partition("#")[0].rstrip()
        if not text:
            continue
        if text[0].isspace():
            assert current is not None
            current[2].append(text.strip())
            continue
        if current is not None:
            yield current
        current = (number, text, [])
    if current is not None:
        yield current


def play(script: Path, say: Callable[[str], list[str]]) -> None:
    """Give every input to `say` and compare what it answers."""
    played = 0
    for number, text, expected in exchanges(script):
        assert say(text) == expected, f"{script.name}:{number}: {text}"
        played += 1
    assert played, f"{script.name} says nothing"
