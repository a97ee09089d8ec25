"""The supervisor of a lab: one process that holds the switch's network, the nodes, their services and the endpoint.

Every process of a node ends with the node's first process, and that one ends with the supervisor, so killing the
supervisor is all it takes to stop a lab. It runs in the network namespace of the switch.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.lab import network
from garboard.lab.cgroups import LEAF, LabGroups
from garboard.lab.control import answer_one, short_path
from garboard.lab.layout import LabFiles
from garboard.lab.load_balancer import ApiServerBackend, LoadBalancer
from garboard.lab.machine import LabFilesystem
from garboard.lab.namespaces import RootPlan, enter_command, first_process_command, plan_mounts
from garboard.lab.node_units import NodeUnitFolders
from garboard.lab.services import CONTAINERD_SOCKET, NodeService, Services, Units
from garboard.lab.topology import API_PORT, ENDPOINT_ADDRESS, Lab, Node, Role

READY_WITHIN_S = 20.0
STOP_WITHIN_S = 10.0
PEERS_HELD_S = 15.0  # for an etcd that serves its metrics elsewhere, or does not start


@dataclass(slots=True)
class RunningNode:
    node: Node
    first: NodeService
    pid: int
    units: Units | None = None
    server: asyncio.Server | None = None
    is_plugged: bool = False
    end: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What does not change while the supervisor runs."""

    files: LabFiles
    groups: LabGroups
    root: RootPlan
    node_command: tuple[str, ...]
    first_process: str


class Supervisor:
    def __init__(self, setting: Setting, services: Services, files: LabFilesystem) -> None:
        self.setting = setting
        self.services = services
        self.files = files
        self.nodes: dict[str, RunningNode] = {}
        self.load_balancer = LoadBalancer()
        self.partitions: set[frozenset[str]] = set()
        self.lab: Lab | None = None
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._handlers: dict[str, Callable[[dict[str, Json]], Awaitable[Json]]] = {
            "ping": self._ping, "start-node": self._start_node, "stop-node": self._stop_node, "status": self._status,
            "unit": self._unit, "partition": self._partition, "heal": self._heal, "shutdown": self._shutdown,
        }  # fmt: skip

    async def run(self, forward: socket.socket) -> None:
        """Serve until `shutdown` is asked for or a signal comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ended.set)
        await self._ip(network.switch_commands())
        for path, value in network.SWITCH_SYSCTLS.items():
            if Path(path).exists():
                self.files.write_in_place(Path(path), value.encode())
        await self._must(["nft", "-f", "-"], network.refusal_rules())
        self._keep(self.load_balancer.check_forever())
        await loop.create_server(self.load_balancer.accept, ENDPOINT_ADDRESS, API_PORT)
        await loop.create_server(self.load_balancer.accept, sock=forward)
        with short_path(self.setting.files.control) as path:
            await asyncio.start_unix_server(self._serve_control, path)
        await self._ended.wait()
        await asyncio.gather(*(self._end_node(node) for node in tuple(self.nodes.values())))

    def _keep(self, work: Awaitable[None]) -> None:
        async def guarded() -> None:
            await work

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _serve_control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer_one(reader, writer, self._dispatch)

    async def _dispatch(self, request: dict[str, Json]) -> Json:
        handler = self._handlers.get(str(request.get("do")))
        if handler is None:
            raise GarboardError(f"the supervisor does not know {request.get('do')!r}")
        return await handler(request)

    async def _ping(self, _request: dict[str, Json]) -> Json:
        return {"pid": os.getpid()}

    async def _shutdown(self, _request: dict[str, Json]) -> Json:
        self._ended.set()
        return {}

    async def _status(self, _request: dict[str, Json]) -> Json:
        return {
            "pid": os.getpid(),
            "nodes": {name: self._node_status(node) for name, node in self.nodes.items()},
            "endpoint": {each.address: each.is_ready for each in self.load_balancer.backends.values()},
            "partitions": [list[Json](sorted(pair)) for pair in sorted(self.partitions, key=sorted)],
        }

    def _node_status(self, running: RunningNode) -> Json:
        return {"pid": running.pid, "units": running.units.words() if running.units else {}}

    async def _start_node(self, request: dict[str, Json]) -> Json:
        document = request["lab"]
        assert isinstance(document, dict)
        self.lab = Lab.from_json(document)
        node = self.lab.node(str(request["node"]))
        if node.name in self.nodes:
            raise GarboardError(f"node {node.name} is running already")
        running = await self._begin_node(node)
        return {"pid": running.pid}

    async def _stop_node(self, request: dict[str, Json]) -> Json:
        await self._end_node(self._running(str(request["node"])))
        return {}

    async def _unit(self, request: dict[str, Json]) -> Json:
        units = self._running(str(request["node"])).units
        assert units is not None
        answer = await units.systemctl([str(request["verb"]), str(request["unit"])])
        return {"text": answer.text, "status": answer.status}

    async def _partition(self, request: dict[str, Json]) -> Json:
        self.partitions.add(frozenset({str(request["a"]), str(request["b"])}))
        await self._apply_partitions()
        return {}

    async def _heal(self, request: dict[str, Json]) -> Json:
        between = request["between"]
        if isinstance(between, list) and between:
            self.partitions.discard(frozenset(map(str, between)))
        else:
            self.partitions.clear()
        await self._apply_partitions()
        return {}

    async def _apply_partitions(self) -> None:
        assert self.lab is not None
        pairs = [(self.lab.node(min(pair)), self.lab.node(max(pair))) for pair in self.partitions]
        await self._must(["nft", "-f", "-"], network.partition_rules(pairs))

    def _running(self, name: str) -> RunningNode:
        if name not in self.nodes:
            raise GarboardError(f"node {name} is not running", hint=f"start it with `garboard lab start {name}`")
        return self.nodes[name]

    # --- nodes ------------------------------------------------------------------------------------------------------

    async def _begin_node(self, node: Node) -> RunningNode:
        running = await self._open_namespaces(node)
        self.nodes[node.name] = running
        try:
            await self._plug(running)
            files = self.setting.files.node(node.name)
            running.units = units = self._units(running)
            with short_path(files.socket) as path:
                running.server = await asyncio.start_unix_server(self._node_server(units), path)
            await self._hold_peers(running)
            units.start("containerd")
            if (files.var / "lib/kubelet/config.yaml").exists():
                units.start("kubelet")
            await self._wait_for_runtime(running)
            units.start_enabled()
        except BaseException:
            await self._end_node(running)
            raise
        self._keep(self._watch(running))
        if node.role is Role.CONTROL_PLANE:
            self.load_balancer.backends[node.name] = ApiServerBackend(node.address, API_PORT)
        return running

    async def _open_namespaces(self, node: Node) -> RunningNode:
        groups, files = self.setting.groups, self.setting.files.node(node.name)
        groups.make(node.name)
        steps = plan_mounts(files, self.setting.root, groups.hierarchies)
        plan = {
            "root": str(files.root),
            "hostname": node.name,
            "steps": [step.as_json() for step in steps],
            "groups": [f"{each.path}/{LEAF}/cgroup.procs" for each in groups.hierarchies],
            "command": [self.setting.first_process],
        }
        command = first_process_command(groups.entry_files(node.name, leaf=False), self.setting.node_command)
        first = await self.services.start_service(command, log=files.log("node"), stdin=json.dumps(plan).encode())
        said = await first.first_line(READY_WITHIN_S)
        pid = self.services.child_of(first.pid)
        if said != "ready" or pid is None:
            first.kill()
            raise GarboardError(f"node {node.name} did not start: see {files.log('node')}", error_class="node-failed")
        groups.admit(node.name, first.pid)
        groups.delegate(node.name)
        return RunningNode(node, first, pid)

    async def _plug(self, running: RunningNode) -> None:
        assert self.lab is not None
        node = running.node
        await self.services.run_briefly(["ip", "link", "delete", node.port_name])  # left from before it was stopped
        await self._ip(network.plug_commands(node, running.pid))
        await self._ip(network.node_commands(node), running.pid)
        running.is_plugged = True
        plugged = [each for each in self.nodes.values() if each.is_plugged]
        others = [each.node for each in plugged]
        await self._ip(network.route_commands(node, others, self.lab.pod_subnet), running.pid)
        for each in plugged:
            await self._ip(network.route_commands(each.node, [node], self.lab.pod_subnet), each.pid)

    async def _hold_peers(self, running: RunningNode) -> None:
        """Keep the peers of a member of etcd away until it serves them.

        A member that starts asks the others for a hash of their data, and each of those that are starting too answers
        only when it has been answered itself: they would wait 7 s for each other, and 7 s more. A refusal is an answer.
        """
        if (self.setting.files.node(running.node.name).var / "lib/etcd/member").exists():
            await self._nft(network.peer_port_rules(), running.pid)
            self._keep(self._open_to_peers(running))

    async def _open_to_peers(self, running: RunningNode) -> None:
        sockets = Path(f"/proc/{running.pid}/net/tcp")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PEERS_HELD_S):
                while not network.listens(self.files.read_if_there(sockets) or b"", network.ETCD_METRICS_PORT):
                    await asyncio.sleep(0.05)
        with contextlib.suppress(GarboardError):  # the node is gone
            await self._nft(network.peer_port_opening(), running.pid)

    async def _wait_for_runtime(self, running: RunningNode) -> None:
        path = f"/proc/{running.pid}/root{CONTAINERD_SOCKET}"
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while not await _answers(path):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            log = self.setting.files.node(running.node.name).log("containerd")
            raise GarboardError(f"containerd of {running.node.name} did not start: see {log}") from None

    async def _watch(self, running: RunningNode) -> None:
        await running.first.wait()
        await self._end_node(running)

    async def _end_node(self, running: RunningNode) -> None:
        """End a node, once: the one who sees it end would else clear away what it has when it runs again."""
        if running.end is None:
            running.end = asyncio.get_running_loop().create_task(self._kill_node(running))
        await asyncio.shield(running.end)

    async def _kill_node(self, running: RunningNode) -> None:
        """Kill every process of a node, as a power cut would, and clear away what it leaves in the kernel."""
        if self.nodes.get(running.node.name) is running:
            del self.nodes[running.node.name]
        backend = self.load_balancer.backends.pop(running.node.name, None)
        if backend:
            backend.take_down()
        if running.units:
            running.units.forget()
        if running.server:
            running.server.close()
        self.services.send_signal(running.pid, signal.SIGKILL)
        await running.first.wait()
        await self.services.run_briefly(["ip", "link", "delete", running.node.port_name])
        async with asyncio.timeout(STOP_WITHIN_S):
            while self.setting.groups.remove(running.node.name):
                await asyncio.sleep(0.02)

    def _units(self, running: RunningNode) -> Units:
        groups, files = self.setting.groups.entry_files(running.node.name), self.setting.files.node(running.node.name)
        return Units(
            self.services,
            lambda script: enter_command(running.pid, groups, ["/bin/sh", "-c", script]),
            files.log,
            NodeUnitFolders(self.files, files.upper, Path(f"/proc/{running.pid}/root")),
        )

    def _node_server(self, units: Units) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def dispatch(request: dict[str, Json]) -> Json:
            arguments = request["arguments"]
            assert isinstance(arguments, list)
            answer = await units.systemctl([str(each) for each in arguments])
            return {"text": answer.text, "status": answer.status}

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answer_one(reader, writer, dispatch)

        return serve

    # --- the machine ------------------------------------------------------------------------------------------------

    async def _ip(self, commands: str, pid: int | None = None) -> None:
        if commands:
            inside = ["nsenter", f"--net=/proc/{pid}/ns/net"] if pid else []
            await self._must([*inside, "ip", "-batch", "-"], commands)

    async def _nft(self, rules: str, pid: int) -> None:
        await self._must(["nsenter", f"--net=/proc/{pid}/ns/net", "nft", "-f", "-"], rules)

    async def _must(self, command: Sequence[str], stdin: str) -> None:
        status, output = await self.services.run_briefly(command, stdin)
        if status != 0:
            raise GarboardError(f"{' '.join(command)}: {output.strip()}", error_class="network")


async def _answers(path: str) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return False
    writer.close()
    return True
