"""Values of command line flags, read the way the flags of Go programs read them."""

import re

from garboard.errors import BadUsage

_ITEM = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|$)')


def split_list(text: str) -> tuple[str, ...]:
    """Return the items between the commas, empty ones too; quotes around an item keep the commas in it."""
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
