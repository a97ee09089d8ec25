"""Output without secrets: values that are known, in the forms in which they are usually printed, and lines like theirs.

A stream comes in chunks, which may end inside a secret; nothing of a line is passed on before it is known to have none.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote

from garboard.documents import Json
from garboard.fleet.scrubbing import HIDDEN, Scrubber

REDACTED_LINE = "REDACTED LINE OF OUTPUT"
LONGEST_LINE = 64 * 1024
_SECRET_LINE = re.compile(
    r"password|-----BEGIN [A-Z ]*PRIVATE KEY-----|(?:client-key-data|certificateKey|pullSecret)\b|"
    r"\bbearer\s+\S{16,}|\b(?:secret|token)s?[\"']?\s*[:=]\s*[\"']?\S{8,}",
    re.IGNORECASE,
)
# Shorter ones are names, such as that of a user.
_SHORTEST_TEXT = 12
_BOOTSTRAP_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
_SECRET_KEYS = frozenset({"username", "password"})


class OutputScrubber:
    """Takes secrets out of text and of documents; it may learn more of them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self._known = Scrubber(())
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """Add secrets, also as URLs have them; of one that is JSON, such as a pull secret, each text in it is one."""
        parts = (part for each in secrets for part in (each, *_texts_in(each)))
        self._secrets += tuple(form for each in parts for form in (each, quote(each, safe="")))
        self._known = Scrubber(self._secrets)

    def line(self, line: str) -> str:
        """Return a line without secrets; one that looks like a secret is replaced as a whole."""
        if _SECRET_LINE.search(_without_escapes(line)):
            return REDACTED_LINE
        return _BOOTSTRAP_TOKEN.sub(HIDDEN, self.known(line))

    def text(self, text: str) -> str:
        """Return text of several lines without secrets."""
        return "\n".join(map(self.line, self.known(text).split("\n")))

    def known(self, text: str) -> str:
        """Return text without the secrets that are known."""
        return self._known(text)

    def document(self, document: Json) -> Json:
        """Return a document without known secrets, and without values of `username` and `password` at any depth."""
        if isinstance(document, dict):
            return {
                self.known(key): HIDDEN if key.lower() in _SECRET_KEYS else self.document(value)
                for key, value in document.items()
            }
        if isinstance(document, list):
            return [self.document(each) for each in document]
        return self.known(document) if isinstance(document, str) else document


def _texts_in(secret: str) -> Iterator[str]:
    """Yield the texts of a secret that is JSON, and the user and password that an `auth` of a registry encodes."""
    if not secret.lstrip().startswith(("{", "[")):
        return
    with suppress(ValueError, RecursionError):
        for key, text in _leaves(json.loads(secret)):
            if len(text) >= _SHORTEST_TEXT:
                yield text
            if key == "auth":
                user, colon, password = base64.b64decode(text).decode("utf-8", "replace").partition(":")
                yield from (f"{user}{colon}{password}", password)


def _leaves(value: Json, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member, key)
    elif isinstance(value, str):
        yield key, value


def _without_escapes(line: str) -> str:
    return line.replace("\\n", "\n").replace('\\"', '"')


class ScrubbedLines:
    """Splits a stream of bytes into lines, and passes them on without secrets."""

    def __init__(self, scrubber: OutputScrubber, take: Callable[[str], None], longest: int = LONGEST_LINE) -> None:
        self._scrubber, self._take, self._longest = scrubber, take, longest
        self._rest = b""
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for each in lines:
            self._pass_on(each)
        if len(self._rest) > self._longest:
            # A line without an end: what is said of it is that it was there. A part of it could be half of a secret.
            if not self._is_cut:
                self._take(REDACTED_LINE)
            self._is_cut, self._rest = True, b""

    def end(self) -> None:
        """Pass on what has no line break behind it."""
        rest, self._rest = self._rest, b""
        if rest:
            self._pass_on(rest)

    def _pass_on(self, line: bytes) -> None:
        if self._is_cut:  # the end of a line that was too long
            self._is_cut = False
            return
        self._take(self._scrubber.line(line.decode("utf-8", "replace").rstrip("\r")))
