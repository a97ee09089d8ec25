"""Which folders reset empties: those of Kubernetes, and others if they hold nothing but what kubeadm makes.

A path is judged by where it leads: links, `..` and repeated slashes are resolved first. What is planned is that place,
and a link that comes into its path later is refused.
"""

from collections.abc import Iterator
from dataclasses import replace

from garboard.engine import EmptyFolder, Note, Step
from garboard.errors import NotReady
from garboard.model.folder_names import is_covered, is_covered_whole
from garboard.model.paths import KUBELET_DIR, KUBERNETES_DIR
from garboard.phases.node.context import MachineView
from garboard.pki import CERTIFICATES
from garboard.values import dataclass

_MOST_NAMED = 10  # of what does not belong there
# Nothing of these is ever meant, whatever is in them and whoever allows it. /bin and /lib lead to /usr by now.
_NEVER_EMPTIED = frozenset((
    "/", "/bin", "/boot", "/dev", "/etc", "/etc/kubernetes", "/etc/pki", "/etc/ssl", "/etc/ssl/certs", "/home", "/lib",
    "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/bin",
    "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin", "/usr/share", "/var", "/var/cache", "/var/lib",
    "/var/lib/garboard", "/var/log", "/var/spool", "/var/tmp",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class FolderRole:
    """What a folder is for: where it may be emptied whatever it holds, and the names that belong into it elsewhere."""

    title: str
    homes: tuple[str, ...]
    names: tuple[str, ...] = ()
    is_quiet: bool = True  # no service of the node writes into it

    def is_home(self, place: str, mount: str) -> bool:
        """Say whether a place is in a home, and not in something that is mounted there, whose files are elsewhere.

        `mount` is where that is mounted in which the place is.
        """
        homes = [home for home in self.homes if f"{place}/".startswith(f"{home}/")]
        return bool(homes) and bool(mount) and not any(mount.startswith(f"{home}/") for home in homes)


_HOMES = (KUBERNETES_DIR, KUBELET_DIR)
CERTIFICATES_ROLE = FolderRole(
    "the folder of certificates",
    _HOMES,
    (*(f"{each.base_name}.{end}" for each in CERTIFICATES for end in ("crt", "key", "csr")), "sa.key", "sa.pub"),
)
MANIFESTS_ROLE = FolderRole(
    "the folder of manifests",
    _HOMES,
    tuple(f"{each}.yaml" for each in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")),
)
KUBELET_ROLE = FolderRole(
    "the folder of the kubelet",
    _HOMES,
    (
        "actuated_pods_state", "allocated_pods_state", "checkpoints/", "config.yaml", "cpu_manager_state",
        "device-plugins/", "dra_manager_state", "graceful_node_shutdown_state", "image_manager/",
        "instance-config.yaml", "kubeadm-flags.env", "lost+found/", "memory_manager_state", "pki/", "plugins/",
        "plugins_registry/", "pod-resources/", "pods/", "seccomp/",
    ),
    is_quiet=False,
)  # fmt: skip
MEMBER_ROLE = FolderRole("the data of the member of etcd", ("/var/lib/etcd",), ("snap/", "wal/"), is_quiet=False)
TEMPORARY_ROLE = FolderRole("the folder of temporary files", _HOMES)


def plan_emptying(
    machine: MachineView, path: str, role: FolderRole, *, allowed: frozenset[str], cause: str = ""
) -> Iterator[Step | Note]:
    """Plan to empty a folder, if anything is in it; one that holds what does not belong there is refused.

    `allowed` are the places, resolved, that the user said may be emptied whatever they hold.
    """
    place = machine.resolve(path)
    if place in _NEVER_EMPTIED:
        raise NotReady(
            f"{_shown(path, place)} is a folder of the system, and would be emptied as {role.title}",
            hint="name the folder that holds nothing but this cluster's certificates with --cert-dir",
        )
    if not machine.entries(place):
        return
    mount = machine.mount_point(place)
    guarded = EmptyFolder(path=place, is_resolved=True, is_quiet=role.is_quiet, mount=mount)
    if role.is_home(place, mount) or place in allowed:
        if place in allowed:
            yield Note(f"everything in {place} goes, for --allow-path names it", is_warning=True)
        yield Step(guarded, cause)
        return
    if found := sorted(_foreign(machine, place, role.names)):
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise NotReady(
            f"{_shown(path, place)} would be emptied as {role.title}, and holds what kubeadm does not make: "
            f"{', '.join(found[:_MOST_NAMED])}{more}",
            hint=f"move these away; or, if all of it shall go, pass --allow-path {place}; --force does not allow it",
            error_class="foreign-files",
        )
    yield Step(replace(guarded, only=role.names), cause)


def _shown(path: str, place: str) -> str:
    return path if path == place else f"{path} ({place})"


def _foreign(machine: MachineView, place: str, names: tuple[str, ...], prefix: str = "") -> Iterator[str]:
    """Yield the paths in a folder that do not belong there."""
    for name in machine.entries(f"{place}/{prefix}".rstrip("/")):
        path = f"{prefix}{name}"
        whole = f"{place}/{path}"
        is_folder = machine.has_folder(whole) and machine.resolve(whole) == whole  # a link to a folder is none
        if not is_covered(f"{path}/" if is_folder else path, names):
            yield path
        elif is_folder and not is_covered_whole(path, names):
            yield from _foreign(machine, place, names, f"{path}/")
