"""What kubeadm lets patches customize: the targets of each minor, and what becomes of a patched document."""

import re
from dataclasses import dataclass
from enum import StrEnum

from garboard.documents import Json
from garboard.errors import BadDocument, BadUsage
from garboard.model import KubernetesVersion, Minor
from garboard.patches.patch import Patch, PatchType, Source
from garboard.schema import Schema, StructType, suggest
from garboard.schema.round_trip import round_trip


class Decoding(StrEnum):
    """How kubeadm treats the patched text."""

    POD = "pod"  # into the Pod type and out again; a document of another kind is quietly discarded
    TYPED = "typed"  # into its type and out again, before it is sent to the API server
    NONE = "none"  # written as it is


_ALWAYS = Minor(1, 0)
# Groups whose kinds have types here, but none that kubeadm's decoder of API objects knows.
_NO_API_OBJECT = re.compile(r"(apiextensions|audit|kubeadm|\w+\.config)\.k8s\.io/")


@dataclass(frozen=True, slots=True)
class Target:
    """A document that kubeadm generates and patches may change, by the word that begins the patch file's name."""

    name: str
    api_version: str
    kind: str
    decoding: Decoding
    object_name: str = ""  # where it differs from the target's name
    since: Minor = _ALWAYS

    def shape(self, schema: Schema) -> StructType:
        found = schema.type_of(self.api_version, self.kind)
        assert found is not None, f"the type data lacks {self.kind}"
        return found


_POD = ("v1", "Pod", Decoding.POD)
# In the order of kubeadm's messages.
TARGETS = (
    Target("etcd", *_POD),
    Target("kube-apiserver", *_POD),
    Target("kube-controller-manager", *_POD),
    Target("kube-scheduler", *_POD),
    Target("kubeletconfiguration", "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", Decoding.NONE),
    Target("corednsdeployment", "apps/v1", "Deployment", Decoding.TYPED, "coredns"),
    Target("kubeproxydaemonset", "apps/v1", "DaemonSet", Decoding.TYPED, "kube-proxy", since=Minor(1, 37)),
)


def targets_of(version: KubernetesVersion) -> tuple[Target, ...]:
    """Return the targets that kubeadm of this version knows."""
    return tuple(target for target in TARGETS if target.since <= version.as_minor)


def find_target(name: str, version: KubernetesVersion) -> Target:
    """Return the target called `name`."""
    known = {target.name: target for target in targets_of(version)}
    if name not in known:
        near = suggest(name, known)
        raise BadUsage(
            f"{name!r} is not a patch target of Kubernetes {version.as_minor}",
            hint=f"did you mean {near!r}?" if near else f"the targets are {', '.join(known)}",
            error_class="unknown-target",
        )
    return known[name]


def target_of(document: Json, version: KubernetesVersion) -> Target | None:
    """Return the target that a document is an instance of, by its kind and its component label or name."""
    if not isinstance(document, dict):
        return None
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    labels = metadata.get("labels")
    names = {metadata.get("name"), labels.get("component") if isinstance(labels, dict) else None}
    for target in targets_of(version):
        is_of_kind = document.get("apiVersion") == target.api_version and document.get("kind") == target.kind
        if is_of_kind and (target.decoding is Decoding.NONE or names & {target.name, target.object_name}):
            return target
    return None


def refuse_other_target(document: Json, target: Target, version: KubernetesVersion, *, source: str) -> None:
    """Refuse a document that is not what the target stands for: of another kind, or plainly another target's."""
    members = document if isinstance(document, dict) else {}
    hint = f"name the unpatched {target.kind} of {target.name} with -f, or another --target"
    if (members.get("apiVersion"), members.get("kind")) != (target.api_version, target.kind):
        raise BadDocument(
            f"{source} is no {target.kind} of {target.api_version}, which {target.name} is",
            hint=hint,
            error_class="wrong-target",
        )
    other = target_of(document, version)
    if other is not None and other != target:
        raise BadDocument(f"{source} is {other.name}, not {target.name}", hint=hint, error_class="wrong-target")


def instance_patch(original: Json, target: Target) -> Patch | None:
    """Return the patch that kubeadm itself applies after the user's: the node's own container runtime endpoint.

    It comes from the kubelet's instance-config.yaml; the document that a user starts from shows its value.
    """
    endpoint = original.get("containerRuntimeEndpoint") if isinstance(original, dict) else None
    if target.kind != "KubeletConfiguration" or not endpoint:
        return None
    source = Source("instance-config.yaml", f"containerRuntimeEndpoint: {endpoint}\n")
    return Patch(source, PatchType.STRATEGIC, {"containerRuntimeEndpoint": endpoint})


def finish(patched: Json, original: Json, target: Target, schema: Schema) -> Json:
    """Return what kubeadm makes of the patched document; changed in place, so that a trace of it stays true."""
    if target.decoding is Decoding.NONE:
        return patched
    if target.decoding is Decoding.TYPED and isinstance(patched, dict):
        # Decoding into a given type fills in what the text does not say.
        patched["apiVersion"] = patched.get("apiVersion") or target.api_version
        patched["kind"] = patched.get("kind") or target.kind
    api_version, kind = (patched.get("apiVersion"), patched.get("kind")) if isinstance(patched, dict) else (None, None)
    if (api_version, kind) == (target.api_version, target.kind):
        round_trip(patched, target.shape(schema))
        return patched
    other = _api_type(api_version, kind, schema)
    if target.decoding is Decoding.POD and other is not None:
        round_trip(patched, other)
        return original
    raise BadDocument(
        f"the patched {target.name} is of kind {kind!r} ({api_version!r}), not {target.kind}",
        hint="no patch may change apiVersion or kind",
        error_class="typed-decode",
    )


def _api_type(api_version: Json, kind: Json, schema: Schema) -> StructType | None:
    """Return the type of an object of the API, as far as kubeadm's decoder knows it."""
    if not isinstance(api_version, str) or not isinstance(kind, str) or _NO_API_OBJECT.match(api_version):
        return None
    return schema.type_of(api_version, kind)
