"""Text of others in log lines: whatever a peer sends stays the value of one field on one line."""

import logging
from collections.abc import Mapping
from typing import Any, Final

AUDIT: Final = "garboard.tunnel.audit"  # the logger whose lines no verbosity drops
MAX_TEXT: Final = 300
_SHORT_NAMES: Final = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU"}


def one_word(text: str) -> str:
    """A name or an address, so that it stays one word of its line and cannot pass for another."""
    text = text[:MAX_TEXT]
    return text if text.isprintable() and not set(text) & set(" ='\"") else repr(text).replace(" ", "\\x20")


def quoted(text: str) -> str:
    """A sentence, in quotes that nothing inside of it can close."""
    inner = text[:MAX_TEXT].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_printable(inner)}"'


def subject_of(certificate: Mapping[str, Any] | None) -> str:
    """Whom a verified certificate names, as `getpeercert` gives it: its subject, or else its first name."""
    if not certificate:
        return ""
    pairs = [pair for part in certificate.get("subject", ()) for pair in part]
    if pairs:
        return ",".join(f"{_SHORT_NAMES.get(name, name)}={value}" for name, value in pairs)
    return next((f"{kind}:{value}" for kind, value in certificate.get("subjectAltName", ())), "")


class OneLineFormatter(logging.Formatter):
    """Writes a message as one line, whatever it was given; what follows it is a traceback of our own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name is the base class's
        record.message = _printable(record.message)
        return super().formatMessage(record)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
