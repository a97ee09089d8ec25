"""What there is to see: every lab in a line, one lab with its nodes, and where the logs of a node are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.lab.control import SupervisorGone
from garboard.lab.labs import Labs
from garboard.lab.record import Record, Stage
from garboard.lab.topology import Bootstrap


@dataclass(frozen=True, slots=True)
class Summary:
    """A lab in a line."""

    name: str
    state: str
    version: str = "-"
    by: str = "-"
    nodes: int = 0
    memory_bytes: int | None = None
    endpoint: str = "-"

    @property
    def memory_text(self) -> str:
        return f"{self.memory_bytes // 1024**2} MiB" if self.memory_bytes is not None else "-"

    def as_json(self) -> Json:
        return {
            "name": self.name, "state": self.state, "kubernetesVersion": self.version, "by": self.by,
            "nodes": self.nodes, "memoryBytes": self.memory_bytes, "endpoint": self.endpoint,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeStatus:
    name: str
    role: str
    address: str
    version: str
    state: str
    units: Mapping[str, str]

    def as_json(self) -> Json:
        return {
            "name": self.name, "role": self.role, "address": self.address, "kubernetesVersion": self.version,
            "state": self.state, "units": dict(self.units),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab as it is now; `missing` says what keeps its cluster from being ready."""

    name: str
    is_cluster: bool
    nodes: tuple[NodeStatus, ...]
    partitions: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]

    def as_json(self) -> Json:
        return {
            "name": self.name,
            "isReady": not self.missing,
            "nodes": [node.as_json() for node in self.nodes],
            "partitions": [list(pair) for pair in self.partitions],
            "missing": list(self.missing),
        }


def summarize(labs: Labs) -> list[Summary]:
    """Describe every lab of this machine."""
    return [_summary(labs, name, labs.records.read(name)) for name in labs.records.names()]


def _summary(labs: Labs, name: str, record: Record | None) -> Summary:
    if record is None:
        return Summary(name, "left over")
    is_left_over = labs.records.is_left_over(record)
    state = "left over" if is_left_over else record.stage.value
    memory = None if is_left_over else memory_bytes(labs, record)
    endpoint = f"https://127.0.0.1:{record.port}" if record.port else "-"
    lab = record.lab
    return Summary(name, state, str(lab.version), lab.bootstrap.value, len(lab.nodes), memory, endpoint)


def memory_bytes(labs: Labs, record: Record) -> int | None:
    """The memory of a lab: the working set of its nodes, and its supervisor."""
    if record.supervisor is None:
        return None
    nodes = labs.groups(record.lab.name).memory_bytes()
    supervisor = labs.records.processes.memory_bytes(record.supervisor)
    return None if nodes is None or supervisor is None else nodes + supervisor


def inspect(labs: Labs, name: str) -> LabStatus:
    """Describe one lab with its nodes, and ask its cluster whether it is ready."""
    record = labs.records.require(name)
    try:
        answer = labs.ask(name, {"do": "status"})
    except SupervisorGone:
        answer = {"nodes": {}, "partitions": []}
    running, partitions = answer["nodes"], answer["partitions"]
    assert isinstance(running, dict)
    assert isinstance(partitions, list)
    nodes = tuple(
        NodeStatus(
            n.name, n.role.value, n.address, str(n.version), "running" if n.name in running else "stopped",
            _units(running.get(n.name)),
        )
        for n in record.lab.nodes
    )  # fmt: skip
    pairs = tuple((str(pair[0]), str(pair[1])) for pair in partitions if isinstance(pair, list))
    is_cluster = record.lab.bootstrap is not Bootstrap.NONE and record.stage is Stage.READY
    return LabStatus(name, is_cluster, nodes, pairs, _missing(labs, record, nodes, is_cluster=is_cluster))


def _missing(labs: Labs, record: Record, nodes: tuple[NodeStatus, ...], *, is_cluster: bool) -> tuple[str, ...]:
    if labs.records.is_left_over(record):
        return ("nobody runs this lab any more; remove it with `garboard lab prune`",)
    if not is_cluster:
        return tuple(f"node {node.name} is stopped" for node in nodes if node.state != "running")
    yours, needs = labs.records.read_given(labs.files(record.lab.name))
    return tuple(labs.bootstrap(record, needs, yours).missing_for_ready())


def _units(facts: Json) -> Mapping[str, str]:
    units = facts.get("units") if isinstance(facts, dict) else None
    return {name: str(word) for name, word in units.items()} if isinstance(units, dict) else {}


def find_logs(var: Path, of: str) -> list[Path]:
    """Return the log of a service, or the newest log of each container of the pods whose name begins with `of`."""
    service = var / "log" / f"{of}.log"
    if service.exists() and "/" not in of:
        return [service]
    found = []
    for pod in sorted((var / "log/pods").glob("*")):
        if pod.name.split("_")[1:2] and pod.name.split("_")[1].startswith(of):
            for container in sorted(pod.iterdir()):
                found += sorted(container.glob("*.log"), key=lambda path: path.stat().st_mtime)[-1:]
    return found


def list_logs(var: Path) -> list[str]:
    """Name every log of a node."""
    services = sorted(path.stem for path in (var / "log").glob("*.log"))
    pods = sorted(path.name.split("_")[1] for path in (var / "log/pods").glob("*_*_*"))
    return services + pods
