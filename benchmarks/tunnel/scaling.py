"""What more workers are worth: each is held to a share of a core, so that four of them fit on two cores.

Nobody else is held: the clients, the agent and what is behind it must have enough left, or they are what is measured;
on a busy machine a smaller share (`--share 0.02`) leaves them that. A worker waits for most of every period of its
quota, and a round trip passes it twice: so there are many connections at once, or their number is what is measured.
"""

import statistics
import sys
from pathlib import Path
from typing import Final

from benchmarks.tunnel import load
from benchmarks.tunnel.pairs import Pair, running_pair
from benchmarks.tunnel.quota import held_to
from benchmarks.tunnel.report import Found
from garboard.lab.binaries import Binaries
from tools.harness.certificates import Certificates

COUNTS: Final = (1, 4)
GOAL: Final = 3.5
ECHOES: Final = 1024
CONNECTING: Final = 512
ECHO_S: Final = 4.0
CONNECTS: Final = 1200
BULK_BYTES: Final = 80_000_000
STREAMS: Final = 64


def scaling(
    rounds: int, share: float, binaries: Binaries, keys: Certificates, folder: Path, ports: load.Ports
) -> tuple[dict[int, Found], str]:
    """Medians by the number of workers, in turns; and how the workers were held."""
    samples: dict[int, list[Found]] = {count: [] for count in COUNTS}
    ways = []
    for _ in range(rounds):
        for count in COUNTS:
            name = "ours" if count == 1 else f"ours:{count}"
            with running_pair(name, binaries, keys, folder) as pair, held_to(share, pair.workers) as way:
                ways.append(way)
                samples[count].append(_measured(pair, ports, share * count))
                print(".", end="", flush=True, file=sys.stderr)
    return {count: _medians(found) for count, found in samples.items()}, ways[0]


def _measured(pair: Pair, ports: load.Ports, cores: float) -> Found:
    """As much work as takes about as long, whatever the workers have of the processor in all."""
    connects, size = int(CONNECTS * cores / 0.1), int(BULK_BYTES * cores / 0.1)
    return {
        f"echo, {ECHOES} connections, per s": load.echo(pair.front, ports.echo, ECHOES, ECHO_S).per_second,
        "connects per s": load.connects_per_second(pair.front, ports.echo, CONNECTING, connects),
        f"bulk down, {STREAMS} streams, MB/s": load.download(pair.front, ports.source, STREAMS, size) / 1e6,
        f"bulk up, {STREAMS} streams, MB/s": load.upload_rate(pair.front, ports.sink, STREAMS, size) / 1e6,
    }


def _medians(samples: list[Found]) -> Found:
    return {name: statistics.median(each[name] for each in samples) for name in samples[0]}


def scaling_report(found: dict[int, Found], share: float, how: str) -> str:
    """The rates of one worker and of several, with their ratio."""
    one, *others = found
    heads = " | ".join(f"{count} workers | ratio" for count in others)
    rows = [
        f"Workers held to {share:g} core each by {how}; goal: 4 of them at least {GOAL} times one.", "",
        f"| measure | 1 worker | {heads} | |", f"| --- | ---: |{' ---: | ---: |' * len(others)} --- |",
    ]  # fmt: skip
    for name, single in found[one].items():
        cells = [f"{found[count][name]:,.0f} | {found[count][name] / single:.2f}" for count in others]
        verdict = "met" if found[others[-1]][name] / single >= GOAL else "missed"
        rows.append(f"| {name} | {single:,.0f} | {' | '.join(cells)} | {verdict} |")
    return "\n".join([*rows, ""])
