"""Host paths that static pods see."""

from collections.abc import Iterable
from dataclasses import dataclass

from garboard.documents import Json
from garboard.manifests.node import EXTRA_CA_DIRECTORIES, ControlPlaneNode
from garboard.manifests.sources import ConfigField, HostFact, Source, cluster_field
from garboard.model.component import ExternalEtcd, HostPathMount
from garboard.model.go_paths import parent_of

CA_CERTIFICATES_DIR = "/etc/ssl/certs"


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume of the pod together with its place in the container."""

    mount: HostPathMount
    source: Source | None = None

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


def certificate_mounts(node: ControlPlaneNode) -> tuple[Mount, ...]:
    """The cluster's certificates, and those of the machine's own authorities wherever its distribution keeps them."""
    found = (path for path in EXTRA_CA_DIRECTORIES if path in node.host.ca_directories)
    extra = (Mount(same_path(path[1:].replace("/", "-"), path), HostFact(f"directory {path} exists")) for path in found)
    certificates = same_path("k8s-certs", node.cluster.certificates_dir)
    return (
        Mount(certificates, cluster_field("certificatesDir")),
        Mount(same_path("ca-certs", CA_CERTIFICATES_DIR)),
        *extra,
    )


def kubeconfig_mount(path: str) -> Mount:
    return Mount(same_path("kubeconfig", path, "FileOrCreate"))


def extra_mounts(volumes: tuple[HostPathMount, ...], field: ConfigField) -> tuple[Mount, ...]:
    return tuple(Mount(volume, field / index) for index, volume in enumerate(volumes))


def merged_mounts(*lists: Iterable[Mount]) -> tuple[Mount, ...]:
    """Return the mounts sorted by name; a later one of the same name replaces an earlier."""
    by_name = {each.mount.name: each for mounts in lists for each in mounts}
    return tuple(by_name[name] for name in sorted(by_name))


def external_etcd_mounts(etcd: ExternalEtcd, certificates_dir: str) -> tuple[Mount, ...]:
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
    return tuple(Mount(same_path(f"etcd-certs-{n}", folder), source) for n, folder in enumerate(sorted(folders)))
