"""Holding Leases that one node holds at a time: acquired, renewed in the background, confirmed, released or given up.

Those who wait report whom they wait for. A Lease is lost once another holder has been seen, and not because the API
server was away: a lone control plane takes its own away while it is changed.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from garboard.errors import ClusterUnreachable, GarboardError
from garboard.kube.client import KubeClient
from garboard.kube.errors import ObjectConflict, ObjectExists, ObjectMissing
from garboard.kube.leases import DURATION_S, Lease, LeaseClaim, LeaseFailed, LeaseLost, LeaseObserver, LeasePayload
from garboard.retry import CLOCK, Clock, Pauses, retry, wait_until

# A Lease is renewed five times within its usual duration, so that a few renewals may fail.
RENEWALS = 5
# A renewal that is younger than this is confirmation enough. With the time that a request to etcd takes at most, it is
# still younger than the duration of a Lease when such a request ends.
FRESH_S = 2.0
_CONFIRMED_WITHIN_S = 60.0
_RELEASED_WITHIN_S = 60.0
_PAUSES = Pauses.every(0.5)
_REPORTED_EVERY_S = 30.0


class ClusterLeases:
    """Acquires Leases of one cluster, one at a time; `connect` returns a client of it, closing gives the Lease up."""

    def __init__(self, connect: Callable[[], KubeClient], report: Callable[[str], None], clock: Clock = CLOCK) -> None:
        self._connect = connect
        self._report = report
        self._clock = clock
        self._held: _HeldLease | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_up()

    def give_up(self, drops: str = "") -> None:
        """Give up a Lease that was not released: the next holder clears away what this one has left.

        Its payload is not left to the next holder if it is of the kind `drops`.
        """
        if self._held:
            payload = self._held.claim.payload
            with suppress(GarboardError):  # nothing is lost: it runs out by itself
                self._end(self._held, is_done=payload is not None and payload.kind == drops)

    def acquire(self, claim: LeaseClaim, timeout_s: float) -> int:
        """Wait until the Lease is ours, renew it until `release`, and return its token.

        A Lease that is held already gets the duration of the claim, and keeps its token.
        """
        if self._held is None:
            with self._connect() as client:
                lease = _Acquisition(claim, self._report, self._clock).wait(client, timeout_s)
            self._held = _HeldLease(self._connect, claim, lease, self._clock)
            self._held.start()
        else:
            assert self._held.claim.ref == claim.ref, "one Lease is held at a time"
            self._held.change_duration(claim.duration_s, timeout_s)
        return self._held.token

    def left_behind(self, kind: str) -> tuple[str, ...]:
        """Return the payloads of a kind that earlier holders of our Lease left when they died or gave up."""
        return tuple(each.value for each in self._held.left_behind if each.kind == kind) if self._held else ()

    def forget_left_behind(self, kind: str) -> None:
        """Take note that what earlier holders left of a kind has been cleared away; the rest stays for others."""
        if self._held:
            self._held.left_behind = tuple(each for each in self._held.left_behind if each.kind != kind)

    def check(self) -> None:
        """Raise if another holder of our Lease has been seen; nothing is asked."""
        if self._held:
            self._held.check()

    def confirm(self, timeout_s: float = _CONFIRMED_WITHIN_S) -> None:
        """Make sure that the Lease is still ours, and stays so for long enough to make one request; else raise."""
        if self._held:
            self._held.confirm(timeout_s)

    def release(self, claim: LeaseClaim) -> None:
        """Release the Lease, also if an earlier process acquired it; a Lease of another holder is left alone.

        The payload of the claim goes, also if an earlier process has given the Lease up and left it. It is tried again
        while the API server is away: a member that has just got its vote makes etcd elect a leader.
        """
        retry(
            lambda: self._release(claim),
            timeout_s=_RELEASED_WITHIN_S,
            pauses=_PAUSES,
            is_passing=lambda error: isinstance(error, ClusterUnreachable),
            clock=self._clock,
        )

    def _release(self, claim: LeaseClaim) -> None:
        if self._held:
            self._end(self._held, is_done=True)
        else:
            with self._connect() as client:
                _end(client, claim)

    def _end(self, held: "_HeldLease", *, is_done: bool) -> None:
        held.stop()
        own = () if is_done or not held.claim.payload else (held.claim.payload,)
        with self._connect() as client:
            _end(client, held.claim, payloads=(*held.left_behind, *own), token=held.token)
        self._held = None  # not before: who tries again has to know what an earlier holder left


def _end(
    client: KubeClient, claim: LeaseClaim, *, payloads: tuple[LeasePayload, ...] | None = None, token: int | None = None
) -> None:
    """Delete our Lease, so that nothing of it remains; or free it, if the next holder has something to clear away.

    If it is not known what that is, everything stays that the Lease names, but for the payload of the claim.
    """
    with suppress(ObjectConflict):  # another node has it already
        lease = claim.find(client)
        if lease is None or not _is_ours(lease, claim, token):
            return
        left = tuple(each for each in lease.payloads if each != claim.payload) if payloads is None else payloads
        if left:
            claim.replace(client, lease.freed(left))
        else:
            client.delete(claim.ref, resource_version=lease.version)


def _is_ours(lease: Lease, claim: LeaseClaim, token: int | None) -> bool:
    if token is None and not lease.holder:
        return claim.payload in lease.payloads  # an earlier process gave it up
    return lease.holder == claim.holder and token in (None, lease.transitions)


class _Acquisition:
    """Repeated attempts to acquire a Lease; reports its holder when that changes, and now and then."""

    def __init__(self, claim: LeaseClaim, report: Callable[[str], None], clock: Clock) -> None:
        self._claim = claim
        self._report = report
        self._clock = clock
        self._observer, self._former_observer = LeaseObserver(), LeaseObserver()
        self._lease: Lease | None = None
        self._failure: ClusterUnreachable | None = None
        self._reported_failure = ""
        self._holder = ""
        self._reported_at = 0.0

    def wait(self, client: KubeClient, timeout_s: float) -> Lease:
        """Return the Lease once it is ours; on a timeout, raise what prevented it."""
        wait_until(lambda: self._attempt(client), timeout_s=timeout_s, pauses=_PAUSES, clock=self._clock)
        if self._lease is not None:
            return self._lease
        name, namespace = self._claim.name, self._claim.namespace
        raise self._failure or LeaseFailed(
            f"{self._claim} did not become free within {timeout_s:.0f} s; "
            f"it is held by {self._holder or 'another node'}",
            hint=f"see what that one does; if nothing: kubectl -n {namespace} delete lease {name}",
        )

    def _attempt(self, client: KubeClient) -> str | None:
        """Acquire the Lease if it is free; else return what prevents it."""
        if self._failure is not None and self._failure.message != self._reported_failure:
            self._report(f"[lease] trying again: {self._failure.message}")
            self._reported_failure = self._failure.message
        try:
            former, found = self._claim.find_former(client), self._claim.find(client)
            for lease, observer in ((former, self._former_observer), (found, self._observer)):
                if lease and not self._is_free(lease, observer):
                    self._failure = None
                    return f"it is held by {lease.holder}"
            ours = self._claim.acquired(found, former)
            write = client.replace if found else client.create
            write(self._claim.ref, ours.content(self._claim.name, self._claim.namespace))
            if former:  # what was left behind there is in ours now
                client.delete(self._claim.former_ref, resource_version=former.version)
        except (ObjectConflict, ObjectExists, ObjectMissing) as error:
            self._failure = None
            return error.message  # another node was quicker
        except ClusterUnreachable as error:
            self._failure = error
            return error.message
        self._lease = ours
        return None

    def _is_free(self, lease: Lease, observer: LeaseObserver) -> bool:
        """Say whether nobody holds the Lease, or a holder that died, or ourselves before we were interrupted."""
        if lease.holder in ("", self._claim.holder):
            return True
        if observer.is_dead(lease, self._clock.now_s()):
            self._report(f"[lease] {lease.holder} has not renewed it for {lease.duration_s:.0f} s: it is free")
            return True
        self._report_holder(lease.holder)
        return False

    def _report_holder(self, holder: str) -> None:
        now_s = self._clock.now_s()
        is_known = holder == self._holder
        if is_known and now_s - self._reported_at < _REPORTED_EVERY_S:
            return
        still = "still " if is_known else ""
        self._report(f"[lease] {still}waiting: {holder} holds {self._claim}")
        self._holder, self._reported_at = holder, now_s


class _HeldLease:
    """A Lease that is ours: renewed from a thread of its own, until it is stopped or another holder is seen."""

    def __init__(self, connect: Callable[[], KubeClient], claim: LeaseClaim, lease: Lease, clock: Clock) -> None:
        self.claim = claim
        self.token = lease.transitions
        self.left_behind = tuple(each for each in lease.payloads if each != claim.payload)
        self._connect = connect
        self._clock = clock
        self._duration_s = claim.duration_s
        self._renewed_at = float("-inf")  # when the request that acquired it was sent is not known
        self._loss: LeaseLost | None = None
        self._renewing = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(DURATION_S)

    def check(self) -> None:
        if self._loss:
            raise LeaseLost(self._loss.message, hint=self._loss.hint)

    def confirm(self, timeout_s: float) -> None:
        self.check()
        if self._clock.now_s() - self._renewed_at > FRESH_S:
            self._renew_within(timeout_s)

    def change_duration(self, duration_s: float, timeout_s: float) -> None:
        self.check()
        self._duration_s = duration_s
        self._renew_within(timeout_s)

    def _renew_within(self, timeout_s: float) -> None:
        """Renew the Lease, and try again while the API server is away."""
        retry(
            self._renew,
            timeout_s=timeout_s,
            pauses=_PAUSES,
            is_passing=lambda error: isinstance(error, ClusterUnreachable | ObjectConflict),
            clock=self._clock,
        )

    def _run(self) -> None:
        while not self._stopped.wait(min(self.claim.duration_s, DURATION_S) / RENEWALS):
            try:
                self._renew()
            except LeaseLost:
                return  # the run fails at its next step
            except GarboardError:
                continue  # the API server may be away while etcd changes; the next time will do

    def _renew(self) -> None:
        """Renew the Lease once; note and raise if it has another holder."""
        with self._renewing, self._connect() as client:
            lease = self.claim.find(client)
            try:
                self.claim.refuse_other(lease, self.token)
            except LeaseLost as error:
                self._loss = error
                raise
            assert lease is not None
            # The others count from when they see the renewal, which is not before it was sent.
            sent_at = self._clock.now_s()
            self.claim.replace(client, lease.renewed_now(self._duration_s))
            self._renewed_at = sent_at


class HandedLease:
    """A Lease whose holder, another process, has handed us its token: it is looked at, and never written."""

    def __init__(self, connect: Callable[[], KubeClient], claim: LeaseClaim, token: int, clock: Clock = CLOCK) -> None:
        self.token = token
        self._connect = connect
        self._claim = claim
        self._clock = clock

    def check(self) -> None:
        """Raise if the Lease has another holder or token by now; an API server that is away shows no other one."""
        with suppress(ClusterUnreachable):
            self._look()

    def confirm(self, timeout_s: float = _CONFIRMED_WITHIN_S) -> None:
        """Raise unless the API server says in time that the Lease still has this holder and token."""
        retry(
            self._look,
            timeout_s=timeout_s,
            pauses=_PAUSES,
            is_passing=lambda error: isinstance(error, ClusterUnreachable),
            clock=self._clock,
        )

    def _look(self) -> None:
        with self._connect() as client:
            self._claim.refuse_other(self._claim.find(client), self.token)
