"""Where libyaml reads YAML otherwise than go-yaml v2: the text is changed before, and its scalars changed back after.

Stand-ins are private-use characters that the text does not hold. They are as wide as what they replace, so that every
place in the text stays where it was.
"""

import re
from itertools import chain, islice
from typing import Final

from yaml import MarkedYAMLError

_BYTE_ORDER_MARK: Final = "\ufeff"
_SLASH_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*\\)/")
_PRIVATE_USE: Final = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
# A text is read again after each repair; together the readings stay below this many characters.
_REPAIR_BUDGET: Final = 8_000_000


class Disguise:
    """A text in which libyaml sees what go-yaml sees."""

    def __init__(self, text: str) -> None:
        free = (chr(code) for code in chain(*_PRIVATE_USE) if chr(code) not in text)
        slash, colon, mark, self._gone = islice(chain(free, "/:\ufeff'"), 4)
        self._colon = colon
        self._original = {ord(slash): "/", ord(colon): ":", ord(mark): _BYTE_ORDER_MARK, ord(self._gone): None}
        # JSON's escape \/ is none to go-yaml, and a byte order mark is an ordinary character except at the very start.
        self.text = _SLASH_ESCAPE.sub(rf"\1{slash}", text).replace(_BYTE_ORDER_MARK, mark)
        self._budget = _REPAIR_BUDGET

    @staticmethod
    def is_needed(content: bytes) -> bool:
        """Say whether libyaml would take the text for something else without complaint."""
        return b"\\/" in content or _BYTE_ORDER_MARK.encode() in content

    def original(self, text: str) -> str:
        """Return a scalar as it was written."""
        return text.translate(self._original)

    def repair(self, error: MarkedYAMLError) -> bool:
        """Change the place of an error that go-yaml does not make; say whether the text is worth another reading."""
        mark = error.problem_mark
        self._budget -= len(self.text)
        if mark is None or self._budget < 0:
            return False
        stand_in = self._stand_in(error.problem or "", self.text[mark.index : mark.index + 2])
        if stand_in is None:
            return False
        self.text = self.text[: mark.index] + stand_in + self.text[mark.index + 1 :]
        return True

    def _stand_in(self, problem: str, found: str) -> str | None:
        if problem == "found unexpected ':'" and found[:1] == ":":
            return self._colon  # go-yaml lets a colon end a plain scalar in brackets
        if problem == "found unknown escape character" and found == "\\'":
            return self._gone
        if found[:1] in (",", "[", "]") and problem.endswith(("whitespace or line break", "tag URI")):
            return "_"  # part of a tag; no tag that means anything has one
        return None
