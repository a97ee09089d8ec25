"""Carrying a plan out: every action by its interpreter, in order, with somebody told before and after each step."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from garboard.documents import Json
from garboard.engine.action import (
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
    PatchObject,
    PromoteMember,
    PullImage,
    PutObject,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    TakeTurn,
    Tell,
    Unmount,
    Unsupported,
    WriteFile,
)
from garboard.engine.hands import Hands
from garboard.engine.plan import Plan, Step
from garboard.engine.show import step_title
from garboard.errors import GarboardError


class PlanRefused(GarboardError):
    """A plan holds something that cannot be done here; nothing has been changed."""

    default_class = "unsupported"


class Recorder(Protocol):
    """Who keeps account of a run; it is asked to remember a step before the step begins."""

    def begin(self, index: int, step: Step) -> None: ...

    def end(self, index: int, step: Step) -> None: ...


class NoRecord:
    """The recorder of a run that nobody will resume."""

    def begin(self, index: int, step: Step) -> None:
        return

    def end(self, index: int, step: Step) -> None:
        return


NO_RECORD = NoRecord()


def _silent(_line: str, /) -> None:
    return


@dataclass(frozen=True, slots=True)
class Executor:
    """Does the steps of a plan. `report` is told one line for each, and every failure that does not stop the plan."""

    hands: Hands
    report: Callable[[str], None] = _silent
    recorder: Recorder = NO_RECORD

    def execute(self, plan: Plan) -> None:
        """Do every step; the first failure ends it, and says in which phase."""
        self.refuse(plan)
        outcomes: dict[str, str] = {}
        for index, step in enumerate(plan.steps):
            self.report(f"[{step.phase}] {step_title(step)}")
            self.recorder.begin(index, step)
            self._do(step, outcomes)
            self.recorder.end(index, step)

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

    def _do(self, step: Step, outcomes: dict[str, str]) -> None:
        action, hands = step.action, self.hands
        match action:
            case Issue():
                self._issue(action)
            case PutObject():
                assert hands.objects is not None
                hands.objects.put(self._filled(action))
            case PatchObject():
                assert hands.objects is not None
                hands.objects.patch(action)
            case DeleteObject():
                assert hands.objects is not None
                hands.objects.delete(action)
            case ControlService():
                self._control(step.phase, action)
            case AddMember() | PromoteMember() | RemoveMember():
                self._change_members(action, outcomes)
            case PullImage():
                assert hands.runtime is not None
                hands.runtime.pull(action)
            case RemoveSandboxes():
                assert hands.runtime is not None
                hands.runtime.remove_sandboxes()
            case TakeTurn():
                assert hands.turns is not None
                hands.turns.take(action)
            case EndTurn():
                assert hands.turns is not None
                hands.turns.end(action)
            case AwaitGate():
                assert hands.watcher is not None
                hands.watcher.wait(action.gate)
            case Tell():
                assert hands.narrator is not None
                hands.narrator.tell(action)
            case Unsupported():
                raise AssertionError("refused before the first step")
            case _:
                self._change_files(action, outcomes)

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
                files.empty_folder(action.path)
            case Unmount():
                files.unmount(action.path)
            case ChangeOwner():
                files.change_owner(action.path, uid=action.uid, gid=action.gid, mode=action.mode)

    def _change_members(self, action: MemberAction, outcomes: dict[str, str]) -> None:
        members = self.hands.members
        assert members is not None
        match action:
            case AddMember():
                outcomes[action.outcome] = members.add(action)
            case PromoteMember():
                members.promote(action)
            case RemoveMember():
                members.remove(action)

    def _filled(self, action: PutObject) -> PutObject:
        content = action.content
        for each in action.fillings:
            data = self._filling(each, action)
            content = _replaced(content, each.placeholder, base64.b64encode(data).decode())
        return replace(action, content=content, fillings=())

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

    def _issue(self, action: Issue) -> None:
        assert self.hands.issuer is not None
        contents = self.hands.issuer.issue(action.request)
        for file in action.files:
            self.hands.files.write(file.path, contents[file.path], new_mode=file.mode, folder_mode=action.folder_mode)

    def _control(self, phase: str, action: ControlService) -> None:
        services = self.hands.services
        assert services is not None
        do = {"start": services.start, "stop": services.stop, "restart": services.restart}[action.verb]
        try:
            do(action.service)
        except GarboardError as error:
            if action.is_needed:
                raise
            self.report(f"[{phase}] warning: cannot {action.verb} the service {action.service}: {error.message}")


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
