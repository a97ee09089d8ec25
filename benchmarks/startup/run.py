"""Start garboard's help many times, alternating with a bare Python: is it within 2 times Python plus 60 ms?

    make benchmark-startup

Writes build/benchmarks/startup.json and startup.md.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import Run, machine, measure, median

PYTHON = Path(sys.executable)
GARBOARD = PYTHON.with_name("garboard")
RESULTS = Path("build/benchmarks")
COMMANDS: dict[str, list[str | Path]] = {
    "python -c pass": [PYTHON, "-c", "pass"],
    "garboard --help": [GARBOARD, "--help"],
    "garboard patch --help": [GARBOARD, "patch", "--help"],
    "garboard version": [GARBOARD, "version"],
}
GOALS = ("garboard --help", "garboard patch --help")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="runs of each command, alternating")
    runs = parser.parse_args().runs
    measured: dict[str, list[Run]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            measured[name].append(measure(command, output=Path("/dev/null")))
    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "runs": runs,
        "wall_ms": {name: round(1000 * median([run.wall_s for run in each]), 1) for name, each in measured.items()},
        "cpu_ms": {name: round(1000 * median([run.cpu_s for run in each]), 1) for name, each in measured.items()},
    }
    report(results)


def report(results: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "startup.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "startup.md").write_text(table(results))
    print(table(results))
    limit = goal_ms(results)
    late = [name for name in GOALS if results["wall_ms"][name] > limit]
    if late:
        raise SystemExit(f"over {limit:.0f} ms: {', '.join(late)}")


def goal_ms(results: dict[str, Any]) -> float:
    return float(2 * results["wall_ms"]["python -c pass"] + 60)


def table(results: dict[str, Any]) -> str:
    lines = [
        f"Median of {results['runs']} runs each, alternating; {results['machine']}; {results['date']}.",
        "",
        "| command | wall time | processor time | goal |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, wall_ms in results["wall_ms"].items():
        goal = f"{goal_ms(results):.0f} ms" if name in GOALS else ""
        lines.append(f"| `{name}` | {wall_ms:.0f} ms | {results['cpu_ms'][name]:.0f} ms | {goal} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
