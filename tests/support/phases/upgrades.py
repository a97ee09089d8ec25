"""A node whose cluster is about to go up a minor, in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from garboard import patches
from garboard.documents import Json
from garboard.manifests import NodeHost
from garboard.manifests.coredns import coredns_objects
from garboard.model.cluster import coredns_image
from garboard.model.node import ApiEndpoint
from garboard.phases.patching import NodePatches
from garboard.phases.static_pods import ORDER
from garboard.phases.upgrade.cluster import UpgradedCluster
from garboard.phases.upgrade.context import ThisNode, UpgradeContext, UpgradeOptions, observe_upgrade
from tests.support.phases.machines import NOW, MemoryMachine, load

FORMER, TARGET = "v1.36.4", "v1.37.1"
CONFIG = f"""
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {FORMER}
encryptionAlgorithm: ECDSA-P256
"""


@dataclass
class DnsObjects:
    """The CoreDNS of a cluster, of the release that its version comes with unless another tag is given."""

    corefile: str | None = None
    tag: str = ""
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cluster = load(CONFIG).config.cluster
        self.found = {each.kind: dict(each.content) for each in coredns_objects(cluster)}
        if self.corefile is not None:
            self.found["ConfigMap"]["data"] = {"Corefile": self.corefile}
        if self.tag:
            container = self.found["Deployment"]["spec"]["template"]["spec"]["containers"][0]
            container["image"] = coredns_image(cluster).rpartition(":")[0] + f":{self.tag}"

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        return self.found.get(kind) if name == "coredns" else None

    def labelled(self, kind: str, namespace: str, selector: str) -> list[dict[str, Json]]:
        return [self.found["Deployment"]] if kind == "Deployment" else []


def patch_files(texts: Mapping[str, str]) -> NodePatches:
    files = [patches.PatchFile(name, f"patches/{name}", text.encode) for name, text in texts.items()]
    return NodePatches(lambda: files)


def upgrade_context(
    more: str = "",
    *,
    files: Mapping[str, str] | None = None,
    patched: Mapping[str, str] | None = None,
    dns: DnsObjects | None = None,
    options: UpgradeOptions | None = None,
) -> UpgradeContext:
    """Return what `upgrade apply` plans from; `more` is appended to the configuration, `files` are on the node."""
    config = load(CONFIG + more)
    cluster = config.config.cluster
    upgraded = UpgradedCluster(
        former=cluster,
        target=replace(cluster, kubernetes_version=TARGET),
        components=config.components,
    )
    endpoint = ApiEndpoint(advertise_address="192.0.2.10", bind_port=6443)
    node = ThisNode("node-1", "unix:///run/none.sock", endpoint, dict.fromkeys(ORDER, b"{}"))
    return observe_upgrade(
        node,
        upgraded,
        options or UpgradeOptions(is_first=True),
        host=NodeHost(hostname="node-1"),
        machine=MemoryMachine({name: text.encode() for name, text in (files or {}).items()}),
        patches=patch_files(patched) if patched else NodePatches(),
        now=NOW,
        objects=dns or DnsObjects(),
        timeouts=config.config.timeouts,
        registration=config.config.node_registration,
    )
