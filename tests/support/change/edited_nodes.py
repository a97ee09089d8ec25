"""Clusters of which somebody has edited static pods, or the configuration of kubelets, by hand."""

from collections.abc import Callable
from typing import Any

import msgspec

from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import read_yaml, write_yaml
from tests.support.change.snapshots import f1

API_SERVER, KCM, ETCD = "kube-apiserver", "kube-controller-manager", "etcd"
Edit = Callable[[Any], None]


def edited(
    component: str, edit: Edit, *, node: str = "cp1", make: Callable[..., ClusterSnapshot] = f1, **more: Any
) -> ClusterSnapshot:
    """Return a cluster of which somebody has edited a manifest, on one node or on all (`*`); its files were seen."""

    def change(of: str, name: str, text: str) -> str:
        if name != component or node not in ("*", of):
            return text
        document: Any = read_yaml(text, source=name)
        edit(document)
        return write_yaml(document)

    return make(is_seen=True, change_manifest=change, **more)


def container(pod: Any) -> Any:
    return pod["spec"]["containers"][0]


def with_flag(word: str) -> Edit:
    return lambda pod: container(pod)["command"].append(word)


def without_flag(name: str) -> Edit:
    def edit(pod: Any) -> None:
        container(pod)["command"] = [each for each in container(pod)["command"] if not each.startswith(f"--{name}=")]

    return edit


def with_volume(pod: Any) -> None:
    pod["spec"]["volumes"].append({"name": "audit", "hostPath": {"path": "/etc/audit", "type": "Directory"}})
    container(pod)["volumeMounts"].append({"name": "audit", "mountPath": "/etc/audit", "readOnly": True})


def with_sidecar(pod: Any) -> None:
    pod["spec"]["containers"].append({"name": "proxy", "image": "example.com/proxy:1", "args": ["--listen=:1"]})


def with_memory(pod: Any) -> None:
    container(pod)["resources"]["requests"]["memory"] = "512Mi"


EDITS: dict[str, tuple[str, Edit]] = {
    "a flag typed in": (API_SERVER, with_flag("--profiling=false")),
    "a flag taken out": (KCM, without_flag("leader-elect")),
    "a flag twice": (API_SERVER, lambda pod: container(pod)["command"].extend(["--vmodule=a=1", "--vmodule=b=2"])),
    "another image": ("kube-scheduler", lambda pod: container(pod).update(image="example.com/scheduler:1")),
    "a volume": (API_SERVER, with_volume),
    "a container beside it": (API_SERVER, with_sidecar),
    "a request": (ETCD, with_memory),
    "a label": (ETCD, lambda pod: pod["metadata"]["labels"].update(team="x")),
}


def with_variable(pod: Any) -> None:
    container(pod)["env"] = [{"name": "TOKEN", "value": "s3cret"}]


def with_kubelet_line(snapshot: ClusterSnapshot, line: str, *nodes: str) -> ClusterSnapshot:
    """Return a cluster with a line more in the configuration of some kubelets."""
    changed = [
        msgspec.structs.replace(each, kubelet_config=f"{each.kubelet_config}{line}\n") if each.name in nodes else each
        for each in snapshot.nodes
    ]
    return msgspec.structs.replace(snapshot, nodes=changed)
