from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.engine import (
    AddMember,
    ControlService,
    ExpiryPlaceholder,
    FilePlaceholder,
    Note,
    OutcomePlaceholder,
    Plan,
    PlanCodec,
    PutObject,
    QuorumChange,
    RemoveSandboxes,
    Step,
    WriteFile,
)
from garboard.engine.action import Action
from garboard.errors import NotReady
from tests.support.engine.actions import issue
from tests.support.engine.runs import CODEC

FILE = WriteFile(path="/a", content=b"\xff\x00", mode=0o600, is_secret=True, outcomes=(OutcomePlaceholder("<x>", "x"),))
OBJECT = PutObject(
    api_version="v1",
    kind="Secret",
    name="s",
    content={"$": "odd", "of": [1, None]},
    fillings=(FilePlaceholder("<f>", "/a"),),
    endings=(ExpiryPlaceholder("<e>", timedelta(hours=2)),),
)


def test_plan_comes_back_as_it_was() -> None:
    plan = Plan(
        (
            Step(FILE, "because", "phase", "node"),
            Step(issue("certificate", "/wish"), "", "certs"),
            Step(OBJECT, ""),
            Step(ControlService(service="kubelet", verb="start", fills=("/var/lib/kubelet",), registers="n"), ""),
            Step(ControlService(service="kubelet", verb="restart", unless="/pem"), ""),
            Step(AddMember(name="n", peer_url="https://192.0.2.1:2380", outcome="members"), ""),
            Step(RemoveSandboxes(), "", restarts=("etcd",), quorum_after=QuorumChange(up=-1, voters_before=3)),
        ),
        (Note("told", is_warning=True),),
    )
    assert CODEC.plan_from_bytes(CODEC.plan_to_bytes(plan)) == plan


def test_step_of_a_journal_without_what_came_later_is_read() -> None:
    step = Step(FILE, "because", "phase", "node")
    kept = CODEC.encode(step)
    assert isinstance(kept, dict)
    assert isinstance(kept["of"], dict)
    for member in ("restarts", "quorum_after"):
        del kept["of"][member]
    assert CODEC.decode(kept) == step


def test_every_action_is_known() -> None:
    assert all(kind in CODEC._tags for kind in get_args(Action))
    assert all(fields(kind) is not None for kind in get_args(Action))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("$"), inner),
)


@given(json_values)
def test_any_content_of_an_object_comes_back(content: Json) -> None:
    assert CODEC.decode(CODEC.encode(content)) == content


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(datetime(2026, 1, 2, tzinfo=UTC), id="moment"),
        pytest.param(timedelta(days=3650, microseconds=7), id="length"),
        pytest.param(ip_address("fd00::1"), id="address"),
        pytest.param(ip_network("10.96.0.0/12"), id="network"),
        pytest.param(("a", ("b",), frozenset({"c"})), id="nested"),
    ],
)
def test_values_of_requests_come_back(value: object) -> None:
    assert CODEC.decode(CODEC.encode(value)) == value


@dataclass(frozen=True)
class Unknown:
    text: str


def test_what_nobody_registered_is_refused_when_the_run_begins() -> None:
    with pytest.raises(TypeError, match="Unknown is not registered"):
        PlanCodec().encode(Unknown("x"))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"$":"Nobody","of":{}}', b'{"$":"step","of":{"wrong":1}}'])
def test_plan_that_cannot_be_read_is_a_failure_in_words(data: bytes) -> None:
    with pytest.raises(NotReady, match="cannot be read"):
        CODEC.plan_from_bytes(data)
