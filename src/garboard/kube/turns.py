"""Taking turns with a Lease: one node holds it and shows that it lives, the others wait and say for whom."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from garboard.engine import DeleteObject, EndTurn, PutObject, TakeTurn
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.kube.client import KubeClient
from garboard.kube.errors import ObjectConflict, ObjectExists, ObjectMissing
from garboard.kube.lease import API_VERSION, Lease, Observer, micro_time
from garboard.values import dataclass

# A holder that was killed keeps the others waiting for this long; it renews often enough to miss a few.
DURATION_S = 15.0
RENEWED_EVERY_S = 3.0
_LOOKED_EVERY_S = 0.5
_TOLD_EVERY_S = 30.0


class TurnFailed(GarboardError):
    """The turn did not come, or was lost."""

    default_class = "turn"


class LeaseTurns:
    """Turns at Leases of one cluster; `connect` opens a client of it, and closing ends the turn that is held."""

    def __init__(self, connect: Callable[[], KubeClient], report: Callable[[str], None]) -> None:
        self._connect = connect
        self._report = report
        self._held: _Held | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            with suppress(GarboardError):  # nothing is lost: it runs out by itself
                self._release(self._held)

    def left_behind(self) -> tuple[str, ...]:
        """Return the peer URLs of those who held the Lease before and died; empty without a turn."""
        return self._held.left_behind if self._held else ()

    def take(self, action: TakeTurn) -> None:
        """Wait until the Lease is ours, and keep it alive until `end`."""
        waiting = _Waiting(action, self._report)
        with self._connect() as client:
            while (lease := self._try(client, action, waiting)) is None:
                time.sleep(_LOOKED_EVERY_S)
        left = tuple(each for each in lease.peers if each != action.peer_url)
        self._held = _Held(_Renewer(self._connect, action, self._report), left)
        self._held.renewer.start()

    def end(self, action: EndTurn) -> None:
        """Let the next one have the Lease; one that is not ours any more is left alone."""
        held = self._held or _Held(_Renewer(self._connect, _turn_of(action), self._report), ())
        self._release(held)

    def _release(self, held: "_Held") -> None:
        held.renewer.stop()
        self._held = None
        with self._connect() as client:
            held.renewer.give_up(client)

    def _try(self, client: KubeClient, action: TakeTurn, waiting: "_Waiting") -> Lease | None:
        """Take the Lease if it is free; None if we have to look again."""
        try:
            found = client.find("Lease", action.namespace, action.name)
            lease = Lease.read(found) if found else None
            if lease and not waiting.is_over(lease):
                return None
            wanted = _ours(action, lease)
            put = client.replace if lease else client.create
            put(_put(action, wanted))
        except (ObjectConflict, ObjectExists, ObjectMissing):
            waiting.check()  # somebody was quicker
            return None
        except ClusterUnreachable as error:
            waiting.check(error)
            return None
        return wanted


@dataclass(frozen=True, slots=True)
class _Held:
    renewer: "_Renewer"
    left_behind: tuple[str, ...]


class _Waiting:
    """One who waits: knows whom it waits for, says so when that changes, and gives up in the end."""

    def __init__(self, action: TakeTurn, report: Callable[[str], None]) -> None:
        self._action = action
        self._report = report
        self._observer = Observer()
        self._give_up_at = time.monotonic() + action.timeout_s
        self._holder = ""
        self._failure = ""
        self._told_at = 0.0

    def is_over(self, lease: Lease) -> bool:
        """Say whether nobody holds the Lease, or one who is dead or ourselves before we were interrupted."""
        if lease.holder in ("", self._action.holder):
            return True
        if self._observer.is_dead(lease, time.monotonic()):
            self._report(f"[turn] {lease.holder} has not been heard of for {lease.duration_s:.0f} s: its turn is over")
            return True
        self._tell(lease.holder)
        self._holder = lease.holder
        self.check()
        return False

    def check(self, failure: GarboardError | None = None) -> None:
        """Raise if we have waited for long enough."""
        if time.monotonic() < self._give_up_at:
            if failure and failure.message != self._failure:
                self._report(f"[turn] trying again: {failure.message}")
                self._failure = failure.message
            return
        if failure:
            raise failure
        name, namespace = self._action.name, self._action.namespace
        raise TurnFailed(
            f"our turn with Lease {namespace}/{name} did not come within {self._action.timeout_s:.0f} s; "
            f"it is held by {self._holder or 'another node'}",
            hint=f"see what that one does; if nothing: kubectl -n {namespace} delete lease {name}",
        )

    def _tell(self, holder: str) -> None:
        now = time.monotonic()
        if holder == self._holder and now - self._told_at < _TOLD_EVERY_S:
            return
        still = "still " if holder == self._holder else ""
        self._report(f"[turn] {still}waiting: it is the turn of {holder} to change the members of etcd")
        self._told_at = now


class _Renewer:
    """Renews a Lease from a thread of its own, until it is stopped or the Lease is another's."""

    def __init__(self, connect: Callable[[], KubeClient], action: TakeTurn, report: Callable[[str], None]) -> None:
        self._connect = connect
        self._action = action
        self._report = report
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(DURATION_S)

    def give_up(self, client: KubeClient) -> None:
        """Delete the Lease if it is ours: nothing of it shall remain."""
        action = self._action
        with suppress(ObjectConflict, ObjectMissing):  # somebody has it already
            found = client.find("Lease", action.namespace, action.name)
            if found and (lease := Lease.read(found)).holder == action.holder:
                gone = DeleteObject(api_version=API_VERSION, kind="Lease", name=action.name, namespace=action.namespace)
                client.delete_version(gone, lease.version)

    def _run(self) -> None:
        while not self._stopped.wait(RENEWED_EVERY_S):
            try:
                with self._connect() as client:
                    if not self._renew(client):
                        return
            except GarboardError:
                continue  # the API server may be away while etcd changes; the next time will do

    def _renew(self, client: KubeClient) -> bool:
        """Show that we live; False if the Lease has another holder."""
        action = self._action
        found = client.find("Lease", action.namespace, action.name)
        lease = Lease.read(found) if found else None
        if lease is None or lease.holder != action.holder:
            holder = lease.holder if lease else "nobody"
            self._report(
                f"[turn] warning: our turn was taken; Lease {action.namespace}/{action.name} is held by {holder}"
            )
            return False
        with suppress(ObjectConflict):
            client.replace(_put(action, replace(lease, renewed=micro_time(datetime.now(UTC)))))
        return True


def _ours(action: TakeTurn, lease: Lease | None) -> Lease:
    """Return the Lease as ours, with the peer URLs of those whose turn did not end."""
    before = lease.peers if lease else ()
    peers = (*before, action.peer_url) if action.peer_url not in ("", *before) else before
    renewed = micro_time(datetime.now(UTC))
    return Lease(lease.version if lease else "", action.holder, DURATION_S, renewed, peers)


def _put(action: TakeTurn, lease: Lease) -> PutObject:
    content = lease.content(action.name, action.namespace)
    return PutObject(
        api_version=API_VERSION, kind="Lease", name=action.name, namespace=action.namespace, content=content
    )


def _turn_of(action: EndTurn) -> TakeTurn:
    return TakeTurn(name=action.name, namespace=action.namespace, holder=action.holder, timeout_s=0.0)
