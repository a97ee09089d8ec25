"""The table of docs/reliability.md: how many kill points were taken, and how many of them ended well."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

Row = dict[str, Any]
MARK = "<!-- the table -->"
_HEAD = "| what was killed | then | points | correct outcomes | measured |\n| --- | --- | --- | --- | --- |\n"


def with_table(page: str, rows: Iterable[Row], machine: str) -> str:
    """Return the page with the outcomes in its table: how many points were taken, and how many of them ended well.

    A sample of the points has a row of its own, which says how many there are, until all of them are taken. Each row
    has the days of its outcomes; what was not measured keeps the row that it has.
    """
    text, _, former = page.partition(MARK)
    lines = {tuple(cells[:2]): cells for cells in _cells(former)}
    counted: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    there_are: defaultdict[tuple[str, str], int] = defaultdict(int)
    stamps: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        key = row["scenario"], row["then"]
        counted[key].append(not row["problems"])
        stamps[key].append(row)
        there_are[key] = max(there_are[key], row.get("of", 0))
    for key, found in counted.items():
        name, then, taken = *key, str(len(found))
        sample = f"{name}, a sample"
        if len(found) < there_are[key]:
            name, taken = sample, f"{taken} of {there_are[key]}"
        else:
            lines.pop((sample, then), None)
        lines[name, then] = [name, then, taken, str(sum(found)), _measured(stamps[key], machine)]
    told = "".join(f"| {' | '.join(cells)} |\n" for cells in lines.values())
    return f"{text}{MARK}\n\n{_HEAD}{told}"


def _measured(rows: Iterable[Row], machine: str) -> str:
    """Say when the outcomes were had, and how busy the machine was then."""
    days, loads = sorted({row["day"] for row in rows}), [round(row["load"]) for row in rows]
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    busy = f"{min(loads)} to {max(loads)}" if min(loads) < max(loads) else str(loads[0])
    return f"{when}, {machine}, load average {busy}"


def _cells(table: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]
