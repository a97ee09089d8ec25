"""Arguments, environment variables and mounts of a container: kubeadm's own, merged with the user's."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

from garboard.documents import Json
from garboard.manifests.node import EXTRA_CA_DIRECTORIES, ControlPlaneNode
from garboard.manifests.sources import ConfigField, HostFact, ValueSource, cluster_field
from garboard.model import KubernetesVersion
from garboard.model.component import Arg, EnvVar, ExternalEtcd, HostPathMount
from garboard.model.go import parent_of
from garboard.schema import load_schema, round_trip
from garboard.values import dataclass

CA_CERTIFICATES_DIR = "/etc/ssl/certs"


@dataclass(frozen=True, slots=True)
class Argument:
    """One `--name=value`, and what decided its value; no source means a default of the minor."""

    name: str
    value: str
    source: ValueSource | None = None

    def __str__(self) -> str:
        return f"--{self.name}={self.value}"


def merged_arguments(
    defaults: Iterable[Argument], extra: Sequence[Arg], extra_field: ConfigField
) -> tuple[Argument, ...]:
    """Return the defaults sorted by name, then the extra arguments in their order, repeats kept.

    A default that an extra argument names is dropped. Where the last of that name has a merge method (API v1), the
    default stays in its place with that value joined to it, and arguments that have one are not listed again.
    """
    last = {arg.name: (index, arg) for index, arg in enumerate(extra)}
    kept: list[Argument] = []
    for default in sorted(defaults, key=lambda each: (each.name, each.value)):
        index, arg = last.get(default.name, (0, None))
        if arg is None:
            kept.append(default)
        elif arg.merge_method:
            kept.append(replace(default, value=merge_value(default.value, arg), source=extra_field / index))
    added = (Argument(arg.name, arg.value, extra_field / i) for i, arg in enumerate(extra) if not arg.merge_method)
    return (*kept, *added)


def merge_value(default: str, arg: Arg) -> str:
    """Return kubeadm's own value joined with that of an argument, without a separator."""
    match arg.merge_method:
        case "append":
            return default + arg.value
        case "prepend":
            return arg.value + default
        case _:
            return arg.value


def last_arg(args: Sequence[Arg], name: str) -> tuple[int, Arg] | None:
    """Return the last argument of that name, which is the one that counts for the component, and its index."""
    found = [(index, arg) for index, arg in enumerate(args) if arg.name == name]
    return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable, and what decided its value."""

    variable: EnvVar
    source: ValueSource

    def document(self) -> dict[str, Json]:
        document: dict[str, Json] = {"name": self.variable.name}
        if self.variable.value:
            document["value"] = self.variable.value
        if self.variable.value_from is not None:
            document["valueFrom"] = self.variable.value_from
        return document


def proxy_variables(environment: Mapping[str, str]) -> tuple[Variable, ...]:
    """Return the variables that set a proxy, in any case: everything that ends in `_proxy` and is not empty."""
    return tuple(
        Variable(EnvVar(name, value), HostFact(f"environment variable {name}"))
        for name, value in sorted(environment.items())
        if name.lower().endswith("_proxy") and value
    )


def extra_variables(envs: tuple[EnvVar, ...], field: ConfigField, version: KubernetesVersion) -> tuple[Variable, ...]:
    return tuple(Variable(_encoded(env, version), field / index) for index, env in enumerate(envs))


def _encoded(env: EnvVar, version: KubernetesVersion) -> EnvVar:
    """Return the variable with its source as Go writes it: quantities in their canonical form, and never left out."""
    if env.value_from is None:
        return env
    source = deepcopy(env.value_from)
    round_trip(source, load_schema(version).type_named("core/v1.EnvVarSource"))
    return replace(env, value_from=source)


def merged_variables(*lists: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Return the variables sorted by name; a later one of the same name replaces an earlier."""
    by_name = {each.variable.name: each for variables in lists for each in variables}
    return tuple(by_name[name] for name in sorted(by_name))


@dataclass(frozen=True, slots=True)
class PodMount:
    """A host path as a volume of the pod, together with its place in the container."""

    mount: HostPathMount
    source: ValueSource | None = None

    def volume_document(self) -> dict[str, Json]:
        return {
            "name": self.mount.name,
            "hostPath": {"path": self.mount.host_path, "type": self.mount.path_type},
        }

    def mount_document(self) -> dict[str, Json]:
        document: dict[str, Json] = {"name": self.mount.name, "mountPath": self.mount.mount_path}
        if self.mount.read_only:
            document["readOnly"] = True
        return document


def same_path(name: str, path: str, path_type: str = "DirectoryOrCreate", *, read_only: bool = True) -> HostPathMount:
    """A host path that the container sees at the same place."""
    return HostPathMount(name, path, path, read_only=read_only, path_type=path_type)


def certificate_mounts(node: ControlPlaneNode) -> tuple[PodMount, ...]:
    """The cluster's certificates, and those of the machine's own authorities wherever its distribution keeps them."""
    found = (path for path in EXTRA_CA_DIRECTORIES if path in node.host.ca_directories)
    extra = (
        PodMount(same_path(path[1:].replace("/", "-"), path), HostFact(f"directory {path} exists")) for path in found
    )
    certificates = same_path("k8s-certs", node.cluster.certificates_dir)
    return (
        PodMount(certificates, cluster_field("certificatesDir")),
        PodMount(same_path("ca-certs", CA_CERTIFICATES_DIR)),
        *extra,
    )


def kubeconfig_mount(path: str) -> PodMount:
    return PodMount(same_path("kubeconfig", path, "FileOrCreate"))


def extra_mounts(volumes: tuple[HostPathMount, ...], field: ConfigField) -> tuple[PodMount, ...]:
    return tuple(PodMount(volume, field / index) for index, volume in enumerate(volumes))


def merged_mounts(*lists: Iterable[PodMount]) -> tuple[PodMount, ...]:
    """Return the mounts sorted by name; a later one of the same name replaces an earlier."""
    by_name = {each.mount.name: each for mounts in lists for each in mounts}
    return tuple(by_name[name] for name in sorted(by_name))


def external_etcd_mounts(etcd: ExternalEtcd, certificates_dir: str) -> tuple[PodMount, ...]:
    """The folders of the client certificates, unless they are mounted anyway or lie in one another."""
    known = (*EXTRA_CA_DIRECTORIES, CA_CERTIFICATES_DIR, certificates_dir)
    folders: set[str] = set()
    for path in (etcd.ca_file, etcd.cert_file, etcd.key_file):
        folder = parent_of(path)
        # By text, as kubeadm compares: /etc/etcd counts as lying in /etc/e.
        if folder == "." or folder.startswith(known):
            continue
        is_inside = any(folder.startswith(each) and not each.startswith(folder) for each in folders)
        folders = {each for each in folders if not each.startswith(folder)}
        if not is_inside:
            folders.add(folder)
    source = cluster_field("etcd", "external")
    return tuple(PodMount(same_path(f"etcd-certs-{n}", folder), source) for n, folder in enumerate(sorted(folders)))
