"""kubeadm's own Deployment and DaemonSet, to change and to judge."""

from copy import deepcopy
from functools import cache
from typing import Any

from garboard.config import FixedFacts, ReadOptions, init_from_flags, resolve_version
from garboard.documents import Json
from garboard.manifests import NodeHost
from garboard.model import DEFAULT_VERSION
from garboard.model.lifecycle import InitConfiguration
from garboard.phases.rendering import NodeRendering
from garboard.schema import load_schema

KINDS = ("Deployment", "DaemonSet")


@cache
def _rendered() -> dict[str, Json]:
    loaded = init_from_flags(
        InitConfiguration(), resolve_version(str(DEFAULT_VERSION)), FixedFacts(), ReadOptions(detects_cri=False)
    )
    rendering = NodeRendering(loaded, NodeHost(hostname="node"), load_schema(DEFAULT_VERSION))
    return {each.target.kind: each.document for each in rendering.everything()}


def workload(kind: str) -> Any:
    """Return CoreDNS (Deployment) or kube-proxy (DaemonSet) as kubeadm makes it, anew each time."""
    return deepcopy(_rendered()[kind])
