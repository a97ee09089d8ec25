"""Leases of the cluster that this node belongs to, or joins: acquired, renewed while a run holds them, and released."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

from garboard.engine import LEASE_TOKEN, AcquireLease, Interpreters, Outcomes, ReleaseLease, Step, StepContext
from garboard.errors import BadUsage, ClusterUnreachable, GarboardError, NotReady, StalePlan
from garboard.lazy import lazy_module
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.phases.control_plane_lease import COORDINATOR, FORMER_LEASE, LEASE, MEMBER, UNIT
from garboard.retry import CLOCK, Clock, Pauses, retry, wait_until
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard import kube
else:
    kube = lazy_module("garboard.kube")

# A way back must not depend on the API server that it is to bring back: for that long it is asked for the Lease.
_SILENT_FOR_S, _PAUSES = 30.0, Pauses.every(1.0)
# A lone API server that does not answer before a unit is no reason not to begin it.
_ASKED_FOR_S = 5.0


class LeaseControl(Protocol):
    def acquire(self, action: AcquireLease) -> Outcomes:
        """Wait until this node holds the Lease, and renew it until it is released; return the outcomes."""
        ...

    def release(self, action: ReleaseLease) -> None: ...


@dataclass(frozen=True, slots=True)
class LeaseInterpreter:
    """Acquires and releases Leases for one run, by its id: a machine that was cloned may have the name of another."""

    leases: LeaseControl
    run_id: str = ""  # empty for runs that were begun before there was one

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(AcquireLease, self.acquire).add(ReleaseLease, self.release)

    def acquire(self, action: AcquireLease, _run: StepContext) -> Outcomes:
        return self.leases.acquire(replace(action, holder=self._holder(action.holder)))

    def release(self, action: ReleaseLease, _run: StepContext) -> None:
        self.leases.release(replace(action, holder=self._holder(action.holder)))

    def _holder(self, node: str) -> str:
        return f"{node}/{self.run_id}" if self.run_id else node


@dataclass(frozen=True, slots=True)
class LeaseToken:
    """What the holder of the control plane's Lease hands to a run on a node, which then acquires none itself."""

    holder: str
    token: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the token that `HOLDER:TOKEN` names, as a command on another node is given it."""
        holder, _, token = text.rpartition(":")
        if not holder or not token.isdecimal():
            raise BadUsage(f"{text!r} is no holder of a Lease with its token", hint="as cp-1/20261118T093000:4")
        return cls(holder, int(token))

    def __str__(self) -> str:
        return f"{self.holder}:{self.token}"


class NodeLeases:
    """Carries out the actions on Leases; `connect` opens the API server of the cluster.

    With a token that was `handed` to this run, the Lease of the control plane is only looked at: its holder acquires,
    renews and releases it.
    """

    def __init__(
        self,
        connect: "Callable[[], kube.KubeClient]",
        report: Callable[[str], None],
        handed: LeaseToken | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self._connect = connect
        self._report = report
        self._handed_token = handed
        self._clock = clock
        self._goes_without = False
        self._refuses_half_changed = False
        self._recheck: Callable[[float], None] | None = None
        self._unit = ""  # that the run is in the middle of

    def begin_run(self, recheck: Callable[[float], None] | None = None) -> None:
        """Refuse to acquire the Lease from now on while what an earlier holder left half done may need quorum.

        A run that is resumed or undone is not refused: it may be what is half done. `recheck` raises if what was
        planned does not fit any more once the Lease was had, and is told for how long it was waited for.
        """
        self._refuses_half_changed = True
        self._recheck = recheck

    def acquire(self, action: AcquireLease) -> Outcomes:
        if not action.is_needed and (problem := self._silence(_claim(action))):
            self._report(f"[lease] going on without {_claim(action)}: {problem}")
            self._goes_without = True
            return {}
        if self._handed:
            self._handed.confirm()
            self._recheck_after(0.0)
            return {LEASE_TOKEN: str(self._handed.token)}
        payload = action.payload or (f"{MEMBER}:{action.peer_url}" if action.peer_url else "")
        claim = replace(
            _claim(action),
            payload=kube.LeasePayload.parse(payload) if payload else None,
            duration_s=action.duration_s or kube.LEASE_DURATION_S,
        )
        began_s = self._clock.now_s()
        token = self._leases.acquire(claim, action.timeout_s)
        if self._refuses_half_changed:
            self._refuse_half_changed(claim)
        try:
            self._recheck_after(self._clock.now_s() - began_s)
        except StalePlan:
            self._leases.release(claim)
            raise
        return {LEASE_TOKEN: str(token)}

    def _recheck_after(self, waited_s: float) -> None:
        if self._recheck is not None:
            self._recheck(waited_s)

    def _refuse_half_changed(self, claim: "kube.LeaseClaim") -> None:
        error = next((coordinator_cut_short(each) for each in self.left_behind(COORDINATOR)), None)
        units = (each for each in self.left_behind(UNIT) if each != _node_of(claim.holder))
        error = error or next((node_cut_short(each) for each in units), None)
        if error:
            self._leases.release(claim)
            raise error
        self.forget_left_behind(UNIT)

    def release(self, action: ReleaseLease) -> None:
        claim = replace(_claim(action), payload=kube.LeasePayload(UNIT, _node_of(action.holder)))
        if self._goes_without:
            with suppress(ClusterUnreachable):  # an earlier process may have held it; it runs out by itself
                self._leases.release(claim)
        elif not self._handed:
            # An API server that has just come back may not be known to the load balancer yet.
            retry(
                lambda: self._leases.release(claim),
                timeout_s=_SILENT_FOR_S,
                pauses=_PAUSES,
                is_passing=lambda error: isinstance(error, ClusterUnreachable),
                clock=self._clock,
            )

    def _silence(self, claim: "kube.LeaseClaim") -> str | None:
        """Say why the API server does not answer, if it stays away for a while.

        One that has just started knows no roles yet, and forbids what it will allow in a moment.
        """

        def problem() -> str | None:
            try:
                with self._connect() as client:
                    claim.find(client)
            except GarboardError as error:
                return error.message
            return None

        return wait_until(problem, timeout_s=_SILENT_FOR_S, pauses=_PAUSES, clock=self._clock)

    def left_behind(self, kind: str) -> tuple[str, ...]:
        """Return the payloads of a kind that earlier holders of the Lease left when they died or gave up."""
        return self._leases.left_behind(kind)

    def forget_left_behind(self, kind: str) -> None:
        self._leases.forget_left_behind(kind)

    def confirm(self) -> None:
        """Make sure that a Lease that is held is still ours, before what all nodes share is changed."""
        (self._handed or self._leases).confirm()

    def check(self) -> None:
        """Raise if another holder of the Lease was seen."""
        if self._handed:
            self._handed.check()
        elif "_leases" in vars(self):
            self._leases.check()

    def check_before(self, step: Step) -> None:
        """Refuse to go on if the Lease was lost; only what is about to end it does no harm.

        This is called before each unit and between units. A process that was stopped for a while may not have noticed
        a loss, so that the Lease is asked for before a unit.
        """
        self._unit = step.unit
        try:
            if step.unit and "_leases" in vars(self):
                with suppress(ClusterUnreachable):
                    self._leases.confirm(_ASKED_FOR_S)
            self.check()
        except kube.LeaseLost as error:
            if not isinstance(step.action, ReleaseLease):
                raise
            self._report(f"[lease] warning: {error.message}; nothing was left to be done under it")

    def close(self) -> None:
        """Give up a Lease that is still held: the next holder removes the learner that this one has added.

        A node that is in the middle of a unit stays named in the Lease, and no other one may begin a run under it.
        """
        if "_leases" in vars(self):
            self._leases.give_up(drops="" if self._unit else UNIT)

    @cached_property
    def _handed(self) -> "kube.HandedLease | None":
        if self._handed_token is None:
            return None
        claim = kube.LeaseClaim(name=LEASE, namespace=KUBE_SYSTEM, holder=self._handed_token.holder)
        return kube.HandedLease(self._connect, claim, self._handed_token.token, self._clock)

    @cached_property
    def _leases(self) -> "kube.ClusterLeases":
        return kube.ClusterLeases(self._connect, self._report, self._clock)


def node_cut_short(node: str) -> NotReady:
    """Return the refusal to begin while a node is in the middle of a unit."""
    return NotReady(
        f"{node} was left in the middle of replacing its static pods, and may be without its member of etcd",
        hint=f"run garboard resume or garboard undo on {node}; {_IF_GONE}",
        error_class="half-changed",
    )


def coordinator_cut_short(record: str) -> NotReady:
    """Return the refusal to begin while a change of several nodes is half done."""
    node, _, name = record.partition("/")
    return NotReady(
        f"a coordinator on {node} was cut short in the middle of {name}",
        hint=f"resume it on {node}; what it has left half done is not known here; {_IF_GONE}",
        error_class="coordinator-open",
    )


_IF_GONE = f"if that machine is gone for good: kubectl -n {KUBE_SYSTEM} delete lease {LEASE}"


def _node_of(holder: str) -> str:
    return holder.partition("/")[0]


def _claim(action: AcquireLease | ReleaseLease) -> "kube.LeaseClaim":
    """Return which Lease an action means: one by its former name is the one that everybody holds today."""
    if action.name not in (LEASE, FORMER_LEASE):
        return kube.LeaseClaim(name=action.name, namespace=action.namespace, holder=action.holder)
    return kube.LeaseClaim(name=LEASE, namespace=action.namespace, holder=action.holder, former_name=FORMER_LEASE)
