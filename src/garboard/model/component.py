"""What users may change of a static pod: arguments, volumes, environment; and the labels of a container image."""

from collections.abc import Iterable
from typing import Literal

from garboard.values import Json, dataclass

MergeMethod = Literal["", "append", "prepend"]


@dataclass(frozen=True, slots=True)
class Arg:
    """One command line argument without its dashes; a name may repeat."""

    name: str
    value: str
    merge_method: MergeMethod = ""  # empty: the value replaces kubeadm's own of that name


def arg_value(args: Iterable[Arg], name: str) -> str | None:
    """Return the value of the last argument called `name`, as the component itself would take it."""
    found = None
    for arg in args:
        if arg.name == name:
            found = arg.value
    return found


@dataclass(frozen=True, slots=True)
class EnvVar:
    """An environment variable; `value_from` is the JSON of core/v1 EnvVarSource, defaults filled in."""

    name: str
    value: str = ""
    value_from: Json = None


@dataclass(frozen=True, slots=True)
class HostPathMount:
    name: str
    host_path: str
    mount_path: str
    read_only: bool = False
    path_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneComponent:
    """Changes to kube-controller-manager, kube-scheduler or, with names for its certificate, kube-apiserver."""

    extra_args: tuple[Arg, ...] = ()
    extra_volumes: tuple[HostPathMount, ...] = ()
    extra_envs: tuple[EnvVar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer(ControlPlaneComponent):
    cert_sans: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEtcd:
    """An etcd member that runs as a static pod on every control-plane node."""

    image_repository: str = ""
    image_tag: str = ""
    data_dir: str = "/var/lib/etcd"
    extra_args: tuple[Arg, ...] = ()
    extra_envs: tuple[EnvVar, ...] = ()
    server_cert_sans: tuple[str, ...] = ()
    peer_cert_sans: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalEtcd:
    """An etcd cluster that does not run on the control-plane nodes."""

    endpoints: tuple[str, ...]
    http_endpoints: tuple[str, ...] = ()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dns:
    image_repository: str = ""
    image_tag: str = ""
    disabled: bool = False
