"""The common shape of the control-plane static pods."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Json
from garboard.manifests.container import Argument, PodMount, Variable, last_arg
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.sources import ConfigField, ValueSource, ValueSources
from garboard.model.component import Arg

_CONTAINER: DocumentPath = ("spec", "containers", 0)
_PROBE_PORT = "probe-port"
_SYSTEM_NODE_CRITICAL = 2000001000
_STARTUP_PERIOD_S = 10

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """What the kubelet probes; a component without a readiness probe is ready when it runs."""

    host: str  # empty: the address of the pod
    port: int
    liveness: str
    startup: str
    readiness: str = ""
    scheme: str = "HTTPS"
    host_source: ValueSource | None = None
    port_source: ValueSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPodComponent:
    """What one static pod has of its own."""

    name: str
    image: str
    image_source: ValueSource | None
    arguments: tuple[Argument, ...]
    mounts: tuple[PodMount, ...]
    variables: tuple[Variable, ...]
    requests: Mapping[str, str]
    probes: Probes
    annotations: Mapping[str, str] = field(default_factory=dict)
    annotation_source: ValueSource | None = None


@dataclass(frozen=True, slots=True)
class StaticPod:
    """A manifest before patches, and what decided each of its values."""

    name: str
    document: dict[str, Json]
    sources: ValueSources


def static_pod(component: StaticPodComponent, node: ControlPlaneNode) -> StaticPod:
    metadata: dict[str, Json] = {
        "name": component.name,
        "namespace": "kube-system",
        "labels": {"component": component.name, "tier": "control-plane"},
    }
    if component.annotations:
        metadata["annotations"] = dict(component.annotations)
    volumes = sorted(component.mounts, key=lambda each: each.mount.name)
    document: dict[str, Json] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [_container(component, node)],
            "hostNetwork": True,
            "priority": _SYSTEM_NODE_CRITICAL,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [each.volume_document() for each in volumes],
        },
        "status": {},
    }
    return StaticPod(component.name, document, ValueSources(_sources(component, node)))


def _container(component: StaticPodComponent, node: ControlPlaneNode) -> Json:
    container: dict[str, Json] = {
        "name": component.name,
        "image": component.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [component.name, *map(str, component.arguments)],
        "ports": [{"containerPort": component.probes.port, "name": _PROBE_PORT, "protocol": "TCP"}],
        "resources": {"requests": dict(component.requests)},
        "volumeMounts": [each.mount_document() for each in component.mounts],
        **_probes(component.probes, node),
    }
    if component.variables:
        container["env"] = [each.document() for each in component.variables]
    return container


def _probes(probes: Probes, node: ControlPlaneNode) -> dict[str, Json]:
    # A component has as long to start as its startup probe may fail.
    startup_failures = math.ceil(node.health_check_timeout.seconds / _STARTUP_PERIOD_S)
    found: dict[str, Json] = {
        "livenessProbe": _probe(probes, probes.liveness, delay=10, period=10, failures=8),
        "startupProbe": _probe(probes, probes.startup, delay=10, period=_STARTUP_PERIOD_S, failures=startup_failures),
    }
    if probes.readiness:
        found["readinessProbe"] = _probe(probes, probes.readiness, delay=0, period=1, failures=3)
    return found


def _probe(probes: Probes, path: str, *, delay: int, period: int, failures: int) -> Json:
    request: dict[str, Json] = {"path": path, "port": _PROBE_PORT, "scheme": probes.scheme}
    if probes.host:
        request["host"] = probes.host
    probe: dict[str, Json] = {"httpGet": request, "periodSeconds": period, "timeoutSeconds": 15}
    if delay:
        probe["initialDelaySeconds"] = delay
    if failures:
        probe["failureThreshold"] = failures
    return probe


def _sources(component: StaticPodComponent, node: ControlPlaneNode) -> dict[DocumentPath, ValueSource]:
    found: dict[DocumentPath, ValueSource | None] = {
        (*_CONTAINER, "image"): component.image_source,
        (*_CONTAINER, "ports"): component.probes.port_source,
        (*_CONTAINER, "startupProbe", "failureThreshold"): node.timeout_field,
        ("metadata", "annotations"): component.annotation_source,
    }
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        found[(*_CONTAINER, probe, "httpGet", "host")] = component.probes.host_source
    for index, argument in enumerate(component.arguments, start=1):
        found[(*_CONTAINER, "command", index)] = argument.source
    for index, variable in enumerate(component.variables):
        found[(*_CONTAINER, "env", index)] = variable.source
    for index, each in enumerate(component.mounts):
        found[(*_CONTAINER, "volumeMounts", index)] = each.source
    for index, each in enumerate(sorted(component.mounts, key=lambda each: each.mount.name)):
        found[("spec", "volumes", index)] = each.source
    return {path: source for path, source in found.items() if source is not None}


def probe_host(listens_on: str) -> str:
    """Return the host to probe; empty, which means the pod's address, for a component that listens everywhere."""
    return "" if listens_on in _EVERYWHERE else listens_on


def bind_address_probes(args: Sequence[Arg], field: ConfigField, probes: Probes) -> Probes:
    """Return probes of the address that the component listens on, which the user may have changed."""
    found = last_arg(args, "bind-address")
    if found is None:
        return probes
    index, arg = found
    return Probes(
        host=probe_host(arg.value),
        port=probes.port,
        liveness=probes.liveness,
        startup=probes.startup,
        readiness=probes.readiness,
        host_source=field / index,
    )
