"""Where a text stands in its file, for errors that name the line and column."""

from dataclasses import dataclass
from typing import NoReturn

from garboard.errors import BadDocument


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A text of `source` that begins on `line`."""

    source: str
    line: int = 1

    def refuse(self, message: str, line: int, column: int, hint: str) -> NoReturn:
        """Refuse the document at a line and column of the text, both counted from zero."""
        raise BadDocument(f"{self.source}:{self.line + line}:{column + 1}: {message}", hint=hint) from None

    def refuse_at(self, text: str, offset: int, message: str, hint: str) -> NoReturn:
        """Refuse the document at a character of the text."""
        line_start = text.rfind("\n", 0, offset) + 1
        self.refuse(message, text.count("\n", 0, offset), offset - line_start, hint)
