"""garboard.rpc beside grpc.aio, alternating in one run: bulk throughput at 4 and 64 KiB, and ping-pong latency.

    python -m benchmarks.rpc.run [--rounds 5] [--json FILE]

Each server is a process of its own on loopback. The ratios are what counts: both stacks share the machine's noise.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import IO

from benchmarks.rpc.stacks import CLIENTS, SERVERS, Client

MIB = 1024 * 1024
# Measure: size of a message, and how many for each stack (grpc.aio is given less, or it would take all the time).
BULK = {
    "4 KiB": (4 * 1024, {"own": 30_000, "grpc.aio": 4_000}),
    "64 KiB": (64 * 1024, {"own": 8_000, "grpc.aio": 2_000}),
}
PING_PONGS = 2_000


def cpu_seconds(server: int) -> float:
    """What both ends have used so far; it survives a noisy neighbour far better than MB/s do."""
    fields = Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(client: Client, stack: str, server: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, (size, counts) in BULK.items():
        count = counts[stack]
        for direction, move in (("up", client.upload), ("down", client.download)):
            used_before = cpu_seconds(server)
            found[f"{direction} {name}, MB/s"] = size * count / await move(size, count) / 1e6
            found[f"{direction} {name}, CPU s/GB"] = (cpu_seconds(server) - used_before) / (size * count) * 1e9
    times = sorted(await client.ping_pong(64, PING_PONGS))
    found["ping-pong p50, us"] = times[len(times) // 2] * 1e6
    found["ping-pong p99, us"] = times[len(times) * 99 // 100] * 1e6
    return found


async def run(rounds: int, servers: dict[str, tuple[int, int]]) -> dict[str, dict[str, float]]:
    """Medians by stack and measure; `servers` tells the process and the port of each."""
    samples: dict[str, list[dict[str, float]]] = {stack: [] for stack in servers}
    async with AsyncExitStack() as stack_of_clients:
        clients = {
            stack: await stack_of_clients.enter_async_context(CLIENTS[stack](port))
            for stack, (_, port) in servers.items()
        }
        for _ in range(rounds):
            for stack, client in clients.items():
                samples[stack].append(await measure(client, stack, servers[stack][0]))
    return {
        stack: {name: statistics.median(sample[name] for sample in found) for name in found[0]}
        for stack, found in samples.items()
    }


def start_server(stack: str) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.rpc.run", "--serve", stack],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def serve_until_parent_ends(stack: str, stdin: IO[str]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        serving = asyncio.ensure_future(SERVERS[stack](lambda port: print(port, flush=True)))
        await loop.run_in_executor(None, stdin.read)
        serving.cancel()

    asyncio.run(main())


def print_table(found: dict[str, dict[str, float]]) -> None:
    own, other = found["own"], found["grpc.aio"]
    print(f"{'':24}{'own':>10}{'grpc.aio':>10}{'ratio':>8}")
    for name, value in own.items():
        ratio = value / other[name] if "MB/s" in name else other[name] / value
        digits = 2 if "CPU" in name else 0
        print(f"{name:24}{value:10.{digits}f}{other[name]:10.{digits}f}{ratio:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the medians here too")
    parser.add_argument("--serve", choices=sorted(SERVERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve_until_parent_ends(options.serve, sys.stdin)
        return
    started = {stack: start_server(stack) for stack in SERVERS}
    try:
        found = asyncio.run(
            run(options.rounds, {stack: (process.pid, port) for stack, (process, port) in started.items()})
        )
    finally:
        for process, _ in started.values():
            process.terminate()
            process.wait()
    print_table(found)
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
