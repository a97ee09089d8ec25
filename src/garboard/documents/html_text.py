"""Texts of others in a page of HTML."""

import unicodedata
from html import escape


def html_text(text: str) -> str:
    """Return a text that is safe anywhere in a page, also in quotes; characters that nobody sees are named."""
    return escape("".join(each if _is_visible(each) else f"⟨U+{ord(each):04X}⟩" for each in text))


def _is_visible(character: str) -> bool:
    """Say whether a reader sees a character, or what it does: others turn the text around, or hide a part of it."""
    if character.isascii():
        return character.isprintable() or character in "\n\t"
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
