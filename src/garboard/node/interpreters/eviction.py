"""Pods that go from a node: evicted as their disruption budgets allow, with nothing lost unasked; or deleted."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from garboard.documents import Json
from garboard.engine import DeletePods, EvictPods, Interpreters, StepContext
from garboard.errors import GarboardError
from garboard.lazy import lazy_module
from garboard.node.interpreters.objects import NodeCluster
from garboard.phases.gates.drained import controller_of, evictable, has_ended, loses_data, name_of, shortened
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard import kube
else:
    kube = lazy_module("garboard.kube")

_TOO_MANY_REQUESTS = 429
_PAUSES = Pauses(first_s=0.25, longest_s=5.0, growth=1.5)


class EvictionRefused(GarboardError):
    """Pods cannot be evicted, or were not within the time."""

    default_class = "eviction"


class PodEvictor(Protocol):
    def pods_of(self, node_name: str) -> Sequence[dict[str, Json]]:
        """Return the pods of a node."""
        ...

    def evict(self, pod: dict[str, Json], grace_s: int | None) -> None:
        """Ask for the eviction of exactly this pod; one that has gone is no error."""
        ...

    def delete(self, pod: dict[str, Json]) -> None:
        """Delete exactly this pod; one that has gone is no error."""
        ...


@dataclass(frozen=True, slots=True)
class NodePods:
    """The pods of the cluster's nodes."""

    cluster: NodeCluster

    def pods_of(self, node_name: str) -> Sequence[dict[str, Json]]:
        return self.cluster.reader.list_objects("Pod", fields=f"spec.nodeName={node_name}")

    def evict(self, pod: dict[str, Json], grace_s: int | None) -> None:
        evict_pod(self.cluster.writer, pod, grace_s)

    def delete(self, pod: dict[str, Json]) -> None:
        namespace, name, _ = _identity(pod)
        # A pod of a DaemonSet gets another name with each new pod, so that this is no other one.
        self.cluster.writer.delete(kube.ObjectRef("Pod", namespace, name))


def evict_pod(client: "kube.KubeClient", pod: dict[str, Json], grace_s: int | None) -> None:
    """Ask for the eviction of a pod, unless another one has its name by now."""
    namespace, name, uid = _identity(pod)
    options: dict[str, Json] = {"preconditions": {"uid": uid}}
    content: Json = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options if grace_s is None else {**options, "gracePeriodSeconds": grace_s},
    }
    with suppress(kube.ObjectMissing, kube.ObjectConflict):
        client.create(kube.ObjectRef("Pod", namespace, name), content, subresource="eviction")


def _identity(pod: dict[str, Json]) -> tuple[str, str, str]:
    """Return the namespace, the name and the uid of a pod."""
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    namespace, name, uid = (str(metadata[key]) for key in ("namespace", "name", "uid"))
    return namespace, name, uid


@dataclass(frozen=True, slots=True)
class EvictionInterpreter:
    cluster: PodEvictor
    clock: Clock = CLOCK

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(EvictPods, self.evict).add(DeletePods, self.delete)

    def delete(self, action: DeletePods, run: StepContext) -> None:
        """Delete the pods that are selected now, and wait until they have gone; those that replace them stay."""
        former = {_identity(pod): pod for pod in self.cluster.pods_of(action.node_name) if _is_selected(pod, action)}
        if not former:
            run.report("no such pod runs on this node")
        for pod in former.values():
            self.cluster.delete(pod)

        def left() -> str | None:
            found = former.keys() & map(_identity, self.cluster.pods_of(action.node_name))
            return f"{', '.join(sorted(name for _, name, _ in found))} still ending" if found else None

        problem = wait_until(left, timeout_s=action.timeout_s, pauses=_PAUSES, clock=self.clock) if former else None
        if problem is not None:
            raise EvictionRefused(
                f"Node {action.node_name}: after {action.timeout_s:.0f} s {problem}",
                hint=f"kubectl get pods -n {action.namespace} --field-selector spec.nodeName={action.node_name}",
            )

    def evict(self, action: EvictPods, run: StepContext) -> None:
        """Evict all pods again and again, until none is left: a budget that is used up now may not be in a moment."""
        _refuse_losses(action, self._left(action))
        told: set[str] = set()

        def look() -> str | None:
            left = self._left(action)
            problems = [problem for pod in left if (problem := self._evict(pod, action))]
            for each in problems:
                if each not in told:
                    run.report(each)
                    told.add(each)
            return "; ".join(problems) or (f"{shortened([name_of(pod) for pod in left])} are ending" if left else None)

        problem = wait_until(look, timeout_s=action.timeout_s, pauses=_PAUSES, clock=self.clock)
        if problem is not None:
            raise EvictionRefused(
                f"Node {action.node_name} was not drained within {action.timeout_s:.0f} s: {problem}",
                hint="look at the budgets: kubectl get pdb -A; the node stays cordoned until the run is undone",
            )

    def _left(self, action: EvictPods) -> list[dict[str, Json]]:
        return list(evictable(self.cluster.pods_of(action.node_name), action.node_name))

    def _evict(self, pod: dict[str, Json], action: EvictPods) -> str:
        """Evict a pod, unless it is ending already; return why that is refused for now."""
        metadata = pod.get("metadata")
        if isinstance(metadata, dict) and "deletionTimestamp" in metadata:
            return ""
        try:
            self.cluster.evict(pod, action.grace_s)
        except (kube.ServerBusy, kube.ConnectionBroken) as error:
            # It may have been done. Asking again is safe, because the eviction names exactly this pod.
            return f"{name_of(pod)} stays for now: {error.message}"
        except kube.RequestRefused as error:
            if error.http_status != _TOO_MANY_REQUESTS:
                raise
            return f"{name_of(pod)} stays for now: {error.message}"
        return ""


def _is_selected(pod: dict[str, Json], action: DeletePods) -> bool:
    metadata = pod.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    is_there = isinstance(metadata, dict) and metadata.get("namespace") == action.namespace
    return is_there and isinstance(labels, dict) and all(labels.get(key) == value for key, value in action.selector)


def _refuse_losses(action: EvictPods, pods: Sequence[dict[str, Json]]) -> None:
    """Refuse pods whose end would lose something, all of them at once, before the first is evicted."""
    alive = [pod for pod in pods if not has_ended(pod)]
    unmanaged = [name_of(pod) for pod in alive if not controller_of(pod)]
    with_data = [name_of(pod) for pod in alive if loses_data(pod)]
    problems = []
    if unmanaged and not action.deletes_unmanaged:
        problems.append(f"nobody would make these pods again: {shortened(unmanaged)}")
    if with_data and not action.deletes_empty_dirs:
        problems.append(f"these pods have data in emptyDir volumes: {shortened(with_data)}")
    if problems:
        raise EvictionRefused(
            f"Node {action.node_name} is not drained: {'; '.join(problems)}", hint="move or delete these pods first"
        )
