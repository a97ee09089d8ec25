"""What patches are for: a type, or one of the targets that kubeadm of a minor lets patches customize."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from garboard.documents import Json
from garboard.errors import BadDocument, BadUsage
from garboard.model import KubernetesVersion
from garboard.model.minors import facts_of
from garboard.patches.patch import Patch, PatchType, SourceText
from garboard.schema import Schema, StructType, suggest
from garboard.schema.round_trip import round_trip


class Decoding(StrEnum):
    """What kubeadm does with the patched text."""

    POD = "pod"  # into the Pod type and out again; a document of another kind is quietly discarded
    TYPED = "typed"  # into its type and out again, before it is sent to the API server
    NONE = "none"  # written as it is


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
    component: str | None = None  # the program that it runs, if its flags and feature gates are known here

    def shape(self, schema: Schema) -> StructType:
        found = schema.type_of(self.api_version, self.kind)
        assert found is not None, f"the type data lacks {self.kind}"
        return found


_POD = ("v1", "Pod", Decoding.POD)
# In the order of kubeadm's messages; which of them a minor knows, its row says.
TARGETS = (
    Target("etcd", *_POD, component="etcd"),
    Target("kube-apiserver", *_POD, component="kube-apiserver"),
    Target("kube-controller-manager", *_POD, component="kube-controller-manager"),
    Target("kube-scheduler", *_POD, component="kube-scheduler"),
    Target("kubeletconfiguration", "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", Decoding.NONE),
    Target("corednsdeployment", "apps/v1", "Deployment", Decoding.TYPED, "coredns"),
    Target("kubeproxydaemonset", "apps/v1", "DaemonSet", Decoding.TYPED, "kube-proxy", "kube-proxy"),
)


def targets_of(version: KubernetesVersion) -> tuple[Target, ...]:
    """Return the targets that kubeadm of this version knows."""
    known = facts_of(version).patch_targets
    return tuple(target for target in TARGETS if target.name in known)


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


def instance_patch(endpoint: Json) -> Patch:
    """Return the patch that kubeadm applies to the kubelet's configuration after the user's: instance-config.yaml.

    It holds the container runtime endpoint, which is the node's own.
    """
    source = SourceText("instance-config.yaml", f"containerRuntimeEndpoint: {endpoint}\n")
    return Patch(source, PatchType.STRATEGIC, {"containerRuntimeEndpoint": endpoint})


@dataclass(frozen=True, slots=True)
class PatchSubject:
    """What patches are for: a type, and one of kubeadm's targets if the document is one."""

    shape: StructType | None  # the type that strategic patches merge by; None if it is not known
    target: Target | None = None
    schema: Schema | None = None  # of the target's minor
    node_patches: tuple[Patch, ...] = ()  # applied after the user's, without findings: the user cannot change them
    is_assumed: bool = False  # the document stands for one of another node, whose names and addresses are not known

    @classmethod
    def of_target(cls, target: Target, schema: Schema, node_patches: tuple[Patch, ...] = ()) -> Self:
        return cls(target.shape(schema), target, schema, node_patches)

    @classmethod
    def of_document(cls, document: Json, target: Target, schema: Schema) -> Self:
        """Return the subject of a target's document, which shows what the node's own values are."""
        endpoint = document.get("containerRuntimeEndpoint") if isinstance(document, dict) else None
        is_own = target.kind == "KubeletConfiguration" and endpoint
        return cls.of_target(target, schema, (instance_patch(endpoint),) if is_own else ())

    @property
    def component(self) -> str | None:
        """The program whose flags and feature gates patches may name."""
        return self.target.component if self.target else None

    @property
    def is_decoded(self) -> bool:
        """Whether kubeadm decodes the patched document into its type, and writes what comes of it."""
        return self.target is not None and self.target.decoding is not Decoding.NONE

    def decoded(self, patched: Json, original: Json) -> Json:
        """Return what kubeadm makes of the patched document; changed in place, so that its trace stays valid."""
        if self.target is None or self.schema is None or self.shape is None or not self.is_decoded:
            return patched
        target = self.target
        if target.decoding is Decoding.TYPED and isinstance(patched, dict):
            # Decoding into a given type fills in what the text does not say.
            patched["apiVersion"] = patched.get("apiVersion") or target.api_version
            patched["kind"] = patched.get("kind") or target.kind
        api_version, kind = _type_names(patched)
        if (api_version, kind) == (target.api_version, target.kind):
            round_trip(patched, self.shape)
            return patched
        other = _api_type(api_version, kind, self.schema)
        if target.decoding is Decoding.POD and other is not None:
            round_trip(patched, other)
            return original
        raise BadDocument(
            f"the patched {target.name} is of kind {kind!r} ({api_version!r}), not {target.kind}",
            hint="no patch may change apiVersion or kind",
            error_class="typed-decode",
        )


def _type_names(document: Json) -> tuple[Json, Json]:
    return (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else (None, None)


def _api_type(api_version: Json, kind: Json, schema: Schema) -> StructType | None:
    """Return the type of an object of the API, as far as kubeadm's decoder knows it."""
    if not isinstance(api_version, str) or not isinstance(kind, str) or _NO_API_OBJECT.match(api_version):
        return None
    return schema.type_of(api_version, kind)
