"""The journal of a run: a line before and after every step, on disk before the step begins."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from garboard.documents import Json
from garboard.engine.action import Action
from garboard.engine.before import Before, Eyes, observe, temporaries
from garboard.engine.plan import Plan, Step, written_by
from garboard.engine.runs import NO_PROGRESS, Progress, RunHeader, RunState, RunStore, header_entry
from garboard.engine.show import plan_as_json
from garboard.engine.storing import PlanCodec
from garboard.engine.undo import is_undoable
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Journal:
    """A recorder that writes; `progress` is how far the run had come when it was taken up.

    Without `keeps_before` nobody will ask what a step found, and no content, such as that of a key, is kept of it.
    """

    store: RunStore
    codec: PlanCodec
    eyes: Eyes
    progress: Progress = NO_PROGRESS
    keeps_before: bool = True

    @classmethod
    def begin_run(cls, store: RunStore, codec: PlanCodec, eyes: Eyes, header: RunHeader, plan: Plan) -> "Journal":
        """Write the plan down, before anything is done."""
        sha256 = store.keep(codec.plan_to_bytes(plan))
        whole = replace(header, run=store.name, sha256=sha256, masked=plan_as_json(plan))
        journal = cls(store, codec, eyes, keeps_before=is_undoable(plan) and not header.undoes)
        journal._add(header_entry(whole), is_lasting=True)
        return journal

    def begin(self, index: int, step: Step) -> None:
        """Note what the step is about to change; when this returns, a power cut cannot take that away."""
        line: dict[str, Json] = {"type": "begin", "index": index}
        if index not in self.progress.begun:
            before = self._observe(step.action)
            line["before"] = {name: self.codec.encode(value) for name, value in before.facts().items()}
        self._add(line, is_lasting=True)

    def _observe(self, action: Action) -> Before:
        if self.keeps_before:
            return observe(action, self.eyes, self.store.keep)
        # What looks like a killed write and was there before is somebody else's, also when the step is taken up again.
        beside = (temporaries(path, self.eyes.files) for path in written_by(action))
        return Before(temporaries=tuple(name for names in beside for name in names))

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        self._add({"type": "learned", "index": index, "facts": {**facts}})

    def end(self, index: int, step: Step, outcomes: Mapping[str, str]) -> None:
        # No sync: the next begin brings it along, and a step whose end was lost is looked at again.
        line: dict[str, Json] = {"type": "end", "index": index}
        self._add({**line, "outcomes": {**outcomes}} if outcomes else line)

    def fail(self, message: str) -> None:
        """Note why the run stops here; it stays open."""
        self._add({"type": "failed", "message": message})

    def close(self, state: RunState) -> None:
        """End the run: from here on there is nothing to resume or undo, and no content is kept."""
        self._add({"type": "closed", "state": state}, is_lasting=True)
        self.store.drop_kept()

    def _add(self, entry: dict[str, Json], *, is_lasting: bool = False) -> None:
        stamped = {**entry, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line = json.dumps(stamped, separators=(",", ":"))
        self.store.append(line.encode() + b"\n", is_lasting=is_lasting)
