"""Patterns of file names as Go's path/filepath has them: `*` and `?` stay in a folder, `[a-z]`, `[^a]` are classes.

`*` matches names that begin with a dot, a backslash makes the next character stand for itself, and there are neither
`**` nor braces. Texts are compared as the bytes of their UTF-8 form. Go does not look behind a star where nothing
matches, and lets pass what is malformed there; `check_pattern` does not.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

_META: Final = b"*?[\\"
_SLASH: Final = 0x2F
_REPLACEMENT: Final = 0xFFFD
_MAX_LEVELS: Final = 10_000
_Found = bytes | None  # what is left of a name behind a piece of a pattern that matches its beginning


class BadPattern(ValueError):
    """A pattern that Go calls malformed."""


class Folders(Protocol):
    """What is where: the names in each folder. The root is the empty path."""

    def names_in(self, folder: str) -> Sequence[str] | None:
        """Return the names in a folder, sorted by their bytes; None for anything that is no folder."""

    def has(self, path: str) -> bool:
        """Tell whether there is anything at a path."""


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that is malformed anywhere, as a whole or once it is divided at its slashes."""
    raw = _bytes(pattern)
    for _ in range(_MAX_LEVELS):
        _check_chunks(raw)
        folder = raw.rpartition(b"/")[0]
        if not _has_meta(raw) or not _has_meta(folder):
            return
        raw = folder
    raise BadPattern(pattern)


def find_paths(pattern: str, folders: Folders) -> list[str]:
    """Return what a clean, relative pattern matches, folder by folder, in Go's order, and refuse it where Go does."""
    return list(_find(pattern, folders, 0))


def _find(pattern: str, folders: Folders, level: int) -> Iterator[str]:
    raw = _bytes(pattern)
    if level == _MAX_LEVELS:
        raise BadPattern(pattern)
    _match(raw, b"")
    if not _has_meta(raw):
        if folders.has(pattern):
            yield pattern
        return
    parent, _, name = pattern.rpartition("/")
    parents = list(_find(parent, folders, level + 1)) if _has_meta(_bytes(parent)) else [parent]
    for each in parents:
        for found in folders.names_in(each) or ():
            if _match(_bytes(name), _bytes(found)):
                yield f"{each}/{found}" if each else found


def matches(pattern: str, name: str) -> bool:
    """Tell whether a pattern matches the whole of a name."""
    return _match(_bytes(pattern), _bytes(name))


def has_meta(text: str) -> bool:
    """Tell whether a text is a pattern, and no name by itself."""
    return _has_meta(_bytes(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _has_meta(text: bytes) -> bool:
    return any(each in text for each in _META)


def _match(pattern: bytes, name: bytes) -> bool:
    while pattern:
        star, chunk, pattern = _next_chunk(pattern)
        if star and not chunk:
            return b"/" not in name
        rest = _match_chunk(chunk, name)
        if rest is None or (rest and not pattern):
            rest = _match_later(chunk, name, is_last=not pattern) if star else None
        if rest is None:
            return False
        name = rest
    return not name


def _match_later(chunk: bytes, name: bytes, *, is_last: bool) -> _Found:
    """Skip one byte after the other, as far as the next slash, until a chunk matches; the last one must match all."""
    for index, byte in enumerate(name):
        if byte == _SLASH:
            return None
        rest = _match_chunk(chunk, name[index + 1 :])
        if rest is not None and not (is_last and rest):
            return rest
    return None


def _check_chunks(pattern: bytes) -> None:
    while pattern:
        _, chunk, pattern = _next_chunk(pattern)
        _match_chunk(chunk, b"")


def _next_chunk(pattern: bytes) -> tuple[bool, bytes, bytes]:
    """Cut off what stands before the next star outside of a class, and say whether stars stand before that."""
    stripped = pattern.lstrip(b"*")
    is_class = False
    index = 0
    while index < len(stripped):
        byte = stripped[index : index + 1]
        if byte == b"\\":
            index += 1 if index + 1 < len(stripped) else 0
        elif byte in (b"[", b"]"):
            is_class = byte == b"["
        elif byte == b"*" and not is_class:
            break
        index += 1
    return len(stripped) < len(pattern), stripped[:index], stripped[index:]


def _match_chunk(chunk: bytes, text: bytes) -> _Found:
    """Match a chunk, which has no stars, with the beginning of a text; read all of the chunk even where that fails."""
    rest: _Found = text
    while chunk:
        rest = rest or None
        if chunk[0] == 0x5B:  # [
            rune, behind = _rune(rest) if rest is not None else (0, b"")
            chunk, is_inside = _match_class(chunk[1:], rune)
            rest = behind if rest is not None and is_inside else None
            continue
        if chunk[0] == 0x3F:  # ?
            rest = None if rest is None or rest[0] == _SLASH else _rune(rest)[1]
            chunk = chunk[1:]
            continue
        if chunk[0] == 0x5C:  # backslash
            chunk = chunk[1:]
            if not chunk:
                raise BadPattern
        rest = rest[1:] if rest is not None and rest[0] == chunk[0] else None
        chunk = chunk[1:]
    return rest


def _match_class(chunk: bytes, rune: int) -> tuple[bytes, bool]:
    """Return what stands behind a class, and whether a character is in it."""
    is_negated = chunk[:1] == b"^"
    chunk = chunk[1:] if is_negated else chunk
    is_inside = False
    ranges = 0
    while chunk[:1] != b"]" or not ranges:
        low, chunk = _class_member(chunk)
        high = low
        if chunk[:1] == b"-":
            high, chunk = _class_member(chunk[1:])
        is_inside = is_inside or low <= rune <= high
        ranges += 1
    return chunk[1:], is_inside != is_negated


def _class_member(chunk: bytes) -> tuple[int, bytes]:
    if chunk[:1] in (b"", b"-", b"]"):
        raise BadPattern
    if chunk[:1] == b"\\":
        chunk = chunk[1:]
        if not chunk:
            raise BadPattern
    rune, rest = _rune(chunk)
    if (rune == _REPLACEMENT and len(chunk) - len(rest) == 1) or not rest:
        raise BadPattern
    return rune, rest


def _rune(text: bytes) -> tuple[int, bytes]:
    """Return the first character and what follows it; a byte that is none counts as one, as in Go."""
    for size in range(1, 5):
        try:
            return ord(text[:size].decode()), text[size:]
        except (UnicodeDecodeError, TypeError):
            continue
    return _REPLACEMENT, text[1:]
