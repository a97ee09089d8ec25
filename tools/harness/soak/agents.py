"""Many agents in one process; now and then one of them is gone without a word, and another comes in its place.

    python -m tools.harness.soak.agents '{"first": 0, "count": 100, ...}'

prints `+ NUMBER TIME` when an agent has a stream to every server, `- NUMBER TIME` when it has not any more, and
`x NUMBER TIME` when it is gone.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import Agent
from tools.harness.certificates import Certificates
from tools.harness.soak.content import address_of
from tools.harness.soak.programs import run_until_told

LOOK_EVERY_S: Final = 0.05
STARTS_PER_S: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsPlan:
    """The agents of one process."""

    first: int
    count: int
    server_port: int
    ca: str
    certificate: str
    key: str
    seed: int
    lost_every_s: float  # how long the process goes without losing one

    @classmethod
    def of(cls, numbers: range, server_port: int, keys: Certificates, seed: int, lost_every_s: float) -> "AgentsPlan":
        return cls(
            first=numbers.start, count=len(numbers), server_port=server_port, ca=str(keys.ca),
            certificate=str(keys.client), key=str(keys.client_key), seed=seed, lost_every_s=lost_every_s,
        )  # fmt: skip

    def as_argument(self) -> str:
        return json.dumps(asdict(self))

    def options_of(self, number: int) -> AgentOptions:
        return AgentOptions(
            agent_id=f"agent-{number}",
            agent_identifiers=f"ipv4={address_of(number)}",
            proxy_server_port=self.server_port,
            ca_cert=Path(self.ca),
            agent_cert=Path(self.certificate),
            agent_key=Path(self.key),
            sync_interval_s=1.0,
            sync_interval_cap_s=5.0,
        )


class Agents:
    """The agents, and whether each has a stream to every server."""

    def __init__(self, plan: AgentsPlan) -> None:
        self._plan = plan
        self._random = random.Random(plan.seed)
        self._agents: dict[int, Agent] = {}
        self._runs: dict[int, asyncio.Task[None]] = {}
        self._connected: set[int] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_after())
            for number in range(self._plan.first, self._plan.first + self._plan.count):
                self._start(number, group)
                await asyncio.sleep(1 / STARTS_PER_S)
            while True:
                await asyncio.sleep(self._random.expovariate(1 / self._plan.lost_every_s))
                self._lose(self._random.choice(list(self._agents)), group)

    def _start(self, number: int, group: asyncio.TaskGroup) -> None:
        self._agents[number] = Agent(self._plan.options_of(number))
        self._runs[number] = group.create_task(self._keep(self._agents[number]))

    async def _keep(self, agent: Agent) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await agent.pool.run()

    def _lose(self, number: int, group: asyncio.TaskGroup) -> None:
        """End an agent as a kill would: its sockets are reset, and it says nothing."""
        self._connected.discard(number)
        print("x", number, f"{time.monotonic():.3f}", flush=True)
        self._runs[number].cancel()
        for stream in list(self._agents[number].pool.streams.values()):
            endpoints = list(stream.dialer.endpoints.values()) if stream.dialer is not None else []
            stream.link.abort("lost by the soak")
            for endpoint in endpoints:
                endpoint.cut()
        self._start(number, group)

    async def _look_after(self) -> None:
        """Do for all agents what each would do by itself at every tick, and tell who comes and goes."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            for number, agent in self._agents.items():
                if agent.watch.waiting or agent.watch.flushing:
                    agent.watch.look(now)
                self._print_state(number, is_connected=len(agent.pool.streams) >= agent.pool.server_count)

    def _print_state(self, number: int, *, is_connected: bool) -> None:
        if is_connected != (number in self._connected):
            (self._connected.add if is_connected else self._connected.discard)(number)
            print("+" if is_connected else "-", number, f"{time.monotonic():.3f}", flush=True)


if __name__ == "__main__":
    run_until_told(Agents(AgentsPlan(**json.loads(sys.argv[1]))).run())
