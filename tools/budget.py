"""What the tiers of `make test` took of their budget, by capability, and which twenty tests took longest.

python -m tools.budget begin      forget the runs before
python -m tools.budget            print the table of the runs since
"""

import argparse
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tools.harness.capabilities import BUDGET_MINUTES, CAPABILITIES, capability_of
from tools.harness.durations import DURATIONS, TierRun, read_runs

SLOWEST = 20
_BEGUN = DURATIONS / "begun"


def minutes_of(run: TierRun) -> dict[str, float]:
    """Return the minutes that passed in a run, by capability: each has its part of them by the seconds of its tests."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for test, duration_s in run.tests.items():
        seconds[capability_of(test)] += duration_s
    whole = sum(seconds.values()) or 1.0
    return {name: run.wall_s / 60 * part / whole for name, part in seconds.items()}


def table(runs: Sequence[TierRun], elapsed_s: float) -> Iterator[str]:
    """Yield a line for each tier, for what else was done since the beginning, for all of it and for the budget."""
    used: defaultdict[str, float] = defaultdict(float)
    yield _line("minutes", dict.fromkeys(CAPABILITIES, ""), "all")
    for run in runs:
        minutes = minutes_of(run)
        for name, part in minutes.items():
            used[name] += part
        yield _line(run.tier, _shown(minutes), f"{run.wall_s / 60:.1f}")
    tests_s = sum(run.wall_s for run in runs)
    whole_s = max(elapsed_s, tests_s)
    yield _line("lint, types, set-up", {}, f"{(whole_s - tests_s) / 60:.1f}")
    yield _line("all", _shown(used), f"{whole_s / 60:.1f}")
    yield _line("budget", _shown(BUDGET_MINUTES), f"{sum(BUDGET_MINUTES.values()):.1f}")
    for name, budget in BUDGET_MINUTES.items():
        if used[name] > budget:
            yield f"warning: {name} took {used[name]:.1f} of its {budget:.1f} minutes"


def slowest(runs: Sequence[TierRun]) -> Iterator[str]:
    """Yield the tests that took longest, of all tiers."""
    found = sorted(((s, run.tier, name) for run in runs for name, s in run.tests.items()), reverse=True)
    for duration_s, tier, name in found[:SLOWEST]:
        yield f"{duration_s:7.1f} s  {tier:<6} {name}"


def _shown(minutes: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{part:.1f}" for name, part in minutes.items()}


def _line(head: str, cells: Mapping[str, str], last: str) -> str:
    columns = [(name, cells.get(name, "")) for name in CAPABILITIES]
    shown = [f"{name if head == 'minutes' else text:>10}" for name, text in columns]
    return f"{head:<20}{''.join(shown)}{last:>10}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("begin", "show"), default="show")
    if parser.parse_args().what == "begin":
        shutil.rmtree(DURATIONS, ignore_errors=True)
        DURATIONS.mkdir(parents=True)
        _BEGUN.touch()
        return
    runs = read_runs()
    elapsed_s = time.time() - _BEGUN.stat().st_mtime if _BEGUN.exists() else 0.0
    print(*table(runs, elapsed_s), "", f"the {SLOWEST} slowest tests", *slowest(runs), sep="\n")


if __name__ == "__main__":
    main()
