"""Revisions, the target and reports are what they were after they were written and read again."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.errors import BadDocument, GarboardError
from garboard.phases.revision import (
    KEPT,
    MAX_BYTES,
    REPORT,
    ChangeState,
    ChangeTarget,
    NodeReport,
    ReportResult,
    Revision,
    moment,
    read_revision,
    read_target,
    revision_name,
    revision_number,
    superseded,
)


def config_text(revision: Revision) -> str:
    data = revision.as_object().content["data"]
    assert isinstance(data, dict)
    return str(data["revision"])


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
REVISION = Revision(
    number=3, created=moment(NOW), kubernetes_version="v1.36.4", documents={"kubeadm-config": "clusterName: blue\n"},
    patch_sets={"cp1": "ab" * 32}, parent=2, base=2, author="alice", message="less noise",
    request="--set 'scheduler.extraArgs[v]=1'", accepted=["restarts-etcd"],
)  # fmt: skip
TARGET = ChangeTarget(
    revision=3, digest=REVISION.digest, state="canary", parent=2, canary="cp1", nodes=["cp1", "cp2"], author="alice",
    started_at=moment(NOW), changed_at=moment(NOW), confirm_within_seconds=300,
)  # fmt: skip

REVISION_TEXT = config_text(REVISION)


def test_a_revision_is_an_immutable_config_map_of_kube_system() -> None:
    found = REVISION.as_object()
    assert (found.kind, found.namespace, found.name) == ("ConfigMap", "kube-system", "garboard-revision-3")
    assert found.content["immutable"] is True
    assert read_revision(found.content) == REVISION


def test_a_revision_without_a_time_is_as_old_as_its_object() -> None:
    """A plan that says when it was made would be another one each time."""
    timeless = msgspec.structs.replace(REVISION, created="")
    content = timeless.as_object().content
    assert read_revision(content).created == ""
    metadata: Json = {"name": timeless.name, "creationTimestamp": moment(NOW)}
    assert read_revision({**content, "metadata": metadata}) == REVISION


def test_the_target_has_one_name() -> None:
    found = TARGET.as_object()
    assert (found.namespace, found.name) == ("kube-system", "garboard-change")
    assert read_target(found.content) == TARGET
    assert read_target(None) is None


@pytest.mark.parametrize(
    "data",
    [None, {}, {"revision": ""}, {"revision": "[]"}, {"revision": '{"number": 1}'}, {"revision": '{"number": "x"}'},
     {"revision": REVISION_TEXT[:-1] + ', "later": 1}'},
     {"revision": "[" * 100_000}],
)  # fmt: skip
def test_what_is_no_revision_is_refused(data: object) -> None:
    with pytest.raises(BadDocument, match="garboard-revision-3") as refused:
        read_revision({"metadata": {"name": "garboard-revision-3"}, "data": data})  # type: ignore[dict-item]
    assert refused.value.error_class == "bad-revision"


def test_a_revision_names_the_nodes_of_the_largest_cluster() -> None:
    names = {f"ip-10-{each // 250}-{each % 250}-17.eu-central-1.compute.internal": "" for each in range(5_000)}
    content = msgspec.structs.replace(REVISION, patch_sets=names).as_object().content
    assert len(json.dumps(content)) < 1024 * 1024, "a ConfigMap takes no more"


def test_a_revision_that_is_too_large_is_refused() -> None:
    large = msgspec.structs.replace(REVISION, documents={"kubeadm-config": "x" * MAX_BYTES})
    with pytest.raises(BadDocument, match=r"revision 3 takes 512 KiB") as refused:
        large.as_object()
    assert refused.value.error_class == "too-large"


def test_the_digest_is_that_of_what_nodes_are_made_from() -> None:
    other = msgspec.structs.replace(REVISION, number=9, author="bob", message="", created="")
    assert other.digest == REVISION.digest
    for name, value in (("documents", {}), ("patch_sets", {}), ("kubernetes_version", "v1.36.5")):
        assert msgspec.structs.replace(REVISION, **{name: value}).digest != REVISION.digest


@given(
    number=st.integers(0, 10**6), result=st.sampled_from(get_args(ReportResult)), digest=st.text("0123456789abcdef"),
    at=st.datetimes(timezones=st.just(UTC)).map(moment),
)  # fmt: skip
def test_a_report_is_read_as_it_was_written(number: int, result: ReportResult, digest: str, at: str) -> None:
    report = NodeReport(revision=number, digest=digest, result=result, at=at)
    assert NodeReport.parse(str(report)) == report
    patch = report.as_patch("cp1")
    assert (patch.kind, patch.name) == ("Node", "cp1")
    assert isinstance(patch.content, dict)
    assert NodeReport.of_node(patch.content) == report


def test_a_report_is_written_as_the_manual_says() -> None:
    report = NodeReport(revision=3, digest="abc", result="done", at=moment(NOW))
    assert str(report) == "3:abc:done:2026-03-01T12:00:00Z"
    assert REPORT == "garboard.dev/change"


@given(st.text(max_size=40))
def test_any_text_is_a_report_or_none(text: str) -> None:
    found = NodeReport.parse(text)
    assert found is None or str(found).partition(":")[2] == text.partition(":")[2]


@pytest.mark.parametrize("text", ["", "done", "x:abc:done:2026-03-01T12:00:00Z", "1:abc:fine:2026-03-01T12:00:00Z",
                                  "1:abc:done:", "-1:abc:done:2026-03-01T12:00:00Z", "²:a:done:t"])  # fmt: skip
def test_what_somebody_else_wrote_is_no_report(text: str) -> None:
    assert NodeReport.parse(text) is None


def test_a_report_counts_for_its_very_target() -> None:
    report = NodeReport(revision=3, digest=TARGET.digest, result="done", at="now")
    assert report.says(TARGET) == "done"
    assert replace(report, revision=2).says(TARGET) is None
    assert replace(report, digest="other").says(TARGET) is None


_ALLOWED = {
    ("pending", "canary"), ("pending", "reverted"), ("canary", "rolling"), ("canary", "committed"),
    ("canary", "reverted"), ("rolling", "committed"), ("rolling", "reverted"), ("committed", "reverted"),
    ("pending", "reverting"), ("canary", "reverting"), ("rolling", "reverting"), ("committed", "reverting"),
    ("reverting", "reverted"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [*product(get_args(ChangeState), repeat=2)])
def test_states_follow_each_other(before: ChangeState, after: ChangeState) -> None:
    target = msgspec.structs.replace(TARGET, state=before)
    later = NOW + timedelta(minutes=5)
    if before == after or (before, after) in _ALLOWED:
        moved = target.moved(after, later, confirmed=True)
        assert (moved.state, moved.changed_at, moved.confirmed) == (after, moment(later), True)
        assert moved.started_at == TARGET.started_at
    else:
        with pytest.raises(GarboardError, match=f"{before}, and cannot become {after}"):
            target.moved(after, later)


def test_a_committed_change_is_settled_unless_somebody_has_to_confirm_it() -> None:
    waiting = msgspec.structs.replace(TARGET, state="committed")
    assert waiting.is_unconfirmed
    assert not waiting.is_settled
    assert msgspec.structs.replace(waiting, confirmed=True).is_settled
    assert msgspec.structs.replace(waiting, confirm_within_seconds=0).is_settled
    assert msgspec.structs.replace(waiting, state="reverted").is_settled
    assert not msgspec.structs.replace(waiting, state="rolling", confirmed=True).is_settled


@given(st.integers(0, 10**9))
def test_revisions_are_found_by_their_names(number: int) -> None:
    assert revision_number(revision_name(number)) == number


@pytest.mark.parametrize("name", ["garboard-revision-", "garboard-revision-x", "garboard-change", "7", "other-7"])
def test_other_names_are_no_revisions(name: str) -> None:
    assert revision_number(name) is None


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60), max_size=3))
def test_the_newest_revisions_stay(numbers: set[int], keeps: set[int]) -> None:
    gone = set(superseded(numbers, keeps=keeps))
    left = numbers - gone
    assert not gone & keeps
    assert gone <= numbers
    assert len(left) <= max(KEPT, len(keeps & numbers))
    assert not gone or len(left) == max(KEPT, len(keeps & numbers))
    assert all(each > max(gone) for each in left - keeps) if gone else True


def test_moments_are_in_utc() -> None:
    assert moment(NOW.astimezone(timezone(timedelta(hours=2)))) == "2026-03-01T12:00:00Z"
