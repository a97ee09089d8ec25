"""What a running cluster's DNS keeps when the addon is put again: how many replicas, and a Corefile of its owner's."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from garboard.engine import Note
from garboard.errors import NotReady
from garboard.manifests import ClusterObject
from garboard.manifests.coredns import DEFAULT_REPLICAS, is_own_corefile
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.phases.init.context import ClusterView


@dataclass(frozen=True, slots=True)
class ObservedDns:
    """The addon as found; by default there is none."""

    replicas: int = DEFAULT_REPLICAS
    has_foreign_corefile: bool = False

    def notes(self) -> Iterator[Note]:
        if self.has_foreign_corefile:
            yield Note("the Corefile in ConfigMap coredns is not the one that is made here, and is kept")

    def without_kept(self, objects: Iterable[ClusterObject]) -> tuple[ClusterObject, ...]:
        """Return the objects of the addon but the ConfigMap, if that is kept."""
        return tuple(each for each in objects if not (each.kind == "ConfigMap" and self.has_foreign_corefile))


def observe_dns(cluster: ClusterView | None) -> ObservedDns:
    """Look at the addon of a cluster; without a cluster nothing is there."""
    if cluster is None:
        return ObservedDns()
    return ObservedDns(_replicas(cluster), _has_foreign_corefile(cluster))


def _replicas(cluster: ClusterView) -> int:
    found = cluster.labelled("Deployment", KUBE_SYSTEM, "k8s-app=kube-dns")
    if len(found) > 1:
        raise NotReady(
            f"there are {len(found)} Deployments with the label k8s-app=kube-dns in {KUBE_SYSTEM}",
            hint="keep one of them, or leave out addon/coredns",
        )
    spec = found[0].get("spec") if found else None
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    return replicas if isinstance(replicas, int) else DEFAULT_REPLICAS


def _has_foreign_corefile(cluster: ClusterView) -> bool:
    found = cluster.find("ConfigMap", KUBE_SYSTEM, "coredns")
    if found is None:
        return False
    data = found.get("data")
    text = data.get("Corefile") if isinstance(data, dict) else None
    if not isinstance(text, str):
        raise NotReady(
            f"ConfigMap {KUBE_SYSTEM}/coredns has no Corefile", hint="write one, or delete it to have a new one made"
        )
    return text != "" and not is_own_corefile(text)
