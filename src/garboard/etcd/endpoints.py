"""Where etcd is: the annotations of its Pods in the cluster, or the manifest on this machine."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.etcd.errors import EtcdUnreachable

ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
SELECTOR = "component=etcd,tier=control-plane"
_URLS_FLAG = "--advertise-client-urls="
_INTERVAL_S = 0.5


class PodReader(Protocol):
    """The part of the API server's client that is needed here."""

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]: ...


def endpoints_of_pods(pods: Iterable[dict[str, Json]]) -> tuple[str, ...] | None:
    """Return the client URLs that the Pods of etcd announce; None unless every one of them does."""
    found = [_annotated(pod) for pod in pods]
    if not found or not all(found):
        return None
    return tuple(dict.fromkeys(url for urls in found for url in urls.split(",")))


def _annotated(pod: dict[str, Json]) -> str:
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def find_endpoints(
    pods: PodReader,
    *,
    timeout_s: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Return where etcd answers, once every Pod of it is there with its annotation."""
    give_up_at = now() + timeout_s
    failure: GarboardError | None = None
    while True:
        try:
            if found := endpoints_of_pods(pods.labelled("Pod", "kube-system", SELECTOR)):
                return found
            failure = None
        except ClusterUnreachable as error:
            failure = error
        if now() >= give_up_at:
            raise failure or EtcdUnreachable(
                f"no Pod with the labels {SELECTOR} in kube-system says where etcd is (annotation {ANNOTATION})",
                hint="kubectl -n kube-system get pods -l component=etcd; the kubelet of each node makes them",
            )
        sleep(_INTERVAL_S)


def client_urls_of_manifest(pod: Json) -> tuple[str, ...]:
    """Return the client URLs in the static Pod of etcd on this machine; empty if it tells none."""
    return tuple(url for argument in _arguments(pod) if argument.startswith(_URLS_FLAG) for url in _urls(argument))


def _urls(argument: str) -> list[str]:
    return [url for url in argument.removeprefix(_URLS_FLAG).split(",") if url]


def _arguments(pod: Json) -> list[str]:
    spec = pod.get("spec") if isinstance(pod, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    words: list[str] = []
    for container in containers if isinstance(containers, list) else ():
        for key in ("command", "args"):
            value = container.get(key) if isinstance(container, dict) else None
            words += [str(word) for word in value] if isinstance(value, list) else []
    return words
