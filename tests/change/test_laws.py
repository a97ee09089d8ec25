"""What holds for every plan, whatever is asked for."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from garboard.change.codes import CODES
from garboard.change.control_plane_steps import TOGETHER
from garboard.change.document import plan_document
from garboard.change.plan import ChangePlan
from garboard.change.planning import plan_change
from garboard.change.request import GivenDocument, NewPatchSet, NewVersion, PartialChange
from garboard.change.show import plan_text
from garboard.change.snapshot import ClusterSnapshot, read_snapshot, snapshot_text
from garboard.errors import GarboardError
from garboard.model import SUPPORTED_VERSIONS
from garboard.phases.node.records import PatchSetContent
from garboard.values import Json
from tests.support.change.applying import applied
from tests.support.change.requests import order, planned
from tests.support.change.snapshots import f1, f2, f3, f4
from tests.support.change.touching import generated, leaf_fields, nested, types_of

SNAPSHOTS = {
    "F1": f1(),
    "F2": f2(is_seen=True),
    "F3": f3(),
    "F4": f4(is_seen=True),
    "1.36": f2(version=SUPPORTED_VERSIONS[0], workers=("w1",)),
}
ACCEPTED = tuple(code for code, each in CODES.items() if each.is_acceptable)
FIELDS = [
    (kind, path, field)
    for kind, type_ in types_of(SUPPORTED_VERSIONS[0]).items()
    for path, field in leaf_fields(type_)
    if path != ("etcd", "external", "httpEndpoints")
]
_FLAGS = {
    "apiServer": ("event-ttl=2h", "profiling=false", "audit-log-maxage=3", "goaway-chance=0.001", "v=4"),
    "controllerManager": ("node-monitor-period=4s", "profiling=false", "v=2"),
    "scheduler": ("profiling=false", "v=4"),
}


@st.composite
def _requests(draw: st.DrawFn) -> PartialChange:
    """Draw a patch of one to four fields, by their types."""
    found: dict[str, dict[str, Json]] = {}
    for kind, path, field in draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4)):
        value = generated(path, field, SUPPORTED_VERSIONS[0], random.Random(draw(st.integers(0, 2**20))))
        if path[-1] == "extraArgs" and path[0] in _FLAGS:
            name, _, text = draw(st.sampled_from(_FLAGS[path[0]])).partition("=")
            value = [{"name": name, "value": text}]
        _unite(found.setdefault(kind, {"kind": kind}), nested(path, value))
    return PartialChange(documents=tuple(GivenDocument(content=each) for each in found.values()))


def _unite(one: dict[str, Json], other: Mapping[str, Json]) -> None:
    for name, value in other.items():
        before = one.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            _unite(before, value)
        else:
            one[name] = value


def _plan(snapshot: ClusterSnapshot, request: PartialChange) -> ChangePlan:
    try:
        return plan_change(snapshot, request, ACCEPTED)
    except GarboardError:
        assume(False)
        raise


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(SNAPSHOTS)), request=_requests())
def test_after_a_plan_nothing_is_left_to_do(name: str, request: PartialChange) -> None:
    plan = _plan(SNAPSHOTS[name], request)
    assume(not plan.is_blocked)
    again = plan_change(applied(SNAPSHOTS[name], plan), request, ACCEPTED)
    assert (again.verdict, again.attributes, order(again)) == ("none", (), [])


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(SNAPSHOTS)), request=_requests())
def test_a_restart_has_a_changed_file_and_a_blocked_plan_has_nothing(name: str, request: PartialChange) -> None:
    plan = _plan(SNAPSHOTS[name], request)
    if plan.is_blocked:
        assert order(plan) == []
    for step in (step for each in plan.nodes for step in each.steps if step.restarts):
        assert step.cause
        if step.restarts == ("kube-proxy",):
            assert any(each.name == "kube-proxy" and each.diff for each in plan.objects)
        elif step.cause == TOGETHER:
            assert step.restarts == ("kube-apiserver",)
        else:
            assert step.files
            assert all(file.diff for file in step.files)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(SNAPSHOTS)), request=_requests(), accepts=st.booleans())
def test_what_is_blocked_has_a_reason_and_a_route(name: str, request: PartialChange, accepts: bool) -> None:
    try:
        plan = plan_change(SNAPSHOTS[name], request, ACCEPTED if accepts else ())
    except GarboardError:
        assume(False)
        raise
    blocked = [each for each in plan.attributes if each.verdict == "blocked"]
    assert [each.label for each in blocked if not each.reason or not each.route] == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(SNAPSHOTS)), request=_requests())
def test_equal_inputs_give_equal_bytes(name: str, request: PartialChange) -> None:
    snapshot = SNAPSHOTS[name]
    again = read_snapshot(snapshot_text(snapshot).encode(), source="saved")
    one, other = (_plan(each, request) for each in (snapshot, again))
    assert json.dumps(plan_document(one)) == json.dumps(plan_document(other))
    assert plan_text(one) == plan_text(other)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=8,
)


@given(
    kind=st.sampled_from([*types_of(SUPPORTED_VERSIONS[0]), "InitConfiguration", "JoinConfiguration", "Pod"]),
    members=st.dictionaries(
        st.sampled_from(["apiServer", "etcd", "networking", "maxPods", "mode", "featureGates", "dns", "evictionHard",
                         "kubernetesVersion", "scheduler", "nodeRegistration", "timeouts", "$patch", "apiVersion"]),
        _JSON | st.dictionaries(
            st.sampled_from(["extraArgs", "extraVolumes", "local", "external", "certSANs", "podSubnet", "dnsDomain"]),
            _JSON, max_size=3,
        ),
        max_size=3,
    ),
    is_whole=st.booleans(),
)  # fmt: skip
@example(kind="ClusterConfiguration", members={"apiVersion": {}}, is_whole=True)
def test_documents_of_any_shape_are_planned_or_refused(kind: str, members: dict[str, Json], is_whole: bool) -> None:
    document = GivenDocument(content={"kind": kind, **members})
    request = NewVersion(documents=(document,)) if is_whole else PartialChange(documents=(document,))
    try:
        plan = plan_change(SNAPSHOTS["F1"], request)
    except GarboardError:
        return
    assert plan_text(plan)
    assert plan_document(plan)["verdict"] == plan.verdict


_NASTY: tuple[Json, ...] = (
    "", "x", "/", "a=b", "-1", "nan", "9" * 30, "10.0.0.0/33", ":::", "[::1", "http://[", ",", "5%", "1Gi", "-1h",
    True, 0, -1, 2**31, 2**64, 1.5, {}, [], {"bogus": "1"}, {"bogus": 1}, {"memory": "x"}, {"": ""}, ["x"], [""], [{}],
    [{"name": ""}], [{"name": "x"}], [{"name": "feature-gates", "value": "="}], [{"name": "v", "value": ""}],
    [{"name": "bind-address", "value": "[::"}], [{"name": "audit-log-maxsize", "value": "9" * 24}],
    [{"name": "service-node-port-range", "value": "-"}], [{"name": "listen-metrics-urls", "value": "http://["}],
)  # fmt: skip


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(["F1", "F2", "F3"]), field=st.sampled_from(FIELDS), value=st.sampled_from(_NASTY))
@example(name="F1", field=("KubeletConfiguration", ("kubeReserved",), None), value={"bogus": "1"})
def test_any_value_of_any_field_is_planned_or_refused(name: str, field: Any, value: Json) -> None:
    kind, path, _ = field
    document = GivenDocument(content={"kind": kind, **nested(path, value)})
    try:
        plan = plan_change(SNAPSHOTS[name], PartialChange(documents=(document,)), ACCEPTED)
    except GarboardError:
        return
    assert plan_text(plan)
    assert plan_document(plan)["verdict"] == plan.verdict


@pytest.mark.parametrize("name", sorted(SNAPSHOTS))
def test_after_another_patch_set_nothing_is_left_to_do(name: str) -> None:
    content = PatchSetContent(
        {
            "kube-apiserver.yaml": b"metadata: {annotations: {a: b}}\n",
            "kubeletconfiguration.yaml": b"maxPods: 77\n",
        }
    )
    snapshot = SNAPSHOTS[name]
    plan = plan_change(snapshot, NewPatchSet(content=content), ACCEPTED)
    assert plan.verdict != "none"
    after = applied(snapshot, plan)
    assert plan_change(after, NewPatchSet(content=content), ACCEPTED).verdict == "none"
    back = plan_change(after, NewPatchSet(content=PatchSetContent({})), ACCEPTED)
    assert {each.node for each in back.nodes} == {each.node for each in plan.nodes}


def test_patches_of_a_node_stay_when_something_else_changes() -> None:
    content = PatchSetContent({"kube-apiserver.yaml": b"metadata: {annotations: {a: b}}\n"})
    patched = applied(SNAPSHOTS["F2"], plan_change(SNAPSHOTS["F2"], NewPatchSet(content=content)))
    plan = planned(patched, "apiServer.extraArgs[profiling]=false")
    file = plan.nodes[0].steps[0].files[0]
    assert file.content is not None
    assert b"    a: b\n" in file.content
    assert file.diff.count("\n+") == 2  # with the header
