"""What is next in a provision, for every record that a kill can leave."""

from dataclasses import replace

import pytest

from garboard.errors import BadDocument
from garboard.fleet.provision import (
    AttemptRecord,
    BeginAttempt,
    DestroyAttempt,
    DiscardAttempt,
    NextAction,
    Provisioned,
    ProvisionRecord,
    RunStage,
    attempts_to_destroy,
    next_action,
    read_record,
    record_bytes,
)
from garboard.fleet.provision.record import STAGES, StageName
from garboard.fleet.provision.stages import begun, done

NEW = ProvisionRecord(namespace="fleet", deployment="c1", installer="openshift-install")


def of(**fields: object) -> ProvisionRecord:
    return NEW.with_attempt(replace(AttemptRecord(number=1), **fields))  # type: ignore[arg-type]


def test_stages_follow_each_other_in_the_process_that_began() -> None:
    assert next_action(NEW, resumes=False) == BeginAttempt(1)
    record, seen = of(), list[StageName]()
    while not isinstance(action := next_action(record, resumes=False, own=1), Provisioned):
        assert isinstance(action, RunStage)
        seen.append(action.stage)
        record = done(begun(record, action.stage), infra_id="c1-x" if action.stage == "record" else "")
    assert tuple(seen) == STAGES
    assert record.last is not None
    assert (record.last.end, record.last.infra_id) == ("complete", "c1-x")


OWNED = {"infra_id": "c1-x"}


@pytest.mark.parametrize(
    ("fields", "resumes", "action"),
    [
        pytest.param({"stage": "create manifests"}, True, DiscardAttempt(1), id="nothing is owned"),
        pytest.param({"stage": "record"}, False, DiscardAttempt(1), id="killed before the infraID was recorded"),
        pytest.param({"stage": "record", "is_done": True, **OWNED}, False, DestroyAttempt(1), id="recorded"),
        pytest.param({"stage": "record", "is_done": True, **OWNED}, True, RunStage("create cluster"), id="to resume"),
        pytest.param({"stage": "create cluster", **OWNED}, False, DestroyAttempt(1), id="inside create cluster"),
        pytest.param({"stage": "create cluster", **OWNED}, True, RunStage("create cluster"), id="resumed inside"),
        pytest.param({"stage": "create cluster", "is_done": True, **OWNED}, False, RunStage("collect"), id="made"),
        pytest.param({"stage": "collect", **OWNED}, False, RunStage("collect"), id="inside collect"),
        pytest.param({"end": "complete", **OWNED}, False, Provisioned(), id="complete"),
        pytest.param({"end": "discarded"}, False, BeginAttempt(2), id="discarded"),
        pytest.param({"end": "destroyed", **OWNED}, True, BeginAttempt(2), id="destroyed"),
        pytest.param({"is_destroying": True, **OWNED}, True, DestroyAttempt(1), id="inside destroy, resumable or not"),
    ],
)
def test_another_process_goes_on(fields: dict[str, object], resumes: bool, action: NextAction) -> None:
    assert next_action(of(**fields), resumes=resumes) == action


def test_failure_is_not_gone_on_with_by_the_process_that_saw_it() -> None:
    failed = of(stage="create cluster", infra_id="c1-x", failure={"reason": "x"})
    assert next_action(failed, resumes=False, own=1) == DestroyAttempt(1)


def test_everything_that_may_own_something_is_destroyed_the_oldest_first() -> None:
    attempts = (
        AttemptRecord(number=1, infra_id="a", end="destroyed"),
        AttemptRecord(number=2, end="discarded"),
        AttemptRecord(number=3, infra_id="b"),
        AttemptRecord(number=4, infra_id="c", end="complete"),
    )
    record = replace(NEW, attempts=attempts)
    assert [each.number for each in attempts_to_destroy(record)] == [3, 4]


def test_record_is_read_as_it_was_written() -> None:
    record = of(stage="create cluster", infra_id="c1-x", failure={"reason": "installer-failed"})
    assert read_record(record_bytes(record), source="x") == record


@pytest.mark.parametrize("data", [b"", b"{}", b'{"format": 2}', b"[]", record_bytes(of()).replace(b"create m", b"x m")])
def test_record_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(BadDocument) as refused:
        read_record(data, source="provision.json")
    assert refused.value.error_class == "bad-record"
