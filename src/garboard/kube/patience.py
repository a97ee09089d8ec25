"""Repeating a request that failed for a reason that passes, for as long as that is allowed, and only where it is safe.

It is safe to repeat what proves that nothing was done, and what is the same when done twice. Of any other change the
object is looked at first: one whose answer was lost may have been made.
"""

from collections.abc import Callable, Generator
from typing import TypeAlias

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.kube.errors import ConnectionBroken, ObjectConflict, ObjectExists, ObjectMissing, ServerBusy
from garboard.kube.exchange import ApiAnswer, ApiConnection
from garboard.kube.requests import ApiRequest, look_at
from garboard.retry import Clock, Pauses, Wait
from garboard.values import dataclass

PAUSES = Pauses(first_s=0.25, longest_s=5.0, growth=2.0)


# What whoever carries the repetition out does next: send a request, or wait for so many seconds.
RepetitionStep: TypeAlias = ApiRequest | float
RepetitionSteps: TypeAlias = Generator[RepetitionStep, ApiAnswer | None, dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is repeated; `report` hears why, once for each reason."""

    seconds: float
    report: Callable[[str], None]
    clock: Clock


class Repetition:
    """One request until its result. It sends nothing itself, so that a blocking and an asyncio client share it."""

    def __init__(self, request: ApiRequest, patience: Patience) -> None:
        self._request = request
        self._patience = patience
        self._wait = Wait(patience.seconds, patience.clock)
        self._pause_s = PAUSES.first_s
        self._may_be_done = False
        self._has_reconnected = False
        self._reported = ""

    def steps(self) -> RepetitionSteps:
        """Yield what to do, take the answer of a request or its error, and return the object in the last answer.

        The last failure is raised when it will not pass, or not in time.
        """
        while True:
            try:
                return (yield from self._attempt())
            except (ServerBusy, ConnectionBroken) as error:
                self._may_be_done = self._may_be_done or not error.is_untouched
                pause_s = self._pause_after(error)
                if pause_s is None or not self._is_safe():
                    raise
            if pause_s:
                yield pause_s

    def _attempt(self) -> RepetitionSteps:
        if not self._may_be_done or self._request.is_idempotent:
            return (yield from _ask(self._request))
        done = yield from self._found_done()
        if done is not None:
            return done
        try:
            return (yield from _ask(self._request))
        except (ObjectExists, ObjectConflict):
            # The first attempt may have come through only after we had looked.
            done = yield from self._found_done()
            if done is not None:
                return done
            raise

    def _found_done(self) -> Generator[RepetitionStep, ApiAnswer | None, dict[str, Json] | None]:
        """Look whether the change was made; return the object then, as the answer that was lost."""
        try:
            found = yield from _ask(look_at(self._request))
        except ObjectMissing:
            return {} if self._request.is_done(None) else None
        return found if self._request.is_done(found) else None

    def _is_safe(self) -> bool:
        return not self._may_be_done or self._request.is_idempotent or bool(self._request.object_path)

    def _pause_after(self, error: ServerBusy | ConnectionBroken) -> float | None:
        """Return how long to wait before the next attempt; None if there is no time for one."""
        if isinstance(error, ConnectionBroken) and error.was_idle and not self._has_reconnected:
            self._has_reconnected = True  # it was ended while nobody used it, which says nothing about the server
            return 0.0
        asked_s = error.retry_after_s if isinstance(error, ServerBusy) else None
        pause_s, self._pause_s = asked_s or self._pause_s, PAUSES.after(self._pause_s)
        if pause_s > self._wait.left_s:
            return None
        if error.message != self._reported:
            self._patience.report(f"trying again: {error.message}")
            self._reported = error.message
        self._wait.report(error.message)
        return pause_s


def _ask(request: ApiRequest) -> RepetitionSteps:
    answer = yield request
    assert answer is not None, "a request is answered, or its error is thrown in"
    return answer.read(request)


def repeat(request: ApiRequest, connection: ApiConnection, patience: Patience) -> dict[str, Json]:
    """Send a request over a connection until its result, and return that."""
    steps = Repetition(request, patience).steps()
    answer: ApiAnswer | None = None
    error: GarboardError | None = None
    while True:
        try:
            step = steps.throw(error) if error is not None else steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        answer = error = None
        if not isinstance(step, ApiRequest):
            patience.clock.sleep(step)
            continue
        try:
            answer = connection.exchange(step)
        except GarboardError as raised:
            error = raised
