"""What a journal says: which plan a run carries out, how far it came, and what each step found before it."""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from garboard.documents import Json
from garboard.engine.before import Before
from garboard.engine.plan import Plan
from garboard.engine.storing import PlanCodec
from garboard.errors import NotReady
from garboard.values import dataclass

FORMAT = 1
# The types of actions that cannot be taken back, as a plan in a journal names them.
LOSSES = frozenset({"empty-folder", "unmount", "remove-member", "remove-sandboxes"})
RunState: TypeAlias = Literal["open", "committed", "undone", "failed", "reset"]
# Where the objects of a run live: in a cluster that it makes itself, behind this node's own API server, elsewhere.
ClusterPlace: TypeAlias = Literal["made", "local", "elsewhere"]


class RunStore(Protocol):
    """The folder of one run: its lines, and contents that are kept by their digest until it is closed."""

    @property
    def name(self) -> str: ...

    def append(self, data: bytes, *, is_lasting: bool) -> None:
        """Add to the lines; if they shall last, they survive a power cut once this returns."""
        ...

    def lines(self) -> bytes: ...

    def keep(self, data: bytes) -> str:
        """Store a content for good, readable by root alone, and return its digest."""
        ...

    def kept(self, sha256: str) -> bytes: ...

    def drop_kept(self) -> None:
        """Remove every content."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What is known of a run before its first step."""

    run: str
    command: str
    started_at: datetime
    cluster: ClusterPlace = "local"
    is_whole: bool = True  # a workflow, not a single phase
    undoes: str = ""  # the run that this one reverses
    settings: Mapping[str, str] = field(default_factory=dict)  # what whoever carries it out needs to know besides
    sha256: str = ""  # leads to the plan
    masked: Json = None  # the plan as `--dry-run --output json` prints it


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run came; `facts` are what steps said on the way, `outcomes` what finished ones found out."""

    finished: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    begun: Mapping[int, Before] = field(default_factory=dict)
    facts: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def unfinished(self) -> frozenset[int]:
        return frozenset(self.begun) - frozenset(self.finished)


NO_PROGRESS = Progress()


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as its journal tells it."""

    header: RunHeader
    progress: Progress = NO_PROGRESS
    state: RunState = "open"
    failure: str = ""  # why it stopped, if it could say so
    steps: int = 0

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def is_undoable(self) -> bool:
        """Whether the run is no undo itself, and removes nothing that nobody can bring back."""
        actions = [step["action"] for step in _steps(self.header.masked) if isinstance(step, dict)]
        types = {action["type"] for action in actions if isinstance(action, dict)}
        return not self.header.undoes and not types & LOSSES

    @property
    def next_phase(self) -> str:
        """The phase of the first step that has not ended; empty if all have."""
        for index, step in enumerate(_steps(self.header.masked)):
            if index not in self.progress.finished and isinstance(step, dict):
                return str(step["phase"])
        return ""

    def plan(self, store: RunStore, codec: PlanCodec) -> Plan:
        """Return the very plan that the run began with."""
        return codec.plan_from_bytes(store.kept(self.header.sha256))


def whole_lines(data: bytes) -> bytes:
    """Return the lines without a last one that was torn by a kill or a power cut."""
    return data[: data.rfind(b"\n") + 1]


def read_run(data: bytes, codec: PlanCodec) -> RunRecord | None:
    """Return what the lines of a journal say, or None if the run ended before its plan was written down."""
    record: RunRecord | None = None
    for number, line in enumerate(whole_lines(data).splitlines(), start=1):
        try:
            record = _read_line(record, json.loads(line), codec)
        except (ValueError, KeyError, TypeError) as error:
            raise damaged_journal(f"line {number} cannot be read: {error}") from error
    return record


def damaged_journal(why: str) -> NotReady:
    """Return the error for a run that can be neither resumed nor undone, because nobody knows what it did."""
    return NotReady(why, hint="the disk may be damaged; garboard reset cleans the node up", error_class="bad-journal")


def _read_line(record: RunRecord | None, entry: dict[str, Json], codec: PlanCodec) -> RunRecord:
    if entry["type"] == "plan":
        return RunRecord(_header(entry), steps=len(_steps(entry["plan"])))
    if record is None:
        raise ValueError("the plan should stand before it")
    return _after(record, entry, codec)


def _after(record: RunRecord, entry: Mapping[str, Json], codec: PlanCodec) -> RunRecord:
    progress = record.progress
    match entry["type"]:
        case "begin":
            # The first time counts: what a resumed step finds is its own work.
            begun = {**progress.begun}
            begun.setdefault(_index(entry), _before(entry, codec))
            return replace(record, progress=replace(progress, begun=begun), failure="")
        case "learned":
            facts = {**progress.facts, _index(entry): _texts(entry["facts"])}
            return replace(record, progress=replace(progress, facts=facts))
        case "end":
            finished = {**progress.finished, _index(entry): _texts(entry.get("outcomes", {}))}
            return replace(record, progress=replace(progress, finished=finished))
        case "failed":
            return replace(record, failure=str(entry["message"]))
        case "closed":
            state = str(entry["state"])
            _check(state in ("committed", "undone", "failed", "reset"), "a state that is not known")
            return replace(record, state=state)  # type: ignore[arg-type]
        case _:
            return record


def header_entry(header: RunHeader) -> dict[str, Json]:
    """Return the header as the first line says it."""
    return {
        "type": "plan",
        "format": FORMAT,
        "run": header.run,
        "command": header.command,
        "startedAt": header.started_at.isoformat(),
        "cluster": header.cluster,
        "whole": header.is_whole,
        "undoes": header.undoes,
        "settings": {**header.settings},
        "sha256": header.sha256,
        "plan": header.masked,
    }


def _header(entry: Mapping[str, Json]) -> RunHeader:
    if entry.get("format") != FORMAT:
        raise NotReady(
            f"it is in format {entry.get('format')}, and this garboard knows {FORMAT}",
            hint="use the garboard that began the run, or clean the node up with garboard reset",
            error_class="bad-journal",
        )
    cluster = str(entry["cluster"])
    _check(cluster in ("made", "local", "elsewhere"), "a cluster that is not known")
    return RunHeader(
        run=str(entry["run"]),
        command=str(entry["command"]),
        started_at=datetime.fromisoformat(str(entry["startedAt"])),
        cluster=cluster,  # type: ignore[arg-type]
        is_whole=entry["whole"] is True,
        undoes=str(entry["undoes"]),
        settings=_texts(entry["settings"]),
        sha256=str(entry["sha256"]),
        masked=entry["plan"],
    )


def _steps(plan: Json) -> list[Json]:
    steps = plan.get("steps") if isinstance(plan, dict) else None
    return steps if isinstance(steps, list) else []


def _before(entry: Mapping[str, Json], codec: PlanCodec) -> Before:
    found = entry.get("before", {})
    if not isinstance(found, dict):
        raise TypeError("what was before is no mapping")
    facts: dict[str, object] = {key: codec.decode(value) for key, value in found.items()}
    return Before(**facts)  # type: ignore[arg-type]


def _index(entry: Mapping[str, Json]) -> int:
    index = entry["index"]
    if not isinstance(index, int):
        raise TypeError("a step has a number")
    return index


def _texts(value: Json) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("texts by name are a mapping")
    return {key: str(text) for key, text in value.items()}


def _check(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(what)
