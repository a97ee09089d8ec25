"""Carrying a plan out: every action by its interpreter, in order, with somebody told before and after each step."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from garboard.documents import Json
from garboard.engine.action import (
    ChangeOwner,
    ControlService,
    Issue,
    IssueRequest,
    MakeFolder,
    PutObject,
    Unsupported,
    WriteFile,
)
from garboard.engine.plan import Plan, Step
from garboard.engine.show import step_title
from garboard.errors import GarboardError


class PlanRefused(GarboardError):
    """A plan holds something that cannot be done here; nothing has been changed."""

    default_class = "unsupported"


class FileWriter(Protocol):
    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def make_folder(self, path: str, *, mode: int) -> None:
        """Make a folder; `mode` is for all that have to be made on the way."""
        ...

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int) -> None:
        """Replace a file in one move; one that exists keeps its mode."""
        ...

    def change_owner(self, path: str, *, uid: int, gid: int, mode: int | None) -> None:
        """Give a file away with that mode; without one, a folder and all below it."""
        ...


class Issuer(Protocol):
    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        """Make what is asked for; return the content of every file that was announced, by path."""
        ...


class ServiceControl(Protocol):
    def start(self, service: str) -> None: ...

    def stop(self, service: str) -> None: ...

    def restart(self, service: str) -> None: ...


class ObjectWriter(Protocol):
    def put(self, action: PutObject) -> None:
        """Create the object, or bring the existing one to what is asked for."""
        ...


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The interpreters that there are; a plan that needs one of the others is refused before it begins."""

    files: FileWriter
    issuer: Issuer | None = None
    services: ServiceControl | None = None
    objects: ObjectWriter | None = None


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
        for index, step in enumerate(plan.steps):
            self.report(f"[{step.phase}] {step_title(step)}")
            self.recorder.begin(index, step)
            self._do(step)
            self.recorder.end(index, step)

    def refuse(self, plan: Plan) -> None:
        """Raise if the plan holds anything that cannot be done here."""
        missing = dict.fromkeys((step.phase, found) for step in plan.steps if (found := self._missing(step)))
        if missing:
            told = "; ".join(f"{phase}: {what}" for phase, what in missing)
            skips = ",".join(dict.fromkeys(phase for phase, _ in missing))
            raise PlanRefused(
                f"this cannot be carried out yet: {told}",
                hint=f"nothing was changed; run other phases alone, or leave these out with --skip-phases {skips}",
            )

    def _missing(self, step: Step) -> str | None:
        match step.action:
            case Unsupported():
                return step.action.what
            case Issue() if self.hands.issuer is None:
                return "issuing certificates"
            case ControlService() if self.hands.services is None:
                return "controlling services"
            case PutObject() if self.hands.objects is None:
                return "putting objects into the cluster"
            case _:
                return None

    def _do(self, step: Step) -> None:
        action, hands = step.action, self.hands
        match action:
            case MakeFolder():
                hands.files.make_folder(action.path, mode=action.mode)
            case WriteFile():
                hands.files.write(action.path, action.content, new_mode=action.mode, folder_mode=action.folder_mode)
            case ChangeOwner():
                hands.files.change_owner(action.path, uid=action.uid, gid=action.gid, mode=action.mode)
            case Issue():
                self._issue(action)
            case PutObject():
                assert hands.objects is not None
                hands.objects.put(self._filled(action))
            case ControlService():
                self._control(step.phase, action)
            case Unsupported():
                raise AssertionError("refused before the first step")

    def _filled(self, action: PutObject) -> PutObject:
        content = action.content
        for each in action.fillings:
            data = self.hands.files.read(each.path)
            if data is None:
                raise PlanRefused(f"{each.path} has gone, and {action.kind} {action.name} needs it")
            content = _replaced(content, each.placeholder, base64.b64encode(data).decode())
        return replace(action, content=content, fillings=())

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


def _replaced(content: Json, placeholder: str, text: str) -> Json:
    if isinstance(content, dict):
        return {key: _replaced(value, placeholder, text) for key, value in content.items()}
    if isinstance(content, list):
        return [_replaced(value, placeholder, text) for value in content]
    return content.replace(placeholder, text) if isinstance(content, str) else content
