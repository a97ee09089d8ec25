"""`reset phase cleanup-node`: the kubelet stops, its pods go, and so do the files of init and join."""

from collections.abc import Iterator

from garboard.engine import (
    ControlService,
    EmptyFolder,
    Note,
    RemoveFile,
    RemoveSandboxes,
    Step,
    Tell,
    Unmount,
    WriteFile,
)
from garboard.errors import NotReady
from garboard.manifests.paths import KUBELET_DIR, KUBERNETES_DIR, MANIFESTS_DIR
from garboard.manifests.rootless_users import without_users
from garboard.model.cluster import DEFAULT_CERTIFICATES_DIR
from garboard.phases.reset.context import REMOVE_MEMBER, ResetContext
from garboard.phases.reset.etcd import plan_data

TMP_DIR = f"{KUBERNETES_DIR}/tmp"
KUBECONFIGS = tuple(
    f"{KUBERNETES_DIR}/{name}.conf"
    for name in ("admin", "super-admin", "kubelet", "bootstrap-kubelet", "controller-manager", "scheduler")
)
# A certificate folder may be anywhere, but none of these is one.
_NEVER_EMPTIED = frozenset((
    "/", "/bin", "/boot", "/dev", "/etc", "/etc/kubernetes", "/etc/pki", "/etc/ssl", "/etc/ssl/certs", "/home", "/lib",
    "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr",
    "/usr/local", "/usr/share", "/var", "/var/lib", "/var/log",
))  # fmt: skip
_LEFT = """
What reset does not touch, and you may want to remove by hand:

  the Node object                kubectl delete node {node}   (on another machine)
  CNI configuration              /etc/cni/net.d
  rules of kube-proxy and CNI    nft or iptables; a restart of the machine removes them
  kubeconfigs of people          $HOME/.kube/config
  the story of garboard's runs   /var/lib/garboard
"""


def plan_cleanup(context: ResetContext) -> Iterator[Step | Note]:
    """Plan in an order in which nobody writes what has just been removed."""
    steps = [*_plan_stop(context), *_plan_files(context)]
    yield from steps
    if any(isinstance(each, Step) for each in steps):
        yield Step(Tell(about="what reset leaves", text=_LEFT.format(node=context.node_name)), "")


def _plan_stop(context: ResetContext) -> Iterator[Step | Note]:
    machine = context.machine
    if not machine.has_service_manager():
        yield Note("no service manager is found: make sure yourself that the kubelet does not run", is_warning=True)
    elif machine.is_active("kubelet"):
        yield Step(ControlService(service="kubelet", verb="stop"), "it would start its pods again")
    if not context.has_runtime:
        socket = context.config.cri_socket or "any known socket"
        yield Note(f"no container runtime answers at {socket}: containers are left as they are", is_warning=True)
    elif machine.entries(KUBELET_DIR) or machine.entries(MANIFESTS_DIR):
        yield Step(RemoveSandboxes(), "the pods of this node")
    if machine.entries(KUBELET_DIR):
        yield Step(Unmount(path=KUBELET_DIR, flags=context.config.unmount_flags), "volumes of pods")


def _plan_files(context: ResetContext) -> Iterator[Step | Note]:
    config, machine = context.config, context.machine
    if REMOVE_MEMBER in context.selected:
        yield from plan_data(context)
    if config.certificates_dir != DEFAULT_CERTIFICATES_DIR:
        yield from _plan_own_certificates(config.certificates_dir)
    folders = (MANIFESTS_DIR, KUBELET_DIR, config.certificates_dir, *((TMP_DIR,) if config.cleanup_tmp_dir else ()))
    for folder in folders:
        if machine.entries(folder):
            yield Step(EmptyFolder(path=folder), "")
    for path in KUBECONFIGS:
        if machine.read(path) is not None:
            yield Step(RemoveFile(path=path), "")
    yield from _plan_users(context)


def _plan_own_certificates(folder: str) -> Iterator[Note]:
    if folder.rstrip("/") in _NEVER_EMPTIED or not folder.strip("/"):
        raise NotReady(
            f"{folder} is a folder of the system, and would be emptied as the folder of certificates",
            hint="name the folder that holds nothing but this cluster's certificates with --cert-dir",
        )
    yield Note(f"everything in {folder} goes, for it was named as the folder of certificates", is_warning=True)


def _plan_users(context: ResetContext) -> Iterator[Step]:
    """Plan to take the users of RootlessControlPlane out of the system's files again."""
    for path in ("/etc/passwd", "/etc/group"):
        text = (context.machine.read(path) or b"").decode("utf-8", "surrogateescape")
        kept = without_users(text)
        if kept != text:
            content = kept.encode("utf-8", "surrogateescape")
            yield Step(WriteFile(path=path, content=content, mode=0o644), "users of RootlessControlPlane")
