"""Deployments and DaemonSets: what the API server refuses, and what the cluster loses."""

from collections.abc import Callable
from typing import Any

import pytest

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS, KubernetesVersion
from garboard.rules import check_workload, weakened_workload
from garboard.schema import load_schema
from tests.support.rules.workloads import KINDS, workload


def changed(change: Callable[[Any], object], kind: str = "Deployment") -> Json:
    document: Any = workload(kind)
    change(document["spec"])
    result: Json = document
    return result


def told(document: Json, kind: str) -> list[tuple[str, str]]:
    return [(each.code, ".".join(map(str, each.path))) for each in check_workload(document, kind, DEFAULT_VERSION)]


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_what_kubeadm_makes_is_fine(kind: str, version: KubernetesVersion) -> None:
    document = workload(kind)
    assert check_workload(document, kind, version) == []
    assert weakened_workload(document, document, "kube-proxy", load_schema(version)) == []


def container(spec: Any) -> Any:
    return spec["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        pytest.param(
            lambda spec: spec["template"]["spec"].update(containers=None),
            "required-field", "spec.template.spec.containers", id="no containers",
        ),
        pytest.param(
            lambda spec: container(spec).update(image=""),
            "required-field", "spec.template.spec.containers.0.image", id="no image",
        ),
        pytest.param(
            lambda spec: container(spec).update(resources={"requests": {"memroy": "1Gi"}}),
            "unknown-resource", "spec.template.spec.containers.0.resources.requests.memroy", id="a misspelt resource",
        ),
        pytest.param(
            lambda spec: container(spec)["volumeMounts"].append({"name": "nope", "mountPath": "/n"}),
            "missing-volume", "spec.template.spec.containers.0.volumeMounts.", id="a mount without its volume",
        ),
        pytest.param(
            lambda spec: spec["template"]["metadata"].update(labels={"k8s-app": "other"}),
            "selector-mismatch", "spec.template.metadata.labels", id="other labels",
        ),
        pytest.param(lambda spec: spec.pop("selector"), "required-field", "spec.selector", id="no selector"),
        pytest.param(
            lambda spec: spec["template"]["spec"].update(restartPolicy="Never"),
            "unsupported-value", "spec.template.spec.restartPolicy", id="no restarts",
        ),
        pytest.param(
            lambda spec: spec.update(minReadySeconds=-1), "out-of-range", "spec.minReadySeconds", id="a negative time"
        ),
    ],
)  # fmt: skip
def test_what_the_api_server_refuses_is_found(kind: str, change: Callable[[Any], object], code: str, path: str) -> None:
    assert any(found == code and at.startswith(path) for found, at in told(changed(change, kind), kind))


def test_deployment_has_rules_of_its_own() -> None:
    for change, code in (
        (lambda spec: spec.update(replicas=-1), "out-of-range"),
        (lambda spec: spec.update(strategy={"type": "Recreate", "rollingUpdate": {}}), "forbidden-field"),
        (lambda spec: spec.update(strategy={"type": "Rolling"}), "unsupported-value"),
        (lambda spec: spec.update(strategy={"rollingUpdate": {"maxSurge": "x"}}), "bad-format"),
    ):
        assert [each for each, _ in told(changed(change), "Deployment")] == [code]


@pytest.mark.parametrize(
    ("kind", "change", "code"),
    [
        pytest.param(
            "DaemonSet", lambda spec: spec["template"]["spec"].pop("hostNetwork"), "host-network-off", id="network"
        ),
        pytest.param("Deployment", lambda spec: container(spec).pop("livenessProbe"), "probe-removed", id="probe"),
        pytest.param("Deployment", lambda spec: spec.update(replicas=0), "cluster-dns-removed", id="no replica"),
        pytest.param("DaemonSet", lambda spec: container(spec).update(name="x"), "container-removed", id="container"),
    ],
)  # fmt: skip
def test_what_the_cluster_loses_is_found(kind: str, change: Callable[[Any], object], code: str) -> None:
    component = "coredns" if kind == "Deployment" else "kube-proxy"
    schema = load_schema(DEFAULT_VERSION)
    found = weakened_workload(workload(kind), changed(change, kind), component, schema)
    assert [each.code for each in found] == [code]
