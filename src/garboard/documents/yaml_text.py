"""Single strings as go-yaml writes them: plain, quoted or as a literal block, and where long ones are folded."""

import re
import sys
from functools import lru_cache
from typing import Final

from garboard.documents.yaml_scalars import is_plain_text

_WIDTH: Final = 80
# The emitter keeps longer texts out of the cache, which would otherwise hold on to whole files in ConfigMaps.
_CACHED_LENGTH: Final = 128
# A break to the emitter; a carriage return and NEL are breaks too, but never written as themselves.
_BREAKS: Final = "\n\u2028\u2029"
_HAS_BREAK: Final = re.compile(f"[{_BREAKS}]")
# What the emitter escapes. Spelled as what is in it: the complement takes Python twenty milliseconds to compile.
_UNPRINTABLE: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\U00010000-\U0010ffff]")
_NO_PLAIN: Final = re.compile(
    r"""---|\.\.\.|[#,\[\]{}&*!|>'"%@`\ ]|[-?:](?:\ |\Z)  # at the start
    |.*?(?::(?:\ |\Z)|\ \#|\ \Z)                          # anywhere
    """,
    re.VERBOSE | re.DOTALL,
)
_SPACE_AT_BREAK: Final = re.compile(f"[{_BREAKS}] | [{_BREAKS}]")
_BLANK_BEFORE_BREAK: Final = re.compile(f" [{_BREAKS}]| \\Z")
_ESCAPED: Final = re.compile('["\\\\\n\u2028\u2029]|' + _UNPRINTABLE.pattern)
_SHORT_ESCAPES: Final = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e", '"': '"',
    "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip
# A blank after something else, with the next one if there are more.
_LONE_BLANK: Final = re.compile(r"(?<! ) (?=( ?))")
_LINE_PARTS: Final = re.compile(f"[^{_BREAKS}]*[{_BREAKS}]|[^{_BREAKS}]+")


def scalar_text(text: str, column: int, indent: int) -> str:
    """Return `text` as written from `column` on; further lines start at `indent`.

    The result ends without a line break, except for a literal block whose text ends with one.
    """
    line = single_line(text)
    if line and column + len(line) <= _WIDTH + 1:
        return line
    if not line:
        return _literal(text, indent) if "\n" in text else _broken_quotes(text, column, indent)
    if " " not in text:
        return line
    if line == text:
        return _fold(line, column, indent)
    return _fold(line, column, indent, first=2, last=len(line) - 3)


def single_line(text: str) -> str:
    """Return `text` plain or quoted on one line, or nothing if it is written over several lines."""
    return _cached_line(text) if len(text) <= _CACHED_LENGTH else _line(text)


def quoted_key(text: str) -> str:
    """Return a key that must stay on one line."""
    return single_line(text) or _double_quoted(text)


def is_simple_key(text: str) -> bool:
    """Say whether a key is written before its colon, and not after a question mark."""
    if len(text) <= 32 and text.isascii() and text.isprintable():
        return True
    return len(text.encode("utf-8", "surrogatepass")) <= 128 and not re.search("[\n\r\x85\u2028\u2029]", text)


def _line(text: str) -> str:
    if _UNPRINTABLE.search(text):
        return _double_quoted(text)
    if _HAS_BREAK.search(text):
        return _line_with_breaks(text)
    if not is_plain_text(text):
        return _double_quoted(text)
    if _NO_PLAIN.match(text):
        return "'" + text.replace("'", "''") + "'"
    return text


_cached_line = lru_cache(16384)(_line)


def _line_with_breaks(text: str) -> str:
    if "\n" in text:
        is_block = not _BLANK_BEFORE_BREAK.search(text)
    else:
        is_block = not _SPACE_AT_BREAK.search(text) and is_plain_text(text)
    return "" if is_block else _double_quoted(text)


def _literal(text: str, indent: int) -> str:
    header = "|2" if text[0] in " " + _BREAKS else "|"
    if text[-1] not in _BREAKS:
        header += "-"
    elif len(text) == 1 or text[-2] in _BREAKS:
        header += "+"
    pad = " " * indent
    parts: list[str] = _LINE_PARTS.findall(text)
    return header + "\n" + "".join(part if part in _BREAKS else pad + part for part in parts)


def _broken_quotes(text: str, column: int, indent: int) -> str:
    """Single quotes around a text whose only breaks are the Unicode separators, which start a new line each."""
    parts: list[str] = _LINE_PARTS.findall("'" + text.replace("'", "''"))
    lines = [_fold(parts[0], column, indent, first=2)]
    pad = " " * indent
    lines += [part if part in _BREAKS else _fold(pad + part, 0, indent, first=indent) for part in parts[1:]]
    return "".join(lines) + "'"


def _double_quoted(text: str) -> str:
    # go-yaml looks for a byte order mark at the start of the text, whichever character it is at.
    pattern = _ESCAPED if text[:1] != "\ufeff" else re.compile(".", re.DOTALL)
    return '"' + pattern.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SHORT_ESCAPES:
        return "\\" + _SHORT_ESCAPES[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _fold(line: str, column: int, indent: int, *, first: int = 0, last: int = sys.maxsize) -> str:
    """Break a line at each lone blank met once past the width, but not before `first` or after `last`."""
    is_escaped = line[0] == '"'
    pad = " " * indent
    folded: list[str] = []
    start = 0  # of the piece not yet written
    for blank in _LONE_BLANK.finditer(line, first):
        place = blank.start()
        if column + place - start <= _WIDTH or place > last or (blank[1] and not is_escaped):
            continue
        folded.append(line[start:place] + "\n" + pad + ("\\" if blank[1] else ""))
        start = place + 1
        column = indent + len(blank[1])
    return "".join(folded) + line[start:]
