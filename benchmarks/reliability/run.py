"""Kill runs at every point, resume and undo each, and write the table of docs/reliability.md.

    make reliability

Needs root. The scratch part takes minutes; `--scenario NAME` takes one scenario of it. The lab part kills init and a
control-plane join at every step, and a swap of static pods and an upgrade at some points, others each day, and takes
hours: `--live 0` leaves it out, `--live N` takes every n-th point, `--only join` one part (parts run side by side),
`--then resume` one way on. Every outcome is written to build/reliability.jsonl at once; a run that was cut short goes
on after the last of them, `--again` begins anew.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.measure import hardware
from tools.harness.killing import KillPoint, chosen_points
from tools.harness.lab_kills import LiveOutcome, Scene, init_scene, joining_scene, point_name
from tools.harness.reliability_table import Row, with_table
from tools.harness.scratch import kill_everywhere
from tools.harness.scratch_kills import SCENARIOS
from tools.harness.swap_kills import SwapScene, swap_scene
from tools.harness.upgrade_kills import UpgradeScene, upgrade_scene

Making = Callable[[str], AbstractContextManager[Scene | SwapScene | UpgradeScene]]
PAGE = Path("docs/reliability.md")
RESULTS = Path("build/reliability.jsonl")
PARTS = ("scratch", "init", "join", "swap", "upgrade")
THEN = ("resume", "undo")
_RUNS = 8  # that all points of init or of a join are spread over, to be resumed after them


def main() -> None:
    asked = _arguments()
    RESULTS.parent.mkdir(exist_ok=True)
    if asked.again:
        RESULTS.unlink(missing_ok=True)
    for part in asked.only or PARTS:
        for row in _scratch(asked) if part == "scratch" else _live(part, asked):
            with RESULTS.open("a") as results:
                results.write(json.dumps(row | _stamp()) + "\n")
    rows = _rows()
    PAGE.write_text(with_table(PAGE.read_text(), rows, hardware()))
    for row in rows:
        if row["problems"]:
            print(row["scenario"], row["point"], row["then"], *row["problems"], sep="\n  ")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="scratch: kill only at every n-th point")
    names = [each.name for each in SCENARIOS]
    parser.add_argument("--scenario", action="append", choices=names, help="scratch: only this one; may be repeated")
    parser.add_argument("--live", type=int, default=1, help="lab: kill only at every n-th point; 0 for none")
    parser.add_argument("--first", type=int, help="lab: the first point; another one each day if not all are taken")
    parser.add_argument("--then", action="append", choices=THEN, help="lab: only what is done so; may be repeated")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--fresh", action="store_true", help="lab: make clusters anew that are kept between runs")
    parser.add_argument("--again", action="store_true", help="forget the outcomes of earlier runs")
    return parser.parse_args()


def _stamp() -> Row:
    """Return the day of an outcome, and how busy the machine is: others may be measured on another day."""
    return {"day": f"{datetime.now(UTC):%Y-%m-%d}", "load": round(os.getloadavg()[1], 1)}


def _rows() -> list[Row]:
    """Return the outcomes of this run and of earlier ones; those of an earlier release, without a day, are no more."""
    rows = map(json.loads, RESULTS.read_text().splitlines() if RESULTS.exists() else ())
    return [row for row in rows if "day" in row]


def _scratch(asked: argparse.Namespace) -> Iterator[Row]:
    known = {row["scenario"] for row in _rows()}
    for name in asked.scenario or [each.name for each in SCENARIOS]:
        if name not in known:
            yield from kill_everywhere(name, asked.every)


def making_of(part: str, *, fresh: bool) -> Making:
    """Return what makes the scene of a part; init and join have nodes of their own each time."""
    scenes: dict[str, Making] = {
        "init": init_scene,
        "join": joining_scene,
        "swap": partial(swap_scene, fresh=fresh),
        "upgrade": partial(upgrade_scene, fresh=fresh),
    }
    return scenes[part]


def _live(part: str, asked: argparse.Namespace) -> Iterator[Row]:
    """Undo after each point, and resume after it, on nodes that are as before each time."""
    known = {(row["scenario"], row["then"], row["point"]) for row in _rows()}
    if not asked.live:
        return
    with making_of(part, fresh=asked.fresh)(f"kills-{part}-{os.getpid()}") as scene:
        phases = scene.steps()
        points = scene.points(phases)
        chosen = chosen_points(points, scene.stride * asked.live, asked.first)
        left = {then: [each for each in chosen if (scene.name, then, point_name(each)) not in known]
                for then in asked.then or THEN}  # fmt: skip
        for outcome in _outcomes(scene, phases, left):
            row = asdict(outcome) | {"of": len(points)}
            print(row["scenario"], row["then"], row["point"], row["phase"], row["problems"] or "ok", flush=True)
            yield row


def _outcomes(
    scene: Scene | SwapScene | UpgradeScene, phases: Sequence[str], left: Mapping[str, Sequence[KillPoint]]
) -> Iterator[LiveOutcome]:
    """Yield what became of all points; a run that can be is killed at several of those it is resumed after, in turn."""
    resumed = left.get("resume", ())
    if isinstance(scene, Scene):
        for first in range(min(_RUNS, len(resumed))):
            points = resumed[first::_RUNS]
            yield from scene.after_resumes(points, [phases[each.index] for each in points])
    else:
        yield from (scene.after_resume(each, phases[each.index]) for each in resumed)
    yield from (scene.after_undo(each, phases[each.index]) for each in left.get("undo", ()))


if __name__ == "__main__":
    main()
