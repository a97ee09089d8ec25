"""Addresses to listen on, as options name them."""

from garboard.errors import BadUsage


def parse_address(option: str, text: str, example: str) -> tuple[str, int] | None:
    """Return host and port; None where nothing is given."""
    host, _, port = text.rpartition(":")
    if not text:
        return None
    if not port.isdigit() or int(port) > 65535:
        raise BadUsage(f"{option} {text!r} is no address", hint=f"write {example}; port 0 takes a free one")
    return host.strip("[]"), int(port)
