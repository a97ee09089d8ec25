"""What is found of a component, as a document that can be compared with what is declared.

The files of the kubelet, the command line of a process, and objects of the cluster, which have more than was declared:
the API server, controllers and the kubelet add to them.
"""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress

from garboard.documents import Json
from garboard.drift.leaves import KUBELET_ARGS
from garboard.patches import copy_of
from garboard.rules.command_line import flag_name

# The flags that the kubelet's unit gives it besides those of kubeadm-flags.env.
_UNIT_FLAGS = ("bootstrap-kubeconfig", "config", "kubeconfig")
_SERVER_METADATA = ("creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid")
_SERVER_ANNOTATIONS = (
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubectl.kubernetes.io/restartedAt",
    "kubernetes.io/config.hash",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.seen",
    "kubernetes.io/config.source",
)
_SERVICE_FIELDS = ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
_STATIC_TOLERATION: Json = {"effect": "NoExecute", "operator": "Exists"}


def flags_document(data: bytes) -> Json:
    """Return kubeadm-flags.env as a document: the kubelet's flags, word by word."""
    text = data.decode("utf-8", "replace").partition(f"{KUBELET_ARGS}=")[2].strip()
    with suppress(ValueError):  # a quote that nothing closes
        text = "".join(shlex.split(text))
    return {KUBELET_ARGS: [*text.split()]}


def kubelet_command(words: Sequence[str]) -> Json:
    """Return the flags of a kubelet that runs, without those that come from its unit."""
    given = [word for word in words[1:] if flag_name(word) not in _UNIT_FLAGS]
    return {KUBELET_ARGS: [*given]}


def with_command(document: Json, container: str, words: Sequence[str]) -> Json:
    """Return a Pod with the command line of a process in place of its container's: all that a process shows."""
    running = copy_of(document)
    spec = _mapping(_mapping(running).get("spec"))
    containers = spec.get("containers")
    for each in containers if isinstance(containers, list) else ():
        if _mapping(each).get("name") == container and isinstance(each, dict):
            each.pop("args", None)
            each["command"] = [*words]
    return running


def own_part(live: Mapping[str, Json]) -> dict[str, Json]:
    """Return an object of the cluster without what the API server, its controllers and a kubelet add to it."""
    content = {name: copy_of(value) for name, value in live.items() if name != "status"}
    metadata = _mapping(content.get("metadata"))
    content["metadata"] = _own_metadata(metadata)
    spec = content.get("spec")
    if isinstance(spec, dict):
        is_mirror = "kubernetes.io/config.mirror" in _mapping(metadata.get("annotations"))
        _clean_spec(str(content.get("kind")), spec, is_mirror=is_mirror)
    return content


def _own_metadata(metadata: Mapping[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_METADATA}
    annotations = _mapping(kept.pop("annotations", None))
    own = {name: value for name, value in annotations.items() if name not in _SERVER_ANNOTATIONS}
    return {**kept, "annotations": own} if own else kept


def _clean_spec(kind: str, spec: dict[str, Json], *, is_mirror: bool) -> None:
    if kind == "Service":
        for name in _SERVICE_FIELDS:
            spec.pop(name, None)
    template = spec.get("template")
    if isinstance(template, dict):
        template["metadata"] = _own_metadata(_mapping(template.get("metadata")))
    if is_mirror:
        spec.pop("nodeName", None)
        tolerations = spec.get("tolerations")
        own = [each for each in tolerations if each != _STATIC_TOLERATION] if isinstance(tolerations, list) else []
        spec["tolerations"] = [*own]


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
