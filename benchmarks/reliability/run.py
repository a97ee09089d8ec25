"""Kill runs at every point, resume and undo each, and write the table of docs/reliability.md.

    make reliability

Needs root. The scratch part takes minutes; the lab part kills init and a control-plane join at every step and takes
hours: `--live 0` leaves it out, `--live N` takes every n-th point. Writes build/reliability.json and the table in the
docs.
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
RESULTS = Path("build/reliability.json")
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="scratch: kill only at every n-th point")
    parser.add_argument("--live", type=int, default=1, help="lab: kill only at every n-th point; 0 for none")
    parser.add_argument("--first", type=int, default=0, help="lab: the first point")
    asked = parser.parse_args()
    rows = [row for scenario in SCENARIOS for row in kill_everywhere(scenario.name, asked.every)]
    if asked.live:
        rows += _live(asked.live, asked.first)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1))
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n\n" + table(rows))
    for row in rows:
        if row["problems"]:
            print(row["scenario"], row["point"], row["then"], *row["problems"], sep="\n  ")


def _live(every: int, first: int) -> Iterator[Row]:
    """Undo after each point, and resume after it, on nodes that are as before each time."""
    started = f"{datetime.now(UTC):%H%M%S}"
    for make in (live.init_scene, live.joining_scene):
        with make(f"reliability-{started}") as scene:
            phases = scene.steps()
            for point in scene.points(phases)[first::every]:
                for outcome in (scene.after_undo, scene.after_resume):
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
