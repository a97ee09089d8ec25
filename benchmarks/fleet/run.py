"""Render and check an inventory of 500 entries over 60 manifests, beside `kustomize build` of a sample; compare both.

    make benchmark-fleet

Writes build/benchmarks/fleet.json and fleet.md. kustomize comes from `garboard lab binaries get`, or from --kustomize.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fleet.inventory import ENTRIES, MANIFESTS, entry_name, write_inputs, write_overlay
from benchmarks.measure import Run, machine, measure, median

GARBOARD = Path(sys.executable).with_name("garboard")
RESULTS = Path("build/benchmarks")
KUSTOMIZE = "kustomize@v5.8.2"
SAMPLE = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kustomize", type=Path, help="the program; by default the pinned one")
    parser.add_argument("--runs", type=int, default=3, help="runs of garboard; one entry of kustomize after each")
    options = parser.parse_args()
    kustomize = options.kustomize or find_program(KUSTOMIZE)
    with tempfile.TemporaryDirectory(prefix="garboard-benchmark-") as folder:
        report(run_all(Path(folder), kustomize, options.runs))


def find_program(name: str) -> Path:
    """Return a pinned program, built first if need be."""
    command: list[str | Path] = [GARBOARD, "lab", "binaries", "get", name, "--output", "json"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return Path(found[0]["path"])


def run_all(folder: Path, kustomize: Path, runs: int) -> dict[str, Any]:
    size = write_inputs(folder)
    render: list[str | Path] = [
        GARBOARD,
        "fleet",
        "render",
        "-f",
        folder / "fleet.yaml",
        "--manifests",
        folder / "made",
    ]
    overlays = {number: write_overlay(folder / "kustomize", number) for number in range(0, ENTRIES, ENTRIES // SAMPLE)}
    sample = iter(overlays.items())
    checks: list[Run] = []
    renders: list[Run] = []
    builds: list[Run] = []
    for _ in range(runs):
        checks.append(measure([*render, "--check"], output=folder / "check.out"))
        renders.append(measure([*render, "-o", folder / "out"], output=folder / "render.out"))
        builds += [_build(kustomize, *each) for each in (next(sample, None),) if each is not None]
    builds += [_build(kustomize, *each) for each in sample]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "entries": ENTRIES,
        "manifests": MANIFESTS,
        "bytes": size,
        "check": figures(checks),
        "render": figures(renders),
        "kustomize": {**figures(builds), "wall_s_of_all": round(median([each.wall_s for each in builds]) * ENTRIES, 1)},
        "differences": [entry_name(number) for number, overlay in overlays.items() if differs(folder, overlay)],
    }


def _build(kustomize: Path, _number: int, overlay: Path) -> Run:
    return measure([kustomize, "build", overlay], output=overlay / "built.yaml")


def figures(runs: list[Run]) -> dict[str, Any]:
    return {
        "runs": len(runs),
        "wall_s": round(median([run.wall_s for run in runs]), 3),
        "cpu_s": round(median([run.cpu_s for run in runs]), 3),
        "peak_mib": round(max(run.peak_mib for run in runs), 1),
    }


def differs(folder: Path, overlay: Path) -> bool:
    """Whether an entry has other objects than kustomize has built; both read by a parser that is nobody's own."""
    entry = folder / "out" / overlay.name
    files = [each for each in entry.rglob("*.yaml") if each.name != "install-config.yaml"]
    ours = [yaml.load(each.read_bytes(), yaml.CSafeLoader) for each in files]
    theirs = list(yaml.load_all((overlay / "built.yaml").read_bytes(), yaml.CSafeLoader))
    return sorted(ours, key=identity) != sorted(theirs, key=identity) or len(ours) != MANIFESTS


def identity(document: dict[str, Any]) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


def report(results: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "fleet.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "fleet.md").write_text(table(results))
    print(table(results))
    if results["differences"]:
        raise SystemExit(f"results differ from those of kustomize: {', '.join(results['differences'])}")


def table(results: dict[str, Any]) -> str:
    lines = [
        f"{results['entries']} entries, {results['manifests']} manifests; {results['machine']}; {results['date']}.",
        "",
        "| what | wall time | processor time | peak memory |",
        "| --- | ---: | ---: | ---: |",
        _line("fleet render --check, all entries", results["check"]),
        _line("fleet render -o, all entries", results["render"]),
        _line(f"kustomize build, one entry (of {results['kustomize']['runs']})", results["kustomize"]),
        f"| kustomize build, {results['entries']} times that | {results['kustomize']['wall_s_of_all']:.0f} s | | |",
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, found: dict[str, Any]) -> str:
    return f"| {name} | {found['wall_s']:.2f} s | {found['cpu_s']:.2f} s | {found['peak_mib']:.0f} MiB |"


if __name__ == "__main__":
    main()
