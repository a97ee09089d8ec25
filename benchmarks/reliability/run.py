"""Kill runs at every point, resume and undo each, and write the table of docs/reliability.md.

    make reliability

Needs root. The scratch part takes minutes; the lab part kills init and a control-plane join at every step and takes
hours: `--live 0` leaves it out, `--live N` takes every n-th point, `--only join` one part. Every outcome is written to
build/reliability.jsonl at once; a run that was cut short goes on after the last of them, `--again` begins anew.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import machine as measured_on
from benchmarks.reliability import live
from benchmarks.reliability.scratch import SCENARIOS
from tests.reliability.scratch import kill_everywhere

PAGE, MARK = Path("docs/reliability.md"), "<!-- the table -->"
RESULTS = Path("build/reliability.jsonl")
PARTS = {"scratch": None, "init": live.init_scene, "join": live.joining_scene}
Row = dict[str, Any]


def main() -> None:
    asked = _arguments()
    RESULTS.parent.mkdir(exist_ok=True)
    if asked.again:
        RESULTS.unlink(missing_ok=True)
    for part in asked.only or PARTS:
        for row in _scratch(asked.every) if part == "scratch" else _live(part, asked.live, asked.first):
            with RESULTS.open("a") as results:
                results.write(json.dumps(row) + "\n")
    rows = _rows()
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n\n" + table(rows))
    for row in rows:
        if row["problems"]:
            print(row["scenario"], row["point"], row["then"], *row["problems"], sep="\n  ")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="scratch: kill only at every n-th point")
    parser.add_argument("--live", type=int, default=1, help="lab: kill only at every n-th point; 0 for none")
    parser.add_argument("--first", type=int, default=0, help="lab: the first point")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--again", action="store_true", help="forget the outcomes of earlier runs")
    return parser.parse_args()


def _rows() -> list[Row]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def _scratch(every: int) -> Iterator[Row]:
    known = {row["scenario"] for row in _rows()}
    for scenario in SCENARIOS:
        if scenario.name not in known:
            yield from kill_everywhere(scenario.name, every)


def _live(part: str, every: int, first: int) -> Iterator[Row]:
    """Undo after each point, and resume after it, on nodes that are as before each time."""
    known = {(row["scenario"], row["then"], row["point"]) for row in _rows()}
    make = PARTS[part]
    if not every or make is None:
        return
    with make(f"reliability-{part}-{datetime.now(UTC):%H%M%S}") as scene:
        phases = scene.steps()
        for point in scene.points(phases)[first::every]:
            for then, outcome in (("undo", scene.after_undo), ("resume", scene.after_resume)):
                if (scene.name, then, live.told(point)) in known:
                    continue
                row = asdict(outcome(point, phases[point.index]))
                print(row["scenario"], row["then"], row["point"], row["phase"], row["problems"] or "ok", flush=True)
                yield row


def table(rows: Iterable[Row]) -> str:
    """Return the outcomes as a table: how many points each scenario has, and how many ended as they should."""
    counted: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        counted[row["scenario"], row["then"]].append(not row["problems"])
    lines = [
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, {measured_on()}.",
        "",
        "| what was killed | then | points | as it should be |",
        "| --- | --- | --- | --- |",
    ]
    lines += [f"| {name} | {then} | {len(found)} | {sum(found)} |" for (name, then), found in counted.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
