"""Texts without the secrets that are known by their value, whatever stands around them."""

import base64
import re
from collections.abc import Callable, Iterable
from typing import Final

HIDDEN: Final = "REDACTED"
# What is shorter stands in ordinary texts too, such as "true" or a port.
_SHORTEST: Final = 6


class Scrubber:
    """Replaces known secrets, each also as base64 and with its line breaks escaped; `also` is applied after that."""

    def __init__(self, secrets: Iterable[str], also: Callable[[str], str] | None = None) -> None:
        self._also = also
        forms = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted((each for each in forms if len(each) >= _SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __repr__(self) -> str:
        return "Scrubber()"

    def __call__(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return self._also(text) if self._also is not None else text


def _forms(secret: str) -> set[str]:
    """Return a secret as it may stand in a text: as it is, line by line, encoded, and quoted."""
    text = secret.strip()
    encoded = base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode()
    stripped = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = {line.strip() for line in text.splitlines() if len(line.strip()) >= 16} if "\n" in text else set()
    return {text, encoded, stripped, quoted, *lines}
