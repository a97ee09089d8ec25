"""Write the tables of codes at the end of docs/change.md from the table that the program uses.

python -m tools.change_codes
"""

from pathlib import Path

from garboard.change.codes import CODES, OWN_CODES, Weight

PAGE = Path(__file__).parents[1] / "docs/change.md"
MARK = "<!-- written by python -m tools.change_codes from here on -->\n"
_TITLES = {
    Weight.NOTE: ("Notes", "Advice to read. Nothing has to be accepted."),
    Weight.CONFIRM: (
        "To confirm",
        "Advice that has to be accepted (`--accept CODE`) before the change is carried out.",
    ),
    Weight.BLOCKED: ("Blocked, unless accepted", "The plan is blocked. `--accept CODE` makes it advice."),
    Weight.REFUSED: ("Blocked", "The plan is blocked. Nobody can accept these; the route says what works instead."),
}


def tables() -> str:
    """Return the tables of codes, one for each weight."""
    sections = [_section(weight, *_TITLES[weight]) for weight in _TITLES]
    return "\n".join(sections)


def _section(weight: Weight, title: str, text: str) -> str:
    rows = [f"| `{code}` | {CODES[code].summary} |\n" for code in OWN_CODES if CODES[code].weight is weight]
    return f"### {title}\n\n{text}\n\n| code | what it says |\n| --- | --- |\n{''.join(rows)}"


def page() -> str:
    """Return the whole page with its tables as they should be."""
    return PAGE.read_text().partition(MARK)[0] + MARK + "\n" + tables()


if __name__ == "__main__":
    PAGE.write_text(page())
