"""The record of a coordinator: which part of a cluster plan is where, on the machine that coordinates.

A line is added before a part begins and after it has ended, so that a coordinator that was killed knows what to ask.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from garboard.documents import Json
from garboard.engine import ClusterPlan, PlanCodec
from garboard.engine.journal import RunStore, damaged_journal, whole_lines
from garboard.node.via.remote_status import RemoteStatus, read_status, status_document
from garboard.values import dataclass

PartState: TypeAlias = Literal["pending", "running", "done", "unknown", "failed"]
_PART_STATES = ("pending", "running", "done", "unknown", "failed")
_NOTHING = RemoteStatus({})
_FORMAT = 1
_ENDED = re.compile(r"it ended with status (\d+)")


@dataclass(frozen=True, slots=True)
class PartRecord:
    """Where a part is: its run on the node once that is known, and what the node had before the part began."""

    state: PartState = "pending"
    run: str = ""
    reason: str = ""
    before: RemoteStatus = _NOTHING

    @property
    def status(self) -> int | None:
        """The status that the command of a part ended with; None if that is not known."""
        found = _ENDED.match(self.reason)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRecord:
    """A coordinator's work as its lines tell it."""

    name: str
    command: str
    started_at: datetime
    sha256: str  # leads to the plan
    titles: tuple[str, ...]
    parts: tuple[PartRecord, ...]
    is_open: bool = True

    @property
    def left(self) -> tuple[str, ...]:
        """The titles of the parts that are not done."""
        return tuple(title for title, part in zip(self.titles, self.parts, strict=True) if part.state != "done")

    def plan(self, store: RunStore, codec: PlanCodec) -> ClusterPlan:
        found = codec.decode(json.loads(store.kept(self.sha256)))
        if not isinstance(found, ClusterPlan):
            raise damaged_journal("it holds no cluster plan")
        return found


@dataclass(frozen=True, slots=True)
class RecordJournal:
    """Writes the lines of a record; each has reached the disk when its method returns."""

    store: RunStore
    codec: PlanCodec = field(repr=False)

    def begin(self, command: str, plan: ClusterPlan) -> CoordinatorRecord:
        sha256 = self.store.keep(json.dumps(self.codec.encode(plan), separators=(",", ":")).encode())
        titles: list[Json] = [part.title for part in plan.parts]
        entry: dict[str, Json] = {"type": "cluster-plan", "format": _FORMAT, "record": self.store.name}
        self._add({**entry, "command": command, "startedAt": _now(), "sha256": sha256, "parts": titles})
        return self.read()

    def note(self, index: int, part: PartRecord) -> None:
        """Record where a part is."""
        entry: dict[str, Json] = {"type": "part", "index": index, "state": part.state, "run": part.run}
        self._add({**entry, "reason": part.reason, "before": status_document(part.before)})

    def close(self) -> None:
        self._add({"type": "closed"})
        self.store.drop_kept()

    def read(self) -> CoordinatorRecord:
        found = read_record(self.store.lines())
        if found is None:
            raise damaged_journal(f"the record {self.store.name} has no plan")
        return found

    def _add(self, entry: dict[str, Json]) -> None:
        line = json.dumps({**entry, "at": _now()}, separators=(",", ":"))
        self.store.append(line.encode() + b"\n", is_lasting=True)


def read_record(data: bytes) -> CoordinatorRecord | None:
    """Return what the lines tell, or None if they end before the plan; a torn last line is ignored."""
    record: CoordinatorRecord | None = None
    for number, line in enumerate(whole_lines(data).splitlines(), start=1):
        try:
            record = _after(record, json.loads(line))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise damaged_journal(f"line {number} of a coordinator's record cannot be read: {error}") from error
    return record


def _after(record: CoordinatorRecord | None, entry: Mapping[str, Json]) -> CoordinatorRecord:
    if entry["type"] == "cluster-plan":
        return _begun(entry)
    if record is None:
        raise ValueError("the plan should stand before it")
    if entry["type"] == "part":
        index = entry["index"]
        if not isinstance(index, int):
            raise TypeError("a part has a number")
        parts = [*record.parts]
        parts[index] = _part(entry)
        return replace(record, parts=tuple(parts))
    return replace(record, is_open=False) if entry["type"] == "closed" else record


def _begun(entry: Mapping[str, Json]) -> CoordinatorRecord:
    titles = entry["parts"]
    if entry["format"] != _FORMAT or not isinstance(titles, list):
        raise ValueError("a format that is not known")
    return CoordinatorRecord(
        name=str(entry["record"]),
        command=str(entry["command"]),
        started_at=datetime.fromisoformat(str(entry["startedAt"])),
        sha256=str(entry["sha256"]),
        titles=tuple(map(str, titles)),
        parts=(PartRecord(),) * len(titles),
    )


def _part(entry: Mapping[str, Json]) -> PartRecord:
    state = str(entry["state"])
    if state not in _PART_STATES:
        raise ValueError("a state that is not known")
    before = read_status(json.dumps(entry["before"]))
    return PartRecord(state, str(entry["run"]), str(entry["reason"]), before)  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
