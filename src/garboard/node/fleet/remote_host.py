"""A host as its provisioner sees it: asked and changed through the operator's command, also when that is cut off."""

import json
from collections.abc import Sequence
from contextlib import suppress

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.fleet.installers.contract import CREATE_CLUSTER, InstallerFailed
from garboard.fleet.installers.host_config import FleetHost
from garboard.fleet.installers.host_view import (
    BeginCommand,
    CommandDone,
    HostClaim,
    HostRefused,
    HostView,
    ResumeRun,
    next_command,
    read_view,
)
from garboard.node.reporter import Reporter
from garboard.node.via import Carrier, CommandEnded, NodeUnknown, Via
from garboard.node.via.carrier import printable
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

_HOST = ("fleet", "host")
_TRIES = 5
_PAUSES = Pauses(1.0, 15.0, growth=2.0)
_RELEASE_WITHIN_S = 900.0


@dataclass(frozen=True, slots=True)
class HostTimes:
    """How long one command on a host may take, and how long its outcome is asked for."""

    command_s: float = 1800.0
    find_out_s: float = 900.0


class RemoteHost:
    """One host, and the claim by which it belongs to the cluster."""

    def __init__(
        self,
        host: FleetHost,
        claim: HostClaim,
        reporter: Reporter,
        times: HostTimes | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self.host, self._claim, self._reporter = host, claim, reporter
        self._times, self._clock = times or HostTimes(), clock
        self._carrier = Carrier(Via(host.via), reporter, clock)

    @property
    def name(self) -> str:
        return self.host.name

    def require_same_version(self) -> None:
        self._carrier.require_same_version([self.name])

    def view(self) -> HostView:
        return self._carrier.ask(self.name, (*_HOST, "look"), _view)

    def claim(self) -> None:
        """Have the host carry our infraID."""
        self._change("claim", self._claim.document())

    def stage(self, files: Json) -> None:
        """Give the host its bundle."""
        self._change("stage", {"claim": self._claim.document(), "files": files})

    def bring(self, command: str, words: Sequence[str]) -> bool:
        """Have `init` or `join` carried out there, whatever a former attempt has left; say whether it had been."""
        for tries in range(_TRIES):
            found = next_command(self._settled(), command, self.name)
            if isinstance(found, CommandDone):
                return tries == 0
            given = ("resume", found.run) if isinstance(found, ResumeRun) else tuple(words)
            assert isinstance(found, BeginCommand | ResumeRun)
            self._report(f"garboard {' '.join(given)}")
            outcome = self._carrier.change(
                self.name, given, timeout_s=self._times.command_s, find_out_s=self._times.find_out_s
            )
            if isinstance(outcome, CommandEnded):
                if outcome.status != 0:
                    raise _failed(self.name, f"garboard {' '.join(given)} ended with status {outcome.status}")
                return False
            self._report(f"{outcome.reason}; asking what is left to do")
        raise _failed(self.name, f"the connection was lost {_TRIES} times during {command}")

    def run(self, words: Sequence[str]) -> None:
        """Run a command that may be repeated."""
        outcome = self._carrier.run(self.name, words, timeout_s=self._times.command_s)
        if not isinstance(outcome, CommandEnded) or outcome.status != 0:
            raise _failed(self.name, f"garboard {' '.join(words)} did not succeed")

    def ask_cluster(self, verb: str, document: Json = None) -> Json:
        """Ask the cluster through this host, which is a control plane."""
        data = b"" if document is None else json.dumps(document).encode()
        return self._carrier.ask(self.name, (*_HOST, verb), _json, stdin=data, timeout_s=self._times.command_s)

    def release(self) -> str:
        """Have the host reset if it still shows our infraID; return what it says."""
        self._await_idle()
        answer: Json = None

        def problem() -> str | None:
            nonlocal answer
            try:
                answer = self._carrier.ask(
                    self.name,
                    (*_HOST, "release"),
                    _json,
                    stdin=json.dumps(self._claim.document()).encode(),
                    timeout_s=_RELEASE_WITHIN_S,
                )
            except NodeUnknown as error:
                return error.message
            return None

        # A connection that was cut off is tried again, for a reset that has begun goes on there.
        last = wait_until(problem, timeout_s=self._times.find_out_s / 30, pauses=_PAUSES, clock=self._clock)
        if last is not None:
            raise NodeUnknown(last, hint="the same command asks the host again")
        if refused := _member(answer, "refused"):
            raise HostRefused(f"{self.name}: {refused}")
        return str(_member(answer, "outcome"))

    def _await_idle(self) -> None:
        """Wait until nothing is at work on the host, such as a run that goes on without its provisioner."""

        def problem() -> str | None:
            at_work = self.view().locked_by
            if at_work:
                self._report(f"{at_work} is at work there; waiting")
            return at_work or None

        with suppress(NodeUnknown):  # whoever asks next will say so
            wait_until(problem, timeout_s=self._times.find_out_s, pauses=_PAUSES, clock=self._clock)

    def _change(self, verb: str, document: Json) -> None:
        answer = self._carrier.ask(self.name, (*_HOST, verb), _json, stdin=json.dumps(document).encode())
        if refused := _member(answer, "refused"):
            raise HostRefused(f"{self.name}: {refused}")
        claim = read_view(_member(answer, "view")).claim
        if claim is None or (claim.infra_id, claim.host) != (self._claim.infra_id, self._claim.host):
            shown = f"{claim.infra_id} as {claim.host}" if claim else "no infraID"
            raise HostRefused(f"{self.name}: it shows {shown} after it took {self._claim.infra_id} as {self.name}")

    def _settled(self) -> HostView:
        """Return what the host says once nothing is at work there."""
        found: list[HostView] = []

        def problem() -> str | None:
            found[:] = [self.view()]
            return f"{found[0].locked_by} is at work there" if found[0].locked_by else None

        last = wait_until(problem, timeout_s=self._times.find_out_s, pauses=_PAUSES, clock=self._clock)
        if last is not None:
            raise NodeUnknown(f"{self.name}: {last}", hint="wait until it has ended")
        claim = found[0].claim
        if claim is None or claim.infra_id != self._claim.infra_id:
            raise HostRefused(f"{self.name}: it does not carry {self._claim.infra_id} any more")
        return found[0]

    def _report(self, line: str) -> None:
        self._reporter.report(f"[{self.name}] {line}")


def _failed(host: str, message: str) -> InstallerFailed:
    return InstallerFailed(
        CREATE_CLUSTER,
        f"{host}: {message}",
        hint="what it said is above and in the log; the same command goes on there, "
        "and garboard fleet deprovision takes everything back",
    )


def _json(answer: str) -> Json:
    try:
        document: Json = json.loads(answer)
    except ValueError:
        raise BadDocument(f"it answers {answer[:200]!r} instead of JSON", error_class="bad-answer") from None
    return _printable(document)


def _printable(document: Json) -> Json:
    """Return an answer whose texts are fit for a terminal."""
    if isinstance(document, dict):
        return {printable(key): _printable(value) for key, value in document.items()}
    if isinstance(document, list):
        return [*map(_printable, document)]
    return printable(document) if isinstance(document, str) else document


def _view(answer: str) -> HostView:
    document = _json(answer)
    if refused := _member(document, "refused"):
        raise HostRefused(str(refused))
    return read_view(_member(document, "view"))


def _member(document: Json, name: str) -> Json:
    if not isinstance(document, dict) or name not in document:
        raise BadDocument(f"its answer has no {name}", error_class="bad-answer")
    return document[name]
