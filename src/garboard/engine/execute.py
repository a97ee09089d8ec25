"""Carrying a plan out: every action by its interpreter, in order, with somebody told before and after each step."""

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from garboard.documents import Json
from garboard.engine.action import (
    Action,
    AddMember,
    AwaitGate,
    ChangeOwner,
    ControlService,
    DeleteObject,
    EmptyFolder,
    EndTurn,
    FileAction,
    Filling,
    Issue,
    MakeFolder,
    MemberAction,
    ObjectAction,
    PatchObject,
    PromoteMember,
    PullImage,
    PutObject,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    RuntimeAction,
    TakeTurn,
    Tell,
    TurnAction,
    Unmount,
    Unsupported,
    WriteFile,
)
from garboard.engine.before import Before, digest_of, temporaries
from garboard.engine.hands import Hands
from garboard.engine.plan import Plan, Step, written_by
from garboard.engine.runs import NO_PROGRESS, Progress
from garboard.engine.show import step_title
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.values import dataclass

# What the API server is asked for: doing it twice is doing it once.
_REPEATABLE = (PutObject, PatchObject, DeleteObject, EndTurn)
_PAUSE_S = 1.0
# Who we are to the cluster has no right, has run out, or never came to be.
_WITHOUT_RIGHTS = ("forbidden", "unauthenticated", "bad-kubeconfig")


class PlanRefused(GarboardError):
    """A plan holds something that cannot be done here; nothing has been changed."""

    default_class = "unsupported"


class Recorder(Protocol):
    """Who keeps account of a run; it is asked to remember a step before the step begins."""

    def begin(self, index: int, step: Step) -> None: ...

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        """Take note of what came up in the middle of a step, in case it does not come to its end."""
        ...

    def end(self, index: int, step: Step, outcomes: Mapping[str, str]) -> None: ...


class NoRecord:
    """The recorder of a run that nobody will resume."""

    def begin(self, index: int, step: Step) -> None:
        return

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        return

    def end(self, index: int, step: Step, outcomes: Mapping[str, str]) -> None:
        return


NO_RECORD = NoRecord()


def _silent(_line: str, /) -> None:
    return


@contextmanager
def _unguarded(_step: Step) -> Iterator[None]:
    yield


@dataclass(frozen=True, slots=True)
class Executor:
    """Does the steps of a plan. `report` is told one line for each, and every failure that does not stop the plan.

    `around` holds each step: who wants to stop between two steps, or to know how long they take, stands there.
    `patience_s` is how long objects and turns are tried again while the cluster cannot be reached.
    """

    hands: Hands
    report: Callable[[str], None] = _silent
    recorder: Recorder = NO_RECORD
    around: Callable[[Step], AbstractContextManager[None]] = _unguarded
    patience_s: float = 0.0

    def execute(self, plan: Plan, progress: Progress = NO_PROGRESS) -> None:
        """Do every step that is not finished; the first failure ends it, and says in which phase."""
        self.refuse(plan)
        outcomes: dict[str, str] = {}
        for index, step in enumerate(plan.steps):
            if index in progress.finished and not has_lapsed(index, plan, progress):
                outcomes.update(progress.finished[index])
                continue
            with self.around(step):
                self.report(f"[{step.phase}] {step_title(step)}")
                self.recorder.begin(index, step)
                made = self._take_up(index, step, outcomes, progress)
                self.recorder.end(index, step, made)
                outcomes.update(made)

    def _take_up(self, index: int, step: Step, outcomes: Mapping[str, str], progress: Progress) -> Mapping[str, str]:
        """Do a step, unless it had begun before and is already so; return what it found out."""
        if index in progress.begun:
            self._sweep(step.action, progress.begun[index])
            if self._is_so(step.action, outcomes, progress.facts.get(index, {})):
                return {}
        return self._do_patiently(index, step, outcomes)

    def _do_patiently(self, index: int, step: Step, outcomes: Mapping[str, str]) -> Mapping[str, str]:
        give_up_at = time.monotonic() + self.patience_s
        while True:
            try:
                return self._do(index, step, outcomes)
            except ClusterUnreachable as error:
                if not isinstance(step.action, _REPEATABLE) or time.monotonic() >= give_up_at:
                    raise
                self.report(f"[{step.phase}] trying again: {error.message}")
                time.sleep(_PAUSE_S)

    def _sweep(self, action: Action, before: Before) -> None:
        """Remove what a killed write left beside its file."""
        for path in written_by(action):
            for each in temporaries(path, self.hands.files):
                if each not in before.temporaries:
                    self.hands.files.remove(each)

    def _is_so(self, action: Action, outcomes: Mapping[str, str], facts: Mapping[str, str]) -> bool:
        """Say whether a step that was cut short has done its work. What is not known here is harmless to repeat."""
        files = self.hands.files
        match action:
            case WriteFile():
                return files.read(action.path) == _with_outcomes(action, outcomes)
            case Issue():
                # Exactly the bytes that were issued, all of them: a key never stands beside another's certificate.
                found = {file.path: files.read(file.path) for file in action.files}
                digests = {path: digest_of(data) for path, data in found.items() if data is not None}
                return bool(facts) and digests == facts
            case ControlService(verb="start"):
                return self.hands.services is not None and self.hands.services.is_active(action.service)
            case _:
                return False

    def refuse(self, plan: Plan) -> None:
        """Raise if the plan holds anything that cannot be done here."""
        missing = dict.fromkeys(
            (step.phase, found) for step in plan.steps if (found := self.hands.missing(step.action))
        )
        if missing:
            told = "; ".join(f"{phase}: {what}" for phase, what in missing)
            skips = ",".join(dict.fromkeys(phase for phase, _ in missing))
            raise PlanRefused(
                f"this cannot be carried out yet: {told}",
                hint=f"nothing was changed; run other phases alone, or leave these out with --skip-phases {skips}",
            )

    def _do(self, index: int, step: Step, outcomes: Mapping[str, str]) -> Mapping[str, str]:
        action = step.action
        match action:
            case Issue():
                self._issue(index, action)
            case PutObject() | PatchObject() | DeleteObject():
                self._change_objects(step.phase, action)
            case ControlService():
                self._control(step.phase, action)
            case AddMember() | PromoteMember() | RemoveMember():
                return self._change_members(action)
            case PullImage() | RemoveSandboxes() | TakeTurn() | EndTurn() | AwaitGate() | Tell():
                self._ask(action)
            case Unsupported():
                raise AssertionError("refused before the first step")
            case _:
                self._change_files(action, outcomes)
        return {}

    def _ask(self, action: RuntimeAction | TurnAction | AwaitGate | Tell) -> None:
        hands = self.hands
        match action:
            case PullImage() | RemoveSandboxes():
                assert hands.runtime is not None
                hands.runtime.pull(action) if isinstance(action, PullImage) else hands.runtime.remove_sandboxes()
            case TakeTurn() | EndTurn():
                assert hands.turns is not None
                hands.turns.take(action) if isinstance(action, TakeTurn) else hands.turns.end(action)
            case AwaitGate():
                assert hands.watcher is not None
                hands.watcher.wait(action.gate)
            case Tell():
                assert hands.narrator is not None
                hands.narrator.tell(action)

    def _change_objects(self, phase: str, action: ObjectAction) -> None:
        objects = self.hands.objects
        assert objects is not None
        match action:
            case PutObject():
                objects.put(self._filled(action))
            case PatchObject():
                objects.patch(action)
            case DeleteObject():
                self._delete(phase, action)

    def _change_files(self, action: FileAction, outcomes: Mapping[str, str]) -> None:
        files = self.hands.files
        match action:
            case MakeFolder():
                files.make_folder(action.path, mode=action.mode)
            case WriteFile():
                content = _with_outcomes(action, outcomes)
                files.write(action.path, content, new_mode=action.mode, folder_mode=action.folder_mode)
            case RemoveFile():
                files.remove(action.path)
            case RemoveFolder():
                files.remove_folder(action.path)
            case EmptyFolder():
                files.empty_folder(action.path, keeps=action.keeps)
            case Unmount():
                files.unmount(action.path, flags=action.flags)
            case ChangeOwner():
                files.change_owner(action.path, uid=action.uid, gid=action.gid, mode=action.mode)

    def _change_members(self, action: MemberAction) -> Mapping[str, str]:
        members = self.hands.members
        assert members is not None
        match action:
            case AddMember():
                return {action.outcome: members.add(action)}
            case PromoteMember():
                members.promote(action)
            case RemoveMember():
                members.remove(action)
        return {}

    def _filled(self, action: PutObject) -> PutObject:
        content = action.content
        for each in action.fillings:
            data = self._filling(each, action)
            content = _replaced(content, each.placeholder, base64.b64encode(data).decode())
        for ending in action.endings:
            moment = (datetime.now(UTC) + ending.after).strftime("%Y-%m-%dT%H:%M:%SZ")
            content = _replaced(content, ending.placeholder, base64.b64encode(moment.encode()).decode())
        return replace(action, content=content, fillings=(), endings=())

    def _filling(self, filling: Filling, action: PutObject) -> bytes:
        data = self.hands.files.read(filling.path)
        if data is None:
            if not filling.is_needed:
                return b""
            raise PlanRefused(f"{filling.path} has gone, and {action.kind} {action.name} needs it")
        if not filling.key:
            return data
        assert self.hands.sealer is not None
        return self.hands.sealer.seal(data, filling.key)

    def _issue(self, index: int, action: Issue) -> None:
        assert self.hands.issuer is not None
        contents = self.hands.issuer.issue(action.request)
        self.recorder.learned(index, {file.path: digest_of(contents[file.path]) for file in action.files})
        files, made = self.hands.files, list[str]()
        try:
            for file in action.files:
                made += [file.path] if files.read(file.path) is None else []
                files.write(file.path, contents[file.path], new_mode=file.mode, folder_mode=action.folder_mode)
        except GarboardError:
            # A key without its certificate is of no use, and would be in the way of the next attempt.
            for path in made:
                files.remove(path)
            raise

    def _delete(self, phase: str, action: DeleteObject) -> None:
        assert self.hands.objects is not None
        try:
            self.hands.objects.delete(action)
        except GarboardError as error:
            if action.is_needed or error.error_class not in _WITHOUT_RIGHTS:
                raise
            todo = f"kubectl delete {action.kind.lower()} {action.name}"
            self.report(f"[{phase}] warning: this node may not delete {action.kind} {action.name}; please do: {todo}")

    def _control(self, phase: str, action: ControlService) -> None:
        if action.unless and self.hands.files.read(action.unless) is not None:
            return
        services = self.hands.services
        assert services is not None
        do = {"start": services.start, "stop": services.stop, "restart": services.restart}[action.verb]
        try:
            do(action.service)
        except GarboardError as error:
            if action.is_needed:
                raise
            self.report(f"[{phase}] warning: cannot {action.verb} the service {action.service}: {error.message}")


def has_lapsed(index: int, plan: Plan, progress: Progress) -> bool:
    """Say whether a finished step may have come to nothing since: it is then repeated, which is harmless.

    A turn is held by a process that has gone, until it was passed on; and a learner may be removed by whoever comes
    next, until it votes.
    """
    action = plan.steps[index].action
    later = [number for number in range(index + 1, len(plan.steps)) if number in progress.finished]
    match action:
        case TakeTurn():
            ends = (plan.steps[number].action for number in later)
            return not any(isinstance(each, EndTurn) and each.name == action.name for each in ends)
        case AddMember():
            ends = (plan.steps[number].action for number in later)
            return not any(isinstance(each, PromoteMember) and each.peer_url == action.peer_url for each in ends)
        case _:
            return False


def _with_outcomes(action: WriteFile, outcomes: Mapping[str, str]) -> bytes:
    content = action.content
    for each in action.outcomes:
        content = content.replace(each.placeholder.encode(), outcomes[each.name].encode())
    return content


def _replaced(content: Json, placeholder: str, text: str) -> Json:
    if isinstance(content, dict):
        return {key: _replaced(value, placeholder, text) for key, value in content.items()}
    if isinstance(content, list):
        return [_replaced(value, placeholder, text) for value in content]
    return content.replace(placeholder, text) if isinstance(content, str) else content
