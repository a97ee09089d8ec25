"""Pages of HTML as they are written, and texts that try to be more than texts in them."""

import re
from html.parser import HTMLParser

HOSTILE = (
    "<script>document.title='run'</script>",
    '"><img src=x onerror="document.title=\'run\'">',
    "'; alert(1); '",
    "</style><style>body{display:none}",
    "</pre></details></body>",
    "&lt;b&gt; &amp;",
    "javascript:alert(1)",
    "<!-- --><![CDATA[",
    "a\u202egnp.exe\u2066\x00\x1b[31m\u2028",
    "${7*7} {{7*7}}",
)
_VOID = {"meta", "link", "input"}


class Outline(HTMLParser):
    """What a page consists of; a tag that is not closed, or closed and not open, fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


def shown(text: str) -> str:
    """Return a text as the page shows it."""
    return re.sub("[\u202e\u2066\x00\x1b\u2028]", lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)
