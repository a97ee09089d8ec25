"""A reflector and a leader on real API servers: killed, started again, with changes and a compaction in between."""

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from garboard.kube import Access, LeaseClaim, ObjectRef
from garboard.kube.aio import (
    AioKubeClient,
    Delta,
    LeaderElection,
    LeaderPace,
    NamespacedName,
    ObjectSelection,
    ObjectStore,
    Reflector,
)
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.kube.real_server import real_api_server
from tests.support.kube.sides import GADGETS, install_gadgets

pytestmark = pytest.mark.real
SELECTION = ObjectSelection(kind="Gadget", api_version=GADGETS)


@dataclass
class Restartable:
    access: Access
    processes: dict[str, "subprocess.Popen[bytes]"]
    folder: Path

    def kill(self) -> None:
        self.processes["kube-apiserver"].kill()
        self.processes["kube-apiserver"].wait(30)

    def start(self) -> None:
        with (self.folder / "again.log").open("wb") as log:
            command = self.processes["kube-apiserver"].args
            self.processes["kube-apiserver"] = subprocess.Popen(command, stdout=log, stderr=log)

    def etcd(self, path: str, **content: Any) -> Any:
        """Ask etcd, behind the API server's back."""
        arguments: Any = self.processes["etcd"].args
        address = next(str(each) for each in arguments if str(each).startswith("--listen-client-urls=")).partition("=")[
            2
        ]
        with urlopen(Request(f"{address}/v3/kv/{path}", json.dumps(content).encode()), timeout=30) as answer:
            return json.load(answer)


@pytest.fixture
def server(binaries: Binaries, tmp_path: Path) -> Iterator[Restartable]:
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with real_api_server(binaries, str(SUPPORTED_VERSIONS[-1]), tmp_path, processes) as access:
        install_gadgets(access)
        running = Restartable(access, processes, tmp_path)
        yield running
        running.kill()


def ref(name: str) -> ObjectRef:
    return ObjectRef("Gadget", "default", name, GADGETS)


def gadget(name: str, size: int = 1) -> Any:
    return {"apiVersion": GADGETS, "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": size}}


class StoreReached:
    """Waits until a store is as it is wanted; looked at after every change of it."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.deltas: list[Delta] = []
        self._changed = asyncio.Event()

    def on_delta(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self._changed.set()

    async def sizes(self, wanted: dict[str, int]) -> None:
        while {key.name: found["spec"]["size"] for key, found in self._pairs()} != wanted:
            self._changed.clear()
            await self._changed.wait()

    def _pairs(self) -> list[tuple[NamespacedName, Any]]:
        return [(key, self.store.find(*key)) for key in self.store.sorted_keys()]


def test_store_follows_a_server_that_was_killed_and_what_happened_meanwhile(server: Restartable) -> None:
    async def scenario() -> None:
        reached = StoreReached()
        async with AioKubeClient(lambda: server.access, patience_s=120.0) as client:
            reflector = Reflector(client, SELECTION, reached.store, on_delta=reached.on_delta)
            running = asyncio.create_task(reflector.run())
            for number in range(5):
                await client.create(ref(f"g{number}"), gadget(f"g{number}"))
            await reached.sizes({f"g{number}": 1 for number in range(5)})
            assert reflector.lists == 1
            server.kill()
            key = base64.b64encode(b"/registry/contract.example/gadgets/default/g3").decode()
            deleted = server.etcd("deleterange", key=key)
            assert deleted["deleted"] == "1"
            server.etcd("compaction", revision=deleted["header"]["revision"], physical=True)
            server.start()
            await reached.sizes({f"g{number}": 1 for number in (0, 1, 2, 4)})
            assert reflector.lists == 2, "the gap was longer than the server remembers"
            await client.patch(ref("g0"), {"spec": {"size": 2}})
            await client.delete(ref("g1"))
            await client.create(ref("g9"), gadget("g9", 9))
            await reached.sizes({"g0": 2, "g2": 1, "g4": 1, "g9": 9})
            assert len(reached.deltas) == 5 + 1 + 3, "nothing is told twice"
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(asyncio.wait_for(scenario(), 300))


def test_watch_that_the_server_ends_is_resumed_without_a_list(
    server: Restartable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.kube.aio.client._WATCH_S", (3, 3))

    async def scenario() -> None:
        reached = StoreReached()
        async with AioKubeClient(lambda: server.access) as client:
            reflector = Reflector(client, SELECTION, reached.store, on_delta=reached.on_delta)
            running = asyncio.create_task(reflector.run())
            await reflector.synced.wait()
            wanted: dict[str, int] = {}
            while reflector.watches < 3:
                name = f"g{len(wanted)}"
                await client.create(ref(name), gadget(name))
                wanted[name] = 1
                await reached.sizes(wanted)
            assert reflector.lists == 1
            assert client.connections_opened == 1
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(asyncio.wait_for(scenario(), 300))


def test_leader_hands_over_and_one_that_vanished_is_followed(server: Restartable) -> None:
    working: list[str] = []
    pace = LeaderPace(every_s=0.3, without_renewal_s=2.0, release_within_s=2.0)

    async def lead(client: AioKubeClient, name: str, began: asyncio.Event) -> None:
        async def work() -> None:
            working.append(name)
            assert len(working) == 1, "two leaders at once"
            began.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                working.remove(name)

        claim = LeaseClaim(name="fleet", namespace="default", holder=name, duration_s=3.0)
        await LeaderElection(client, claim, pace=pace).lead(work)

    async def scenario() -> None:
        async with AioKubeClient(lambda: server.access) as client, AioKubeClient(lambda: server.access) as vanishing:
            began = {name: asyncio.Event() for name in ("one", "two", "three")}
            one = asyncio.create_task(lead(client, "one", began["one"]))
            await began["one"].wait()
            two = asyncio.create_task(lead(vanishing, "two", began["two"]))
            one.cancel()
            await began["two"].wait()
            three = asyncio.create_task(lead(client, "three", began["three"]))
            for name in ("replace", "find"):  # it does not reach the server any more
                monkey = asyncio.get_running_loop().create_future()
                setattr(vanishing, name, lambda *_args, held=monkey, **_named: asyncio.shield(held))
            await began["three"].wait()
            assert working == ["three"]
            for each in (two, three):
                each.cancel()
            ended = await asyncio.gather(one, two, three, return_exceptions=True)
            assert [each for each in ended if isinstance(each, AssertionError)] == []

    asyncio.run(asyncio.wait_for(scenario(), 300))
