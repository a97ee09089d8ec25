"""Text, paths and flag values as Go's standard library writes and reads them."""

import posixpath
import re

from garboard.errors import BadUsage

BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}  # what strconv.ParseBool takes
_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", '"': '\\"', "\\": "\\\\",
}  # fmt: skip
_ITEM = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|$)')


def go_quote(text: str) -> str:
    """Quote text as Go's %q does."""
    return '"' + "".join(_ESCAPES.get(char) or _printable(char) for char in text) + '"'


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def join_path(*parts: str) -> str:
    """Join the parts that are not empty, and clean the result, as filepath.Join does."""
    return clean_path("/".join(part for part in parts if part))


def clean_path(path: str) -> str:
    cleaned = posixpath.normpath(path)
    # POSIX lets two leading slashes mean something of their own; Go does not.
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def parent_of(path: str) -> str:
    """Return the folder of a file: `.` for no path at all."""
    return clean_path(path[: path.rfind("/") + 1])


def split_list(text: str) -> tuple[str, ...]:
    """Split a list flag at its commas, empty items too; quotes around an item keep the commas in it."""
    items: list[str] = []
    position, separator = 0, "," if text else ""
    while separator:
        found = _ITEM.match(text, position)
        if found is None:
            raise BadUsage(
                f"{text!r} is not a list of items with commas between them",
                hint='put an item that holds a quote into quotes, with "" for each quote in it',
            )
        quoted, plain, separator = found.groups()
        items.append(plain if quoted is None else quoted.replace('""', '"'))
        position = found.end()
    return tuple(items)
