"""What is next in a provision, decided from its record alone: after a stage, after a failure and after a kill."""

from dataclasses import replace
from typing import TypeAlias

from garboard.fleet.provision.record import STAGES, AttemptRecord, ProvisionRecord, StageName
from garboard.values import dataclass

_CREATE_CLUSTER, _COLLECT = STAGES[-2:]


@dataclass(frozen=True, slots=True)
class BeginAttempt:
    """Make a new folder for an attempt, and write the install config there."""

    number: int


@dataclass(frozen=True, slots=True)
class RunStage:
    """Carry out a stage of the last attempt."""

    stage: StageName


@dataclass(frozen=True, slots=True)
class DiscardAttempt:
    """The attempt was cut short before it could own anything: it is left as it is, and another one begun."""

    number: int


@dataclass(frozen=True, slots=True)
class DestroyAttempt:
    """The attempt was cut short and may own something: destroy that."""

    number: int


@dataclass(frozen=True, slots=True)
class Provisioned:
    """The cluster is there."""


NextAction: TypeAlias = BeginAttempt | RunStage | DiscardAttempt | DestroyAttempt | Provisioned


def next_action(record: ProvisionRecord, *, resumes: bool, own: int | None = None) -> NextAction:
    """Decide what is next; `own` is the attempt that this very process has begun, or gone on with.

    What another process has left is only gone on with from `create cluster` on, by an installer that resumes; or if the
    cluster is there already.
    """
    last = record.last
    if last is None or last.end in ("discarded", "destroyed"):
        return BeginAttempt(last.number + 1 if last else 1)
    if last.end == "complete":
        return Provisioned()
    if last.is_destroying:
        return DestroyAttempt(last.number)
    if own == last.number and last.failure is None:
        return RunStage(_following(last))
    return _after_a_kill(last, resumes=resumes)


def _after_a_kill(last: AttemptRecord, *, resumes: bool) -> NextAction:
    if not last.infra_id:
        return DiscardAttempt(last.number)
    has_cluster = last.stage == _COLLECT or (last.stage == _CREATE_CLUSTER and last.is_done)
    if has_cluster:
        return RunStage(_COLLECT)
    return RunStage(_CREATE_CLUSTER) if resumes else DestroyAttempt(last.number)


def _following(attempt: AttemptRecord) -> StageName:
    if not attempt.is_done:
        return attempt.stage
    return STAGES[STAGES.index(attempt.stage) + 1]


def begun(record: ProvisionRecord, stage: StageName) -> ProvisionRecord:
    """Return the record once a stage of the last attempt has begun."""
    return record.with_attempt(replace(_last(record), stage=stage, is_done=False, failure=None))


def done(record: ProvisionRecord, *, infra_id: str = "") -> ProvisionRecord:
    """Return the record once the stage that was begun is done; the last one makes the attempt the cluster."""
    last = _last(record)
    is_last = last.stage == _COLLECT
    return record.with_attempt(
        replace(last, is_done=True, infra_id=infra_id or last.infra_id, end="complete" if is_last else "")
    )


def attempts_to_destroy(record: ProvisionRecord) -> tuple[AttemptRecord, ...]:
    """Return the attempts that may own something, the oldest first."""
    return tuple(each for each in record.attempts if each.may_own)


def _last(record: ProvisionRecord) -> AttemptRecord:
    assert record.last is not None, "a stage belongs to an attempt"
    return record.last
