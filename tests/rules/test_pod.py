"""Static Pods: what the kubelet refuses, each by its code and path."""

from collections.abc import Callable
from typing import Any

import pytest

from garboard.documents import Json
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.rules import check_pod
from tests.support.rules.component_pods import changed_pod, component_pod

V1_36, V1_37 = SUPPORTED_VERSIONS[:2]
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
MAIN = ("spec", "containers", 0)


def told(document: Json, version: KubernetesVersion = V1_37) -> list[tuple[str, str]]:
    return [(each.code, ".".join(map(str, each.path))) for each in check_pod(document, version)]


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_pods_of_kubeadm_are_valid(component: str, version: KubernetesVersion) -> None:
    assert told(component_pod(component), version) == []


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        pytest.param(lambda spec, main: spec.update(containers=None), "required-field", "spec.containers", id="none"),
        pytest.param(lambda spec, main: spec.update(containers=[]), "required-field", "spec.containers", id="empty"),
        pytest.param(lambda spec, main: main.update(image=""), "required-field", "spec.containers.0.image", id="image"),
        pytest.param(
            lambda spec, main: main.update(image="a "),
            "bad-format",
            "spec.containers.0.image",
            id="a blank in the image",
        ),
        pytest.param(lambda spec, main: main.pop("name"), "required-field", "spec.containers.0.name", id="name"),
        pytest.param(
            lambda spec, main: main.update(name="Main"), "bad-name", "spec.containers.0.name", id="no DNS label"
        ),
        pytest.param(
            lambda spec, main: spec["containers"].append(main),
            "duplicate-name",
            "spec.containers.1.name",
            id="two containers of one name",
        ),
        pytest.param(
            lambda spec, main: main["volumeMounts"].append({"name": "audit", "mountPath": "/audit"}),
            "missing-volume",
            "spec.containers.0.volumeMounts.5.name",
            id="a mount without its volume",
        ),
        pytest.param(
            lambda spec, main: main["volumeMounts"].append({**main["volumeMounts"][0]}),
            "duplicate-mount-path",
            "spec.containers.0.volumeMounts.5.mountPath",
            id="two mounts at one path",
        ),
        pytest.param(
            lambda spec, main: spec["volumes"][0].update(emptyDir={}),
            "several-sources",
            "spec.volumes.0.hostPath",
            id="a volume with two sources",
        ),
        pytest.param(
            lambda spec, main: spec.update(securityContext={"seLinuxChangePolicy": "Never"}),
            "unsupported-value",
            "spec.securityContext.seLinuxChangePolicy",
            id="a policy of SELinux",
        ),
        pytest.param(
            lambda spec, main: spec["volumes"].append({**spec["volumes"][0]}),
            "duplicate-name",
            "spec.volumes.5.name",
            id="two volumes of one name",
        ),
        pytest.param(
            lambda spec, main: spec["volumes"][0]["hostPath"].update(type="Folder"),
            "unsupported-value",
            "spec.volumes.0.hostPath.type",
            id="a type that hostPath does not have",
        ),
        pytest.param(
            lambda spec, main: spec["volumes"][0]["hostPath"].update(path="/a/../b"),
            "bad-path",
            "spec.volumes.0.hostPath.path",
            id="a path with a step up",
        ),
        pytest.param(
            lambda spec, main: main.update(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}),
            "requests-above-limits",
            "spec.containers.0.resources.requests.cpu",
            id="a request above its limit",
        ),
        pytest.param(
            lambda spec, main: main.update(resources={"requests": {"memroy": "1Gi"}}),
            "unknown-resource",
            "spec.containers.0.resources.requests.memroy",
            id="a misspelt resource",
        ),
        pytest.param(
            lambda spec, main: main.update(resources={"requests": {"memory": "1GB"}}),
            "bad-quantity",
            "spec.containers.0.resources.requests.memory",
            id="a quantity that does not parse",
        ),
        pytest.param(
            lambda spec, main: main.update(resources={"requests": {"cpu": "-1"}}),
            "out-of-range",
            "spec.containers.0.resources.requests.cpu",
            id="a negative quantity",
        ),
        pytest.param(
            lambda spec, main: main.update(imagePullPolicy="Sometimes"),
            "unsupported-value",
            "spec.containers.0.imagePullPolicy",
            id="pull policy",
        ),
        pytest.param(
            lambda spec, main: spec.update(restartPolicy="always"),
            "unsupported-value",
            "spec.restartPolicy",
            id="restart policy in lower case",
        ),
        pytest.param(
            lambda spec, main: main.update(ports=[{"containerPort": 70000}]),
            "out-of-range",
            "spec.containers.0.ports.0.containerPort",
            id="a port out of range",
        ),
        pytest.param(
            lambda spec, main: main.update(ports=[{"containerPort": 6443, "hostPort": 443}]),
            "port-mismatch",
            "spec.containers.0.ports.0.hostPort",
            id="another port of the host",
        ),
        pytest.param(
            lambda spec, main: main["livenessProbe"]["httpGet"].update(port=0),
            "out-of-range",
            "spec.containers.0.livenessProbe.httpGet.port",
            id="a probe of port 0",
        ),
        pytest.param(
            lambda spec, main: main["livenessProbe"].pop("httpGet"),
            "required-field",
            "spec.containers.0.livenessProbe",
            id="a probe without a handler",
        ),
        pytest.param(
            lambda spec, main: main["livenessProbe"].update(exec={"command": ["true"]}),
            "several-sources",
            "spec.containers.0.livenessProbe",
            id="a probe with two handlers",
        ),
        pytest.param(
            lambda spec, main: main["livenessProbe"].update(successThreshold=2),
            "out-of-range",
            "spec.containers.0.livenessProbe.successThreshold",
            id="a threshold that only readiness has",
        ),
        pytest.param(
            lambda spec, main: spec.update(initContainers=[{"name": "a", "image": "b", "livenessProbe": {"exec": {}}}]),
            "forbidden-field",
            "spec.initContainers.0.livenessProbe",
            id="a probe of an init container",
        ),
        pytest.param(
            lambda spec, main: main.update(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {}}}]),
            "several-sources",
            "spec.containers.0.env.0.valueFrom",
            id="a variable with value and source",
        ),
        pytest.param(
            lambda spec, main: main.update(envFrom=[{"secretRef": {"name": "a"}}]),
            "api-reference",
            "spec.containers.0.envFrom.0.secretRef",
            id="a Secret in a static Pod",
        ),
        pytest.param(
            lambda spec, main: spec["volumes"][0].update(hostPath=None, configMap={"name": "a"}),
            "api-reference",
            "spec.volumes.0.configMap",
            id="a ConfigMap in a static Pod",
        ),
        pytest.param(
            lambda spec, main: spec.update(serviceAccountName="a"),
            "api-reference",
            "spec.serviceAccountName",
            id="a service account of a static Pod",
        ),
        pytest.param(
            lambda spec, main: spec.update(securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}),
            "forbidden-field",
            "spec.securityContext.sysctls.0.name",
            id="a sysctl of the host's network",
        ),
        pytest.param(
            lambda spec, main: spec.update(tolerations=[{"operator": "Equal"}]),
            "unsupported-value",
            "spec.tolerations.0.operator",
            id="a toleration of everything that is Equal",
        ),
        pytest.param(
            lambda spec, main: spec.update(hostAliases=[{"ip": "10.0.0.01"}]),
            "bad-address",
            "spec.hostAliases.0.ip",
            id="an address with a leading zero",
        ),
        pytest.param(
            lambda spec, main: spec.update(resources={"requests": {"cpu": "100m"}}),
            "requests-above-limits",
            "spec.resources.requests.cpu",
            id="a Pod that requests less than its containers",
        ),
        pytest.param(
            lambda spec, main: spec["volumes"].append({"name": "a", "emptyDir": {"sizeLimit": "1GB"}}),
            "bad-quantity",
            "spec.volumes.5.emptyDir.sizeLimit",
            id="the size of a volume",
        ),
        pytest.param(
            lambda spec, main: spec.update(dnsPolicy="None"),
            "required-field",
            "spec.dnsConfig.nameservers",
            id="DNS without a server",
        ),
    ],
)
def test_pod_that_the_kubelet_refuses_is_found(change: Callable[[Any, Any], object], code: str, path: str) -> None:
    assert (code, path) in told(changed_pod(change))


def test_volume_without_a_source_is_an_empty_folder() -> None:
    assert told(changed_pod(lambda spec, main: spec["volumes"].append({"name": "a"}))) == []


def test_rules_follow_the_gates_of_the_minor() -> None:
    pod = changed_pod(lambda spec, main: spec.update(securityContext={"seLinuxChangePolicy": "MountOption"}))
    assert told(pod, V1_36) == [("disabled-feature", "spec.securityContext.seLinuxChangePolicy")]
    assert told(pod, V1_37) == []


def test_negative_grace_period_is_taken_for_a_second() -> None:
    pod = changed_pod(lambda spec, main: spec.update(terminationGracePeriodSeconds=-1))
    assert told(pod) == []


def test_pod_that_is_allowed_less_than_its_containers_request_is_refused_where_requests_are_filled_in() -> None:
    pod = changed_pod(lambda spec, main: spec.update(resources={"limits": {"cpu": "100m"}}))
    assert told(pod, V1_36) == [("requests-above-limits", "spec.resources.limits.cpu")]
    assert told(pod, V1_37) == []


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(None, id="nothing"),
        pytest.param([], id="a list"),
        pytest.param({"metadata": 1, "spec": "x"}, id="scalars for maps"),
        pytest.param({"spec": {"containers": [1, None, "a", []], "volumes": {"a": 1}}}, id="anything for containers"),
        pytest.param({"spec": {"containers": [{"ports": [{"containerPort": "x"}], "env": 5}]}}, id="other types"),
    ],
)
def test_anything_can_be_judged(document: Json) -> None:
    assert "required-field" in {code for code, _ in told(document)}
