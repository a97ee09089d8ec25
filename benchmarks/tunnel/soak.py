"""A tunnel under load for a long time, while agents and workers are killed at random: no byte wrong, nothing leaks.

    python -m benchmarks.tunnel.soak [--minutes 20] [--agents 1000] [--connections 10000] [--workers 2] [--seed 7]

prints what it kills, and at the end a table, which is also in build/benchmarks/soak.md. All of it is on loopback and
ends by itself. The exit status is 1 if bytes were wrong, if a connection broke that no kill explains, or if the server
kept descriptors or memory; `--seed` repeats the random choices of a run, and `--logs` keeps what the programs said.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import machine
from tools.harness.soak.run import SoakFailed, SoakPlan, running_soak


def main() -> int:
    options = _options()
    plan = SoakPlan(
        seed=options.seed, minutes=options.minutes, agents=options.agents, agent_processes=options.agent_processes,
        connections=options.connections, workers=options.workers, kill_every_s=options.kill_every,
    )  # fmt: skip
    print(f"seed {plan.seed}: --seed {plan.seed} repeats the choices of this run", flush=True)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = options.logs or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            soak = stack.enter_context(
                running_soak(plan, folder, lambda line: print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True))
            )
            result = soak.run()
        except SoakFailed as error:
            print(f"error: {error}\nhint: `--logs DIR` keeps the logs of every program", file=sys.stderr)
            return 1
    text = f"{machine()}.\n\n{result.table()}\n"
    build = Path("build/benchmarks")
    build.mkdir(parents=True, exist_ok=True)
    (build / "soak.md").write_text(text)
    print(text)
    problems = result.problems()
    for problem in problems[:20]:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        print(f"hint: {len(problems)} problems; repeat with --seed {plan.seed} --logs DIR", file=sys.stderr)
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--agent-processes", type=int, default=10)
    parser.add_argument("--connections", type=int, default=10_000, help="open at any time")
    parser.add_argument("--workers", type=int, default=1, help="of the server; above 1 they are killed, too")
    parser.add_argument("--kill-every", type=float, default=20.0, help="seconds on average")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--logs", type=Path, help="a folder for the logs; else they are removed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
