"""Where etcd is, as the annotations of its Pods say."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.etcd.errors import EtcdUnreachable

ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
SELECTOR = "component=etcd,tier=control-plane"
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
