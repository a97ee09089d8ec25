"""Patch 4,000 objects with garboard, with `kustomize build` and (a sample) with `kubectl patch --local`; compare all.

    make benchmark-patch

Writes build/benchmarks/patch.json and patch.md. The other programs come from `garboard lab binaries get`, or from the
options below.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import Run, machine, measure, median
from benchmarks.patch.objects import OBJECTS, PATCHES, PatchEntry, object_texts, selected, write_inputs

GARBOARD = Path(sys.executable).with_name("garboard")
RESULTS = Path("build/benchmarks")
KUSTOMIZE, KUBECTL = "kustomize@v5.8.2", "kubectl@v1.36.4"
SAMPLE_PER_PATCH = 5
GOAL_TIME, GOAL_LINT_S = 0.05, 0.35  # of kustomize's time; of `patch lint --config`
EXAMPLE = Path(__file__).parents[2] / "examples/patches/kubeadm.yaml"  # it names a typical patch directory
LINT_RUNS = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """What one tool needed for all objects."""

    tool: str
    runs: int
    wall_s: float
    cpu_s: float
    objects_per_s: float
    peak_mib: float

    @classmethod
    def of(cls, tool: str, runs: list[Run]) -> "Figures":
        wall_s = median([run.wall_s for run in runs])
        cpu_s = median([run.cpu_s for run in runs])
        peak_mib = max(run.peak_mib for run in runs)
        return cls(tool, len(runs), round(wall_s, 3), round(cpu_s, 3), round(OBJECTS / wall_s), round(peak_mib, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kustomize", type=Path, help="the program; by default the pinned one")
    parser.add_argument("--kubectl", type=Path, help="the program; by default the pinned one")
    parser.add_argument("--runs", type=int, default=3, help="runs of each tool, alternating")
    options = parser.parse_args()
    kustomize = options.kustomize or find_program(KUSTOMIZE)
    kubectl = options.kubectl or find_program(KUBECTL)
    with tempfile.TemporaryDirectory(prefix="garboard-benchmark-") as folder:
        report(run_all(Path(folder), kustomize, kubectl, options.runs))


def find_program(name: str) -> Path:
    """Return a pinned program, built first if need be."""
    command: list[str | Path] = [GARBOARD, "lab", "binaries", "get", name, "--output", "json"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return Path(found[0]["path"])


def run_all(folder: Path, kustomize: Path, kubectl: Path, runs: int) -> dict[str, Any]:
    size = write_inputs(folder)
    strict: list[str | Path] = [
        GARBOARD,
        "patch",
        "apply",
        "-f",
        folder / "objects",
        "--patch-set",
        folder / "patches.yaml",
    ]
    commands: dict[str, list[str | Path]] = {
        "garboard": strict,
        "garboard --compat": [*strict, "--compat", "-o", "json"],
        "kustomize": [kustomize, "build", folder],
    }
    measured: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            measured[name].append(measure(command, output=folder / f"{name.replace(' ', '')}.out"))
    kubectl_runs, one_by_one = sample_kubectl(folder, kubectl)
    ours = read_objects(folder / "garboard.out")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "objects": OBJECTS,
        "bytes": size,
        "figures": [asdict(Figures.of(name, each)) for name, each in measured.items()],
        "differences": {
            "kustomize": differences(ours, read_objects(folder / "kustomize.out")),
            "garboard --compat": differences(ours, read_json_objects(folder / "garboard--compat.out")),
        },
        "kubectl": kubectl_figures(kubectl_runs, one_by_one, ours),
        "lint": lint_figures(folder),
    }


def lint_figures(folder: Path) -> dict[str, Any]:
    """Time `patch lint --config` of the example, which renders every target and judges what its patches make of it."""
    directory = EXAMPLE.parent / "tree"
    command: list[str | Path] = [GARBOARD, "patch", "lint", directory, "--config", EXAMPLE]
    runs = [measure(command, output=folder / "lint.out") for _ in range(LINT_RUNS)]
    return {
        "runs": len(runs),
        "wall_s": round(median([run.wall_s for run in runs]), 3),
        "cpu_s": round(median([run.cpu_s for run in runs]), 3),
        "peak_mib": round(max(run.peak_mib for run in runs), 1),
    }


def sample_kubectl(folder: Path, kubectl: Path) -> tuple[list[Run], dict[str, Any]]:
    """Patch a few objects of each patch one by one, as kubectl does it; return what that took and the results."""
    runs: list[Run] = []
    patched: dict[str, Any] = {}
    for patch in PATCHES:
        for document in sample(patch):
            source, out = folder / "one.json", folder / "one.out"
            source.write_text(json.dumps(document))
            command: list[str | Path] = [kubectl, "patch", "--local", "-f", source, "--type", patch.type, "-o", "json"]
            runs.append(measure([*command, "--patch-file", folder / patch.file], output=out))
            patched |= read_objects(out)
    return runs, patched


def sample(patch: PatchEntry) -> list[dict[str, Any]]:
    """Return the first objects that a patch is for. One at a time: a child's peak memory counts from its parent's."""
    documents = (yaml.load(text, yaml.CSafeLoader) for text in object_texts())
    return list(islice((document for document in documents if selected(patch, document)), SAMPLE_PER_PATCH))


def kubectl_figures(runs: list[Run], patched: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    return {
        "sample": len(runs),
        "wall_s_per_object": round(median([run.wall_s for run in runs]), 4),
        "peak_mib": round(max(run.peak_mib for run in runs), 1),
        "differences": [name for name, document in patched.items() if document != ours[name]],
    }


def read_objects(path: Path) -> dict[str, Any]:
    """Return the objects of a YAML (or JSON) stream by identity, read by a parser that is nobody's own."""
    with path.open("rb") as stream:
        return {identity(document): document for document in yaml.load_all(stream, yaml.CSafeLoader)}


def read_json_objects(path: Path) -> dict[str, Any]:
    text = path.read_text()
    decoder = json.JSONDecoder()
    found, place = {}, 0
    while place < len(text.rstrip()):
        document, place = decoder.raw_decode(text, place)
        found[identity(document)] = document
        while place < len(text) and text[place].isspace():
            place += 1
    return found


def identity(document: dict[str, Any]) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]


def report(results: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "patch.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "patch.md").write_text(table(results))
    print(table(results))
    different = {name: len(found) for name, found in results["differences"].items() if found}
    if different or results["kubectl"]["differences"]:
        raise SystemExit(f"results differ: {different}, kubectl {results['kubectl']['differences'][:5]}")


def table(results: dict[str, Any]) -> str:
    figures = {each["tool"]: each for each in results["figures"]}
    theirs = figures["kustomize"]
    lines = [
        f"{results['objects']} objects, {results['bytes'] / 1e6:.2f} MB; {results['machine']}; {results['date']}.",
        "",
        "| tool | wall time | processor time | objects/s | peak memory | time, kustomize = 1 | memory, kustomize = 1 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [_line(each, theirs) for each in figures.values()]
    kubectl = results["kubectl"]
    each_s = kubectl["wall_s_per_object"]
    lines.append(
        f"| kubectl patch --local (per object, {kubectl['sample']} of them) | {each_s:.3f} s | | {1 / each_s:.0f} "
        f"| {kubectl['peak_mib']:.0f} MiB | | |"
    )
    equal = "equal" if not any(results["differences"].values()) and not kubectl["differences"] else "DIFFERENT"
    goal = f"{GOAL_LINT_S:.2f} s: {_met(results['lint']['wall_s'] <= GOAL_LINT_S)}"
    lint, share = results["lint"], figures["garboard"]["wall_s"] / theirs["wall_s"]
    lines += [
        "",
        "| command | wall time | processor time | peak memory | goal |",
        "| --- | ---: | ---: | ---: | ---: |",
        f"| patch lint --config | {lint['wall_s']:.2f} s | {lint['cpu_s']:.2f} s | {lint['peak_mib']} MiB | {goal} |",
        "",
        f"Time beside kustomize: {share:.3f}, goal {GOAL_TIME}: {_met(share <= GOAL_TIME)}.",
    ]
    return "\n".join([*lines, f"Results, object by object: {equal}."]) + "\n"


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def _line(each: dict[str, Any], theirs: dict[str, Any]) -> str:
    return (
        f"| {each['tool']} | {each['wall_s']:.2f} s | {each['cpu_s']:.2f} s "
        f"| {each['objects_per_s']} | {each['peak_mib']:.0f} MiB "
        f"| {each['wall_s'] / theirs['wall_s']:.3f} | {each['peak_mib'] / theirs['peak_mib']:.2f} |"
    )


if __name__ == "__main__":
    main()
