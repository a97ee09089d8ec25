"""The record of a change in the cluster, as a node or an operator reads and writes it; an answer comes soon, or not."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.host.files import read_if_there
from garboard.lazy import lazy_module
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.manifests.uploaded import CONFIG_KEYS
from garboard.phases.revision import (
    TARGET,
    ChangeTarget,
    NodeReport,
    Revision,
    read_revision,
    read_target,
    revision_name,
)
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard import kube
else:
    kube = lazy_module("garboard.kube")

# Who waits for a slot cannot wait for an API server that is away.
_ANSWER_WITHIN_S = 5.0
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True)
class StoredTarget:
    """The target of a change, and the version of the object that it was read from."""

    target: ChangeTarget
    version: str


class ChangeCluster:
    """The target, the revisions and the reports of nodes, through the kubeconfig that is named."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig

    @contextmanager
    def _client(self) -> "Iterator[kube.KubeClient]":
        data = read_if_there(self._kubeconfig)
        if data is None:
            raise GarboardError(
                f"{self._kubeconfig} does not exist", hint="name an administrator's", error_class="no-kubeconfig"
            )
        access = kube.read_access(data, self._kubeconfig, read_if_there)
        with kube.KubeClient(access, timeout_s=_ANSWER_WITHIN_S, patience_s=0.0) as client:
            yield client

    def target(self) -> StoredTarget | None:
        """Return the target; None if this cluster was never changed."""
        with self._client() as client:
            found = client.find("ConfigMap", KUBE_SYSTEM, TARGET)
        read = read_target(found)
        return StoredTarget(read, _version(found)) if read and found else None

    def replace(self, stored: StoredTarget, moved: ChangeTarget) -> bool:
        """Write the target as it is from now on; False if somebody has written it since it was read."""
        content = moved.as_object().content
        metadata: Json = {"name": TARGET, "namespace": KUBE_SYSTEM, "resourceVersion": stored.version}
        with self._client() as client:
            try:
                client.replace(kube.ObjectRef("ConfigMap", KUBE_SYSTEM, TARGET), {**content, "metadata": metadata})
            except (kube.ObjectConflict, kube.ObjectMissing):
                return False
        return True

    def reports(self, target: ChangeTarget) -> Mapping[str, NodeReport]:
        """Return what the nodes of a target report of it, by their names."""
        with self._client() as client:
            nodes = client.list_all("Node")
        return _reports(nodes, target)

    def control_planes_left(self, target: ChangeTarget) -> tuple[str, ...]:
        """Return the control planes that still have what a change did, as far as they have said.

        Workers come last, maybe hours later, and each refuses to begin anything until it has gone back.
        """
        with self._client() as client:
            nodes = client.labelled("Node", "", _CONTROL_PLANE)
        said = _reports(nodes, target)
        return tuple(name for name in target.nodes if name in said and said[name].result in ("done", "confirmed"))

    def restore_documents(self, target: ChangeTarget) -> tuple[str, ...]:
        """Put the configuration of before the change back; return the ConfigMaps that somebody has edited since.

        One that holds neither what the change wrote nor what was there before stays as it is.
        """
        with self._client() as client:
            after, before = (_revision(client, number) for number in (target.revision, target.parent))
            names = sorted(name for name in after.documents if after.documents[name] != before.documents.get(name))
            return tuple(name for name in names if not _restore(client, name, after, before))


def _restore(client: "kube.KubeClient", name: str, after: Revision, before: Revision) -> bool:
    key, former = CONFIG_KEYS[name], before.documents.get(name)
    ref = kube.ObjectRef("ConfigMap", KUBE_SYSTEM, name)
    found = client.get_for_update(ref)
    data = found.get("data")
    text = data.get(key) if isinstance(data, dict) else None
    if text == former:
        return True
    if former is None or text != after.documents[name] or not isinstance(data, dict):
        return False
    try:
        client.replace(ref, {**found, "data": {**data, key: former}})
    except kube.ObjectConflict as error:  # it is looked at again
        raise ClusterUnreachable(f"{ref} is being written by somebody else") from error
    return True


def _revision(client: "kube.KubeClient", number: int) -> Revision:
    return read_revision(client.require("ConfigMap", KUBE_SYSTEM, revision_name(number)))


def _reports(nodes: tuple[dict[str, Json], ...], target: ChangeTarget) -> dict[str, NodeReport]:
    found: dict[str, NodeReport] = {}
    for each in nodes:
        metadata = each.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        report = NodeReport.of_node(each)
        if isinstance(name, str) and report and report.says(target):
            found[name] = report
    return found


def _version(found: Mapping[str, Json]) -> str:
    metadata = found.get("metadata")
    return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
