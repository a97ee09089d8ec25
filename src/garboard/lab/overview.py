"""What there is: every lab in a line, and one lab with its nodes."""

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
class Status:
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
    state = "left over" if record.is_left_over else record.stage.value
    memory = None if record.is_left_over else memory_bytes(labs, record)
    endpoint = f"https://127.0.0.1:{record.port}" if record.port else "-"
    lab = record.lab
    return Summary(name, state, str(lab.version), lab.bootstrap.value, len(lab.nodes), memory, endpoint)


def memory_bytes(labs: Labs, record: Record) -> int | None:
    """The memory of a lab: the working set of its nodes, and its supervisor."""
    supervisor = record.supervisor
    if supervisor is None:
        return None
    groups = labs.groups(record.lab.name).memory_bytes()
    try:
        pages = int(Path(f"/proc/{supervisor.pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):  # it went down while we looked
        return None
    return None if groups is None else groups + pages * 4096


def inspect(labs: Labs, name: str) -> Status:
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
    return Status(name, is_cluster, nodes, pairs, _missing(labs, record, nodes, is_cluster=is_cluster))


def _missing(labs: Labs, record: Record, nodes: tuple[NodeStatus, ...], *, is_cluster: bool) -> tuple[str, ...]:
    if record.is_left_over:
        return ("nobody runs this lab any more; remove it with `garboard lab prune`",)
    if not is_cluster:
        return tuple(f"node {node.name} is stopped" for node in nodes if node.state != "running")
    yours, needs = labs.records.read_given(labs.files(record.lab.name))
    return tuple(labs.bootstrap(record, needs, yours).missing_for_ready())


def _units(facts: Json) -> Mapping[str, str]:
    units = facts.get("units") if isinstance(facts, dict) else None
    return {name: str(word) for name, word in units.items()} if isinstance(units, dict) else {}
