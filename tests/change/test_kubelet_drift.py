"""Kubelets are compared as declared, on disk and running; what a kubelet fills in by itself is no drift."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from garboard.change.drift_files import capture_node
from garboard.change.drift_text import drift_as_text
from garboard.change.drifting import ClusterDrift, cluster_drift
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import Json, read_yaml
from garboard.drift import DriftKind
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS
from tests.support.change.snapshots import SOCKET, f1

replace = msgspec.structs.replace
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
# What a kubelet makes of the zeros that kubeadm writes down, and of what nobody has named.
FILLED: dict[str, Any] = {
    "cpuManagerReconcilePeriod": "10s",
    "evictionPressureTransitionPeriod": "5m0s",
    "fileCheckFrequency": "20s",
    "httpCheckFrequency": "20s",
    "imageMaximumGCAge": "0s",
    "imageMinimumGCAge": "2m0s",
    "maxPods": 110,
    "nodeStatusReportFrequency": "5m0s",
    "nodeStatusUpdateFrequency": "10s",
    "runtimeRequestTimeout": "2m0s",
    "streamingConnectionIdleTimeout": "4h0m0s",
    "syncFrequency": "1m0s",
    "volumeStatsAggPeriod": "1m0s",
    "kubeAPIQPS": 50,
}


def running(node: SnapshotNode, **changed: Json) -> dict[str, Json]:
    """Return what the kubelet of a node says that it runs with, if it was started with the file that is there."""
    document: Any = read_yaml(node.kubelet_config or "{}", source="config.yaml")
    filled = {**document, **FILLED}
    filled["logging"] = {"format": "text", "flushFrequency": "5s", "verbosity": 2,
                         "options": {"json": {"infoBufferSize": "0"}, "text": {"infoBufferSize": "0"}}}  # fmt: skip
    filled["authorization"] = {
        "mode": "Webhook", "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
    }  # fmt: skip
    filled["authentication"] = {**document["authentication"], "webhook": {"cacheTTL": "2m0s", "enabled": True}}
    return {name: value for name, value in {**filled, **changed}.items() if value is not None}


def drift(snapshot: ClusterSnapshot, kubelets: Mapping[str, Json]) -> ClusterDrift:
    return cluster_drift(snapshot, {}, {}, kubelets)


def found(drift_of: ClusterDrift) -> list[tuple[str, str, str]]:
    return [
        (part.node, each.field, str(each.kind))
        for part in drift_of.nodes
        for each in part.differences
        if each.kind is not DriftKind.COSMETIC
    ]


def with_node(snapshot: ClusterSnapshot, name: str, **changed: Any) -> ClusterSnapshot:
    nodes = [replace(each, **changed) if each.name == name else each for each in snapshot.nodes]
    return replace(snapshot, nodes=nodes)


def without_files(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    nodes = [replace(each, manifests=None, kubelet_config=None, kubelet_flags=None) for each in snapshot.nodes]
    return replace(snapshot, nodes=nodes)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize("is_seen", [False, True], ids=["from elsewhere", "on the node"])
def test_what_a_kubelet_fills_in_is_no_drift(version: Any, is_seen: bool) -> None:
    snapshot = f1(is_seen=True, version=version)
    kubelets: dict[str, Json] = {each.name: running(each) for each in snapshot.nodes}
    shown = snapshot if is_seen else without_files(snapshot)
    compared = drift(shown, kubelets)
    assert found(compared) == []
    assert [part.node for part in compared.nodes if part.subjects] == ["cp1", "w1", "w2"]


def test_kubelet_that_was_not_started_since_is_stale() -> None:
    snapshot = f1(is_seen=True, kubelet={"maxPods": 250, "imageGCHighThresholdPercent": 80})
    node = snapshot.nodes[1]
    found_drift = drift(snapshot, {"w1": running(node, imageGCHighThresholdPercent=80)})
    assert found(found_drift) == [("w1", "maxPods", "stale")]
    text = drift_as_text(found_drift, (), shows_explained=False)
    assert "running:   110    # /configz of the kubelet of w1" in text
    assert "the kubelet has not been started since, or one of its flags stands above its file" in text


def test_durations_and_quantities_are_compared_by_their_meaning() -> None:
    options: Json = {"json": {"infoBufferSize": "1024Ki"}}
    given: dict[str, Json] = {"nodeStatusUpdateFrequency": "90s", "logging": {"options": options}}
    snapshot = f1(is_seen=True, kubelet=given)

    def shown(frequency: str, size: str) -> Mapping[str, Json]:
        logging: Json = {"flushFrequency": "5s", "options": {"json": {"infoBufferSize": size}}}
        return {"w1": running(snapshot.nodes[1], nodeStatusUpdateFrequency=frequency, logging=logging)}

    assert found(drift(snapshot, shown("1m30s", "1Mi"))) == []
    assert [each[1] for each in found(drift(snapshot, shown("10s", "2Mi")))] == [
        "logging.options.json.infoBufferSize",
        "nodeStatusUpdateFrequency",
    ]


def test_false_is_a_value_and_not_left_to_the_kubelet() -> None:
    snapshot = f1(is_seen=True, kubelet={"failSwapOn": False})
    assert found(drift(snapshot, {"w1": running(snapshot.nodes[1], failSwapOn=True)})) == [
        ("w1", "failSwapOn", "stale")
    ]


def test_from_elsewhere_what_runs_is_compared_with_what_is_declared() -> None:
    snapshot = f1(is_seen=True, kubelet={"maxPods": 250})
    kubelets: dict[str, Json] = {"w1": running(snapshot.nodes[1], maxPods=42)}
    compared = drift(without_files(snapshot), kubelets)
    assert found(compared) == [("w1", "maxPods", "hand-edit")]
    captured = capture_node(compared, without_files(snapshot), DEFAULT_VERSION, "w1")
    assert [*captured.files.values()] == ["maxPods: 42\n"]


def test_file_and_kubelet_that_agree_against_the_configuration_are_one_edit() -> None:
    seen = f1(is_seen=True, kubelet={"maxPods": 250})
    text = (seen.nodes[1].kubelet_config or "").replace("maxPods: 250", "maxPods: 42")
    snapshot = with_node(seen, "w1", kubelet_config=text)
    assert found(drift(snapshot, {"w1": running(snapshot.nodes[1], maxPods=42)})) == [("w1", "maxPods", "hand-edit")]


def test_headers_that_a_kubelet_shows_are_told_nobody() -> None:
    snapshot = f1(is_seen=True, kubelet={"staticPodURLHeader": {"Authorization": ["Basic 0ther"]}})
    shown = running(snapshot.nodes[1], staticPodURLHeader={"Authorization": ["Basic s3cret"]})
    for each in (snapshot, without_files(snapshot)):
        compared = drift(each, {"w1": shown})
        assert found(compared) == []
        assert "s3cret" not in str(compared)


@pytest.mark.parametrize("answer", [{}, [], "", 1, {"maxPods": {"a": 1}}, {"logging": []}], ids=repr)
def test_answer_of_any_shape_is_compared(answer: Json) -> None:
    snapshot = f1(is_seen=True, kubelet={"maxPods": 250})
    for each in (snapshot, without_files(snapshot)):
        assert drift_as_text(drift(each, {"w1": answer}), (), shows_explained=True)


def flags(text: str) -> ClusterSnapshot:
    return with_node(f1(is_seen=True), "w1", kubelet_flags=f'KUBELET_KUBEADM_ARGS="{text}"\n')


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("", [], id="none"),
        pytest.param("--node-ip=192.0.2.9 --node-labels=a=b", ["environmental"] * 2, id="given at its registration"),
        pytest.param("--register-with-taints=a=b:NoSchedule", ["environmental"], id="taints"),
        pytest.param("--hostname-override=w1", [], id="the name of the node"),
        pytest.param("--hostname-override=w9", ["hand-edit"], id="another name"),
        pytest.param("'--v=2", ["hand-edit"], id="a quote that nothing closes"),
    ],
)
def test_flags_are_compared_with_what_the_registration_makes_of_them(text: str, kinds: list[str]) -> None:
    assert [kind for _, _, kind in found(drift(flags(text), {}))] == kinds


def test_flag_that_is_explained_says_where_it_may_come_from() -> None:
    text = drift_as_text(drift(flags("--node-ip=192.0.2.9"), {}), (), shows_explained=True)
    assert f"  {FLAGS}:\n    KUBELET_KUBEADM_ARGS[--node-ip]  [environmental]: kubeletExtraArgs or taints" in text
    assert not drift(flags("--node-ip=192.0.2.9"), {}).has_drift


def test_socket_that_an_older_kind_of_cluster_has_as_a_flag_is_the_one_of_the_node() -> None:
    old = f1(is_seen=True, version=SUPPORTED_VERSIONS[0], cluster={"featureGates": {"NodeLocalCRISocket": False}})
    right = with_node(old, "w1", kubelet_flags=f'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint={SOCKET}"\n')
    wrong = with_node(old, "w1", kubelet_flags='KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///x"\n')
    mine = [[each for each in found(drift(made, {})) if each[0] == "w1"] for made in (right, wrong)]
    field = "KUBELET_KUBEADM_ARGS[--container-runtime-endpoint]"
    assert mine == [[], [("w1", field, "hand-edit")]]


def test_flags_that_nobody_has_seen_are_not_compared() -> None:
    compared = drift(with_node(f1(is_seen=True), "w1", kubelet_flags=None), {})
    assert [each.where for part in compared.nodes if part.node == "w1" for each in part.subjects] == [
        "/var/lib/kubelet/config.yaml"
    ]
