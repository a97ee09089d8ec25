"""Rendered files and objects as values, functions that make the small objects (ConfigMaps, RBAC), and `Patcher`."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from garboard.documents import DocumentPath, Json
from garboard.manifests.sources import ValueSource, ValueSources
from garboard.model import KubernetesVersion
from garboard.schema import load_schema, round_trip
from garboard.values import dataclass

RBAC_GROUP = "rbac.authorization.k8s.io"
RBAC_API = f"{RBAC_GROUP}/v1"
KUBE_SYSTEM, KUBE_PUBLIC = "kube-system", "kube-public"
NODES_GROUP = "system:nodes"
BOOTSTRAP_GROUP = "system:bootstrappers:kubeadm:default-node-token"
CONFIG_HASH_ANNOTATION = "kubeadm.kubernetes.io/component-config.hash"


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file to write; `directory_mode` is for its folder, should that have to be made."""

    path: str
    content: bytes
    mode: int
    directory_mode: int = 0o700


@dataclass(frozen=True, slots=True)
class ClusterObject:
    """An object of the API server; `namespace` is empty for one that belongs to the whole cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str
    content: dict[str, Json] = field(repr=False)  # a Secret is an object too
    sources: ValueSources = field(default_factory=ValueSources)


def new_object(content: dict[str, Json], sources: Mapping[DocumentPath, ValueSource] | None = None) -> ClusterObject:
    """Make an object that is named by its content; `sources` say what decided which of its fields."""
    metadata = content["metadata"]
    assert isinstance(metadata, dict)
    texts = (content["apiVersion"], content["kind"], metadata.get("namespace", ""), metadata["name"])
    api_version, kind, namespace, name = map(str, texts)
    return ClusterObject(api_version, kind, namespace, name, content, ValueSources(sources or {}))


def _metadata(name: str, namespace: str, **more: Json) -> dict[str, Json]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


def config_map(
    name: str,
    namespace: str,
    data: Mapping[str, str],
    *,
    is_signed: bool = False,
    labels: Json = None,
    sources: Mapping[str, ValueSource] | None = None,
) -> ClusterObject:
    """A ConfigMap; signed ones carry a hash, by which kubeadm tells its own configuration from a user's.

    `sources` say what decided the value of which key.
    """
    annotations: Json = {CONFIG_HASH_ANNOTATION: data_hash(data)} if is_signed else None
    more = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return new_object(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _metadata(name, namespace, **more),
            "data": dict(data),
        },
        {("data", key): source for key, source in (sources or {}).items()},
    )


def data_hash(data: Mapping[str, str]) -> str:
    """Return the hash that kubeadm writes beside configuration that it generated: over all values, by key."""
    return "sha256:" + hashlib.sha256("".join(data[key] for key in sorted(data)).encode()).hexdigest()


def encoded(document: Json, version: KubernetesVersion) -> dict[str, Json]:
    """Return a document, changed in place, as Go encodes it: with the fields that are never left out."""
    assert isinstance(document, dict)
    shape = load_schema(version).type_of(str(document["apiVersion"]), str(document["kind"]))
    assert shape is not None, f"the type data lacks {document['kind']}"
    round_trip(document, shape)
    return document


def service_account(name: str) -> ClusterObject:
    return new_object({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(name, KUBE_SYSTEM)})


@dataclass(frozen=True, slots=True)
class Subject:
    kind: str
    name: str
    namespace: str = ""

    def document(self) -> dict[str, Json]:
        document: dict[str, Json] = {"kind": self.kind, "name": self.name}
        return {**document, "namespace": self.namespace} if self.namespace else document


def group(name: str) -> Subject:
    return Subject("Group", name)


def user(name: str) -> Subject:
    return Subject("User", name)


def account(name: str) -> Subject:
    return Subject("ServiceAccount", name, KUBE_SYSTEM)


def rule(resources: Sequence[str], verbs: Sequence[str], *, names: Sequence[str] = (), api_group: str = "") -> Json:
    found: dict[str, Json] = {"apiGroups": [api_group], "resources": [*resources], "verbs": [*verbs]}
    return {**found, "resourceNames": [*names]} if names else found


def role(name: str, rules: Iterable[Json], namespace: str = "") -> ClusterObject:
    """A Role, or a ClusterRole if no namespace is given."""
    kind = "Role" if namespace else "ClusterRole"
    return new_object({"apiVersion": RBAC_API, "kind": kind, "metadata": _metadata(name, namespace), "rules": [*rules]})


def binding(name: str, role_name: str, subjects: Iterable[Subject], namespace: str = "") -> ClusterObject:
    """A RoleBinding, or a ClusterRoleBinding if no namespace is given."""
    prefix = "" if namespace else "Cluster"
    return new_object(
        {
            "apiVersion": RBAC_API,
            "kind": f"{prefix}RoleBinding",
            "metadata": _metadata(name, namespace),
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": f"{prefix}Role", "name": role_name},
            "subjects": [subject.document() for subject in subjects],
        }
    )


def readable_by(
    name: str, namespace: str, object_name: str, subjects: Iterable[Subject], resource: str = "configmaps"
) -> tuple[ClusterObject, ClusterObject]:
    """Return a Role that may read one object, and the binding that gives it to `subjects`."""
    rules = [rule([resource], ["get"], names=[object_name])]
    return role(name, rules, namespace), binding(name, name, subjects, namespace)


class Patcher(Protocol):
    """Applies the patches of one target, as kubeadm does; `document` may be changed in place.

    `phases.patching` implements it.
    """

    def __call__(self, target: str, document: Json, /) -> Json: ...


def unpatched(_target: str, document: Json, /) -> Json:
    """The patcher for a node without patches."""
    return document
