"""Time plans of changes for 303 nodes; and changes of a cluster by garboard beside kubeadm's way to make them.

    make benchmark-change
    make benchmark-change ONLY=plan

`--only apply` needs root. Writes change.json, change.md, change-apply.json and change-apply.md into build/benchmarks.
"""

import argparse

from benchmarks.change.applying import measure_changes
from benchmarks.change.planning import measure_plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("plan", "apply"), default="", help="leave out the other part")
    parser.add_argument("--runs", type=int, default=5, help="runs of each plan, alternating")
    given = parser.parse_args()
    missed = measure_plans(given.runs) if given.only != "apply" else []
    missed += measure_changes() if given.only != "plan" else []
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
