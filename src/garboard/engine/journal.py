"""The journal of a run: writes a line before and after every step, and reads the lines back as a run's progress."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, TypeAlias

from garboard.documents import Json
from garboard.engine.action import Action
from garboard.engine.codec import PlanCodec
from garboard.engine.plan import Plan, Step
from garboard.engine.pre_image import Observers, PreImage, temporaries
from garboard.engine.show import plan_as_json
from garboard.engine.traits import LOSSES, traits_of
from garboard.errors import NotReady
from garboard.values import dataclass

FORMAT = 2  # 1 named types by their classes; both are read
_READABLE = (1, FORMAT)
_FIRST = b'{"type":"plan",'  # how the first line begins, in every format
_SUPERSEDES_IN_FORMAT_1 = "reset"  # the command whose runs closed all others, which format 1 did not say
# `closed` in a way that only a later release knows, or whose record is damaged.
# `unconfirmed`: all is done, and taken back unless somebody confirms it; then it is `confirmed` or `reverted`.
RunState: TypeAlias = Literal[
    "open", "unconfirmed", "committed", "confirmed", "reverted", "undone", "failed", "reset", "closed"
]
_CLOSED_STATES = ("committed", "confirmed", "reverted", "undone", "failed", "reset")
# Where the objects of a run live: in a cluster that it makes itself, behind this node's own API server, elsewhere.
ClusterPlace: TypeAlias = Literal["made", "local", "elsewhere"]


class RunStore(Protocol):
    """The folder of one run: its lines, and contents that are kept by their digest until it is closed."""

    @property
    def name(self) -> str: ...

    def append(self, data: bytes, *, is_lasting: bool) -> None:
        """Append to the journal; with `is_lasting`, the lines survive a power cut once this returns."""
        ...

    def lines(self) -> bytes: ...

    def keep(self, data: bytes) -> str:
        """Store a content durably, readable by root alone, and return its digest."""
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
    is_undoable: bool = True  # down to its last loss; nothing is kept for an undo otherwise
    keeps_after_loss: bool = True  # journals of earlier releases kept nothing of what came after a loss
    supersedes: bool = False  # it may begin on top of open runs, and closes them when it ends
    confirm_within_s: float = 0.0  # how long it waits for somebody to confirm it when all is done; 0: it does not
    confirm_by: datetime | None = None  # a moment instead of how long, for a run that is one of several
    settings: Mapping[str, str] = field(default_factory=dict)  # what carrying it out needs besides the plan
    number: int = 0  # counts the runs of a node: clocks are set back; 0 in journals that had no number yet
    sha256: str = ""  # leads to the plan
    masked: Json = None  # the plan as `--dry-run --output json` prints it

    @property
    def is_to_confirm(self) -> bool:
        """Whether it is taken back when all is done, unless somebody confirms it."""
        return bool(self.confirm_within_s) or self.confirm_by is not None

    def confirmed_until(self, now: datetime) -> datetime:
        """Return until when it can be confirmed if it is done `now`."""
        return self.confirm_by or now + timedelta(seconds=self.confirm_within_s)

    @property
    def keeps_before(self) -> bool:
        """Whether pre-images are kept."""
        return self.is_undoable and not self.undoes


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run came, by step index: outcomes of `finished` steps, pre-images of `begun` ones, recorded facts.

    `attempts` are the facts that each attempt at a step has recorded, `facts` those of the last one that did, and
    `latest` those of the very last one.
    """

    finished: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    begun: Mapping[int, PreImage] = field(default_factory=dict)
    attempts: Mapping[int, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    latest: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def facts(self) -> Mapping[int, Mapping[str, str]]:
        return {index: each[-1] for index, each in self.attempts.items()}


NO_PROGRESS = Progress()


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as read from its journal."""

    header: RunHeader
    progress: Progress = NO_PROGRESS
    state: RunState = "open"
    failure: str = ""  # why it stopped, if it could say so
    steps: int = 0
    until: datetime | None = None  # when an unconfirmed run is to be taken back
    last_at: datetime | None = None  # when its last line was written

    @property
    def is_open(self) -> bool:
        """Whether some of its steps may still have to be done."""
        return self.state == "open"

    @property
    def is_unconfirmed(self) -> bool:
        return self.state == "unconfirmed"

    @property
    def is_closed(self) -> bool:
        """Whether it is history: nothing of it is left to be done, confirmed or taken back."""
        return not self.is_open and not self.is_unconfirmed

    @property
    def is_undoable(self) -> bool:
        """Whether undo has anything to take back: all of the run, or what it has begun since its last loss."""
        if not self.header.is_undoable or self.header.undoes:
            return False
        lost = self.last_loss
        return lost is None or (self.header.keeps_after_loss and max(self.progress.begun) > lost)

    @property
    def last_loss(self) -> int | None:
        """The last step that has begun and removes what nobody can bring back: undo ends there. None if none has."""
        losses = {index for index, each in enumerate(_types(self.header.masked)) if each in LOSSES}
        return max(losses.intersection(self.progress.begun), default=None)

    @property
    def kept_contents(self) -> frozenset[str]:
        """The digests of all that was kept for an undo."""
        found = self.progress.begun.values()
        files = (file.sha256 for each in found for file in each.files)
        objects = (former.sha256 for each in found for former in each.objects if former.sha256)
        return frozenset((*files, *objects))

    @property
    def next_phase(self) -> str:
        """The phase of the first step that has not ended; empty if all have."""
        for index, step in enumerate(plan_steps(self.header.masked)):
            if index not in self.progress.finished and isinstance(step, dict):
                return str(step["phase"])
        return ""

    def plan(self, store: RunStore, codec: PlanCodec) -> Plan:
        """Return exactly the plan that the run began with."""
        return codec.plan_from_bytes(store.kept(self.header.sha256))


def whole_lines(data: bytes) -> bytes:
    """Return the lines without a last one that was torn by a kill or a power cut."""
    return data[: data.rfind(b"\n") + 1]


def read_run(data: bytes, codec: PlanCodec) -> RunRecord | None:
    """Return the run that a journal describes, or None if it ended before its plan was written."""
    lines = whole_lines(data).splitlines()
    # The beginning of a plan is what a kill leaves; zeros or anything else have replaced lines that were there.
    if not lines and (data[: len(_FIRST)] != _FIRST[: len(data)] or b"\0" in data):
        raise damaged_journal("none of its lines can be read")
    record: RunRecord | None = None
    for number, line in enumerate(lines, start=1):
        try:
            record = _read_line(record, json.loads(line), codec)
        except (ValueError, KeyError, TypeError, NotReady) as error:
            if closed := _closed(lines):
                return closed
            if isinstance(error, NotReady):
                raise
            raise damaged_journal(f"line {number} cannot be read: {error}") from error
    return record


def _closed(lines: Sequence[bytes]) -> RunRecord | None:
    """Return a closed run that cannot be read as a whole: it is only listed, never resumed or undone."""
    entries = readable_entries(lines)
    closed = next((each for each in entries if each.get("type") == "closed"), None)
    if closed is None:
        return None
    first = next((each for each in entries if each.get("type") == "plan"), closed)
    started_at = _moment(first.get("startedAt")) or _moment(closed.get("at")) or datetime.fromtimestamp(0, UTC)
    header = RunHeader(run=str(first.get("run", "")), command=str(first.get("command", "")), started_at=started_at)
    state = closed.get("state")
    return RunRecord(header, state=state if state in _CLOSED_STATES else "closed")  # type: ignore[arg-type]


def readable_entries(lines: Iterable[bytes]) -> list[dict[str, Json]]:
    """Return the lines that are entries of a journal, and leave out the others."""
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found


def _moment(text: Json) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def damaged_journal(why: str) -> NotReady:
    """Return the error for a run that can be neither resumed nor undone, because it is unknown what it did."""
    return NotReady(why, hint="the disk may be damaged", error_class="bad-journal")


def _read_line(record: RunRecord | None, entry: dict[str, Json], codec: PlanCodec) -> RunRecord:
    is_first = entry["type"] == "plan"  # a line that is no mapping ends here
    at = _moment(entry.get("at"))
    if is_first:
        return RunRecord(_header(entry), steps=len(plan_steps(entry["plan"])), last_at=at)
    if record is None:
        raise ValueError("the plan should stand before it")
    return replace(_after(record, entry, codec), last_at=at)


def _after(record: RunRecord, entry: Mapping[str, Json], codec: PlanCodec) -> RunRecord:
    progress = record.progress
    match entry["type"]:
        case "begin":
            # The first time counts: what a resumed step finds is its own work.
            begun = {**progress.begun}
            begun.setdefault(_index(entry), _before(entry, codec))
            # A step that is repeated has its outcomes of before no more: those of the new attempt may be others.
            finished = {index: each for index, each in progress.finished.items() if index != _index(entry)}
            latest = {index: each for index, each in progress.latest.items() if index != _index(entry)}
            begun_again = replace(progress, begun=begun, finished=finished, latest=latest)
            return replace(record, progress=begun_again, failure="")
        case "learned":
            index = _index(entry)
            facts = _texts(entry["facts"])
            attempts = {**progress.attempts, index: (*progress.attempts.get(index, ()), facts)}
            latest = {**progress.latest, index: facts}
            return replace(record, progress=replace(progress, attempts=attempts, latest=latest))
        case "end":
            finished = {**progress.finished, _index(entry): _texts(entry.get("outcomes", {}))}
            return replace(record, progress=replace(progress, finished=finished))
        case "failed":
            return replace(record, failure=str(entry["message"]))
        case "unconfirmed":
            return replace(record, state="unconfirmed", until=datetime.fromisoformat(str(entry["until"])))
        case "closed":
            return replace(record, state=_state(entry))
        case _:
            return record


def _state(entry: Mapping[str, Json]) -> RunState:
    state = str(entry["state"])
    _check(state in _CLOSED_STATES, "a state that is not known")
    return state  # type: ignore[return-value]


def header_entry(header: RunHeader) -> dict[str, Json]:
    """Return the header as the first line says it."""
    return {
        "type": "plan",
        "format": FORMAT,
        "run": header.run,
        "command": header.command,
        "number": header.number,
        "startedAt": header.started_at.isoformat(),
        "cluster": header.cluster,
        "whole": header.is_whole,
        "undoes": header.undoes,
        "undoable": header.is_undoable,
        "keepsAfterLoss": header.keeps_after_loss,
        "supersedes": header.supersedes,
        "confirmWithinSeconds": header.confirm_within_s,
        **({"confirmBy": header.confirm_by.isoformat()} if header.confirm_by else {}),
        "settings": {**header.settings},
        "sha256": header.sha256,
        "plan": header.masked,
    }


def _header(entry: Mapping[str, Json]) -> RunHeader:
    if entry.get("format") not in _READABLE:
        raise NotReady(
            f"it is in format {entry.get('format')}, and this garboard knows {' and '.join(map(str, _READABLE))}",
            hint="the garboard that began the run can resume or undo it",
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
        # Runs that did not say so could not be undone if any step was one without a way back.
        is_undoable=entry.get("undoable", not LOSSES & {*_types(entry["plan"])}) is True,
        keeps_after_loss=entry.get("keepsAfterLoss", False) is True,
        supersedes=entry.get("supersedes", entry["command"] == _SUPERSEDES_IN_FORMAT_1) is True,
        confirm_within_s=_seconds(entry.get("confirmWithinSeconds", 0.0)),
        confirm_by=_moment(entry.get("confirmBy")),
        settings=_texts(entry["settings"]),
        number=_number(entry.get("number", 0)),
        sha256=str(entry["sha256"]),
        masked=entry["plan"],
    )


def plan_steps(plan: Json) -> list[Json]:
    """Return the steps of a plan as JSON."""
    steps = plan.get("steps") if isinstance(plan, dict) else None
    return steps if isinstance(steps, list) else []


def _types(plan: Json) -> list[str]:
    """Return the type of every step's action in a plan as JSON."""
    actions = (step.get("action") if isinstance(step, dict) else None for step in plan_steps(plan))
    return [str(action.get("type")) if isinstance(action, dict) else "" for action in actions]


def _before(entry: Mapping[str, Json], codec: PlanCodec) -> PreImage:
    found = entry.get("before", {})
    if not isinstance(found, dict):
        raise TypeError("what was before is no mapping")
    known = {each.name for each in fields(PreImage)}
    facts: dict[str, object] = {key: codec.decode(value) for key, value in found.items() if key in known}
    return PreImage(**facts)  # type: ignore[arg-type]


def _index(entry: Mapping[str, Json]) -> int:
    index = entry["index"]
    if not isinstance(index, int):
        raise TypeError("a step has a number")
    return index


def _number(value: Json) -> int:
    if not isinstance(value, int):
        raise TypeError("runs are counted by numbers")
    return value


def _seconds(value: Json) -> float:
    if not isinstance(value, int | float):
        raise TypeError("a time is a number of seconds")
    return float(value)


def _texts(value: Json) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("texts by name are a mapping")
    return {key: str(text) for key, text in value.items()}


def _check(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(what)


@dataclass(frozen=True, slots=True)
class Journal:
    """The recorder that writes a journal; `progress` is how far the run had come when it was resumed.

    Without `keeps_before` no pre-image is needed, and no content, such as that of a key, is kept.
    """

    store: RunStore
    codec: PlanCodec
    observers: Observers
    progress: Progress = NO_PROGRESS
    keeps_before: bool = True

    @classmethod
    def begin_run(
        cls, store: RunStore, codec: PlanCodec, observers: Observers, header: RunHeader, plan: Plan
    ) -> "Journal":
        """Write the plan, before the first step begins."""
        sha256 = store.keep(codec.plan_to_bytes(plan))
        whole = replace(header, run=store.name, sha256=sha256, masked=plan_as_json(plan))
        journal = cls(store, codec, observers, keeps_before=header.keeps_before)
        journal._add(header_entry(whole), is_lasting=True)
        return journal

    def begin(self, index: int, step: Step) -> None:
        """Record the step with its pre-image; once this returns, the record survives a power cut."""
        line: dict[str, Json] = {"type": "begin", "index": index}
        if index not in self.progress.begun:
            before = self._observe(step.action)
            line["before"] = {name: self.codec.encode(value) for name, value in before.facts().items()}
        self._add(line, is_lasting=True)

    def _observe(self, action: Action) -> PreImage:
        if self.keeps_before:
            return traits_of(action).pre_image(action, self.observers, self.store.keep)
        # What looks like a killed write and was there before is somebody else's, also when the step is taken up again.
        beside = (temporaries(path, self.observers.files) for path in traits_of(action).writes(action))
        return PreImage(temporaries=tuple(name for names in beside for name in names))

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        # What the step is about to write is told from what somebody else wrote by these facts, also after a power cut.
        self._add({"type": "learned", "index": index, "facts": {**facts}}, is_lasting=True)

    def end(self, index: int, step: Step, outcomes: Mapping[str, str]) -> None:
        # No sync: the next begin brings it along, and a step whose end was lost is looked at again.
        line: dict[str, Json] = {"type": "end", "index": index}
        self._add({**line, "outcomes": {**outcomes}} if outcomes else line)

    def fail(self, message: str) -> None:
        """Record why the run stops; it stays open."""
        self._add({"type": "failed", "message": message})

    def leave_unconfirmed(self, until: datetime) -> None:
        """Record that all is done, and is to be taken back unless it is confirmed; all that was kept stays."""
        self._add({"type": "unconfirmed", "until": until.astimezone(UTC).isoformat()}, is_lasting=True)

    def close(self, state: RunState) -> None:
        """End the run: from here on there is nothing to resume or undo, and no content is kept."""
        self._add({"type": "closed", "state": state}, is_lasting=True)
        self.store.drop_kept()

    def _add(self, entry: dict[str, Json], *, is_lasting: bool = False) -> None:
        stamped = {**entry, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line = json.dumps(stamped, separators=(",", ":"))
        self.store.append(line.encode() + b"\n", is_lasting=is_lasting)
