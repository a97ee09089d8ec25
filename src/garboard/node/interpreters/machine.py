"""What a run does on its own machine besides files: issue certificates, control services and links, show, wait."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from garboard.engine import (
    AwaitGate,
    ControlLink,
    ControlService,
    ControlTimer,
    ControlUnitFile,
    Gate,
    GateFailed,
    Interpreters,
    Issue,
    IssuedFile,
    IssueRequest,
    ShowMessage,
    StepContext,
    WillNotOpen,
)
from garboard.engine.pre_image import digest_of
from garboard.errors import GarboardError
from garboard.lazy import lazy_module
from garboard.node.interpreters.files import FileWriter
from garboard.node.reporter import Reporter
from garboard.phases.gates import NodeView
from garboard.retry import CLOCK, Clock, wait_until
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.phases import next_steps
else:  # it reads certificates, and most messages have no fingerprints
    next_steps = lazy_module("garboard.phases.next_steps")


class Issuer(Protocol):
    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        """Issue what is requested; return the content of every file of the action, by path."""
        ...


class ServiceControl(Protocol):
    def is_active(self, service: str) -> bool: ...

    def start(self, service: str) -> None: ...

    def stop(self, service: str) -> None: ...

    def restart(self, service: str) -> None: ...


class TimerControl(Protocol):
    def enable_timer(self, timer: str) -> None: ...

    def disable_timer(self, timer: str) -> None: ...

    def forget_timer(self, timer: str) -> None: ...


class UnitFileControl(Protocol):
    def enable_service(self, service: str) -> None: ...

    def disable_service(self, service: str) -> None: ...

    def forget_service(self, service: str) -> None: ...


class LinkControl(Protocol):
    def add_address(self, address: str, link: str) -> None:
        """Give this node an address, on the link if the kernel can make it; what is there stays."""
        ...

    def remove_address(self, address: str, link: str) -> None:
        """Take the address and the link away; it is no failure if there is none."""
        ...


class MessageDisplay(Protocol):
    def show(self, action: ShowMessage) -> None:
        """Show the text to the user, with public key hashes in place of its pins."""
        ...


@dataclass(frozen=True, slots=True)
class IssueInterpreter:
    """Issues keys and certificates, and writes them as files: all of them or none."""

    issuer: Issuer
    files: FileWriter

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(Issue, self.issue)

    def issue(self, action: Issue, run: StepContext) -> None:
        contents = self.issuer.issue(action.request)
        run.note({file.path: digest_of(contents[file.path]) for file in action.files})
        former = {file.path: self.files.read(file.path) for file in action.files}
        try:
            for file in action.files:
                expected = run.expected.get(file.path)
                self._write(action, file, contents[file.path], expected)
        except BaseException:  # also where a signal leaves the step
            # A key without its certificate is of no use, and would be in the way of the next attempt.
            for file in action.files:
                if self.files.read(file.path) == contents[file.path]:
                    self._take_back(action, file, former[file.path])
            raise

    def _write(self, action: Issue, file: IssuedFile, content: bytes, expected: str | None = None) -> None:
        self.files.write(file.path, content, new_mode=file.mode, folder_mode=action.folder_mode, expected=expected)

    def _take_back(self, action: Issue, file: IssuedFile, former: bytes | None) -> None:
        if former is None:
            self.files.remove(file.path)
        else:
            self._write(action, file, former)


@dataclass(frozen=True, slots=True)
class ServiceInterpreter:
    """Starts, stops and restarts services."""

    services: ServiceControl
    files: FileWriter

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(ControlService, self.control)

    def control(self, action: ControlService, run: StepContext) -> None:
        if action.unless and self.files.read(action.unless) is not None:
            return
        do = {"start": self.services.start, "stop": self.services.stop, "restart": self.services.restart}[action.verb]
        try:
            do(action.service)
        except GarboardError as error:
            if action.is_needed:
                raise
            run.report(f"warning: cannot {action.verb} the service {action.service}: {error.message}")


@dataclass(frozen=True, slots=True)
class TimerInterpreter:
    """Enables and disables timers."""

    timers: TimerControl

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(ControlTimer, self.control)

    def control(self, action: ControlTimer, _run: StepContext) -> None:
        of = self.timers
        do = {"enable": of.enable_timer, "disable": of.disable_timer, "forget": of.forget_timer}[action.verb]
        do(action.timer)


@dataclass(frozen=True, slots=True)
class UnitFileInterpreter:
    """Enables and disables services by their unit files."""

    unit_files: UnitFileControl

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(ControlUnitFile, self.control)

    def control(self, action: ControlUnitFile, _run: StepContext) -> None:
        of = self.unit_files
        do = {"enable": of.enable_service, "disable": of.disable_service, "forget": of.forget_service}[action.verb]
        do(action.service)


@dataclass(frozen=True, slots=True)
class LinkInterpreter:
    """Gives this node addresses, and takes them away."""

    links: LinkControl

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(ControlLink, self.control)

    def control(self, action: ControlLink, _run: StepContext) -> None:
        do = {"add": self.links.add_address, "remove": self.links.remove_address}[action.verb]
        do(action.address, action.link)


@dataclass(frozen=True, slots=True)
class MessageInterpreter:
    """Shows messages."""

    display: MessageDisplay

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(ShowMessage, self.show)

    def show(self, action: ShowMessage, _run: StepContext) -> None:
        self.display.show(action)


@dataclass(frozen=True, slots=True)
class ReporterDisplay:
    """Shows the messages of a plan, with public key hashes of this machine's certificates in place of their pins."""

    files: FileWriter
    reporter: Reporter

    def show(self, action: ShowMessage) -> None:
        self.reporter.show(next_steps.with_pins(action, self.files.read) if action.pins else action.text)


class GateWaiter(Protocol):
    def wait(self, gate: Gate) -> None:
        """Return once the gate is open; on a timeout, raise with the evidence."""
        ...

    def is_open(self, gate: Gate) -> bool:
        """Look once whether a gate is open; raise if that cannot be told."""
        ...


@dataclass(frozen=True, slots=True)
class ProbingWaiter:
    """Waits for gates by probing the node repeatedly."""

    view: NodeView
    clock: Clock = CLOCK

    def wait(self, gate: Gate) -> None:
        try:
            found = wait_until(gate.probe(self.view), timeout_s=gate.timeout_s, pauses=gate.pauses, clock=self.clock)
        except WillNotOpen as seen:
            raise GateFailed(gate, str(seen), gate.evidence(self.view), is_final=True) from None
        if found is not None:
            raise gate.failure(found, gate.evidence(self.view))

    def is_open(self, gate: Gate) -> bool:
        with suppress(WillNotOpen):
            return gate.probe(self.view)() is None
        return False


@dataclass(frozen=True, slots=True)
class GateInterpreter:
    waiter: GateWaiter

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(AwaitGate, self.wait)

    def wait(self, action: AwaitGate, _run: StepContext) -> None:
        self.waiter.wait(action.gate)
