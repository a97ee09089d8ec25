"""Reading what `lab up` was given: the user's configuration documents and patches, held against what a lab needs."""

from collections.abc import Sequence
from pathlib import Path

from garboard.documents import Json, read_stream
from garboard.lab.creation import Order
from garboard.lab.kubeadm import Needs, check_kubelet_patch, pod_subnet_of, sort_documents
from garboard.lab.machine import Machine
from garboard.lab.merge import Conflict, refuse
from garboard.lab.topology import DEFAULT_POD_SUBNET, Bootstrap, plan_lab
from garboard.model import KubernetesVersion


def read_order(
    machine: Machine,
    *,
    name: str,
    version: str,
    by: Bootstrap,
    control_planes: int,
    workers: int,
    config: Path | None = None,
    patches: Path | None = None,
    also: Sequence[str] = (),
) -> Order:
    """Turn the arguments of `lab up` into an order, or refuse them with everything that is wrong."""
    yours = sort_documents(_read_documents(machine, config)) if config else {}
    lab = plan_lab(
        name, KubernetesVersion.parse(version), by, control_planes=control_planes, workers=workers,
        pod_subnet=pod_subnet_of(yours) or DEFAULT_POD_SUBNET,
        also=tuple(map(KubernetesVersion.parse, also)),
    )  # fmt: skip
    if patches:
        refuse(_patch_conflicts(machine, patches), f"a patch in {patches}")
    return Order(lab, yours, _read_folder(machine, patches) if patches else {})


def _read_documents(machine: Machine, path: Path) -> list[tuple[Json, str]]:
    documents = read_stream(machine.read_file(path), source=str(path))
    return [(each.value, f"{path}:{each.line}") for each in documents]


def _read_folder(machine: Machine, folder: Path) -> dict[str, bytes]:
    return {path.name: machine.read_file(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _patch_conflicts(machine: Machine, folder: Path) -> list[Conflict]:
    # Whatever the machine has, a patch that asks for cgroup v1 to be refused has no place in a lab.
    needs = Needs(is_cgroup_v1=True, proxy_mode="nftables")
    conflicts: list[Conflict] = []
    for path in sorted(folder.glob("kubeletconfiguration*")):
        for document, place in _read_documents(machine, path):
            conflicts += check_kubelet_patch(document, place, needs)
    return conflicts
