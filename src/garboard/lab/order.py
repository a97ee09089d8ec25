"""What `lab up` was asked for: nodes, configuration documents and patches, checked against what a lab needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from garboard.documents import Json, read_stream
from garboard.lab.kubeadm import Conflict, Documents, Needs, check_kubelet_patch, pod_subnet_of, refuse, sort_documents
from garboard.lab.machine import LabMachine
from garboard.lab.topology import DEFAULT_POD_SUBNET, Bootstrap, Lab, plan_lab
from garboard.model import KubernetesVersion

# A kubelet that has just started waits up to one period before it first asks whether a container is ready. With the
# usual ten seconds that is most of the time until a new cluster has DNS.
LAB_PATCHES = {
    "corednsdeployment+strategic.yaml": b"""\
spec:
  template:
    spec:
      containers:
        - name: coredns
          readinessProbe:
            periodSeconds: 1
""",
}


@dataclass(frozen=True, slots=True)
class Order:
    """What `lab up` was asked for."""

    lab: Lab
    yours: Documents = field(default_factory=dict)
    patches: Mapping[str, bytes] = field(default_factory=dict)


def read_order(
    machine: LabMachine,
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


def _read_documents(machine: LabMachine, path: Path) -> list[tuple[Json, str]]:
    documents = read_stream(machine.read_file(path), source=str(path))
    return [(each.value, f"{path}:{each.line}") for each in documents]


def _read_folder(machine: LabMachine, folder: Path) -> dict[str, bytes]:
    return {path.name: machine.read_file(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _patch_conflicts(machine: LabMachine, folder: Path) -> list[Conflict]:
    # Whatever the machine has, a patch that asks for cgroup v1 to be refused has no place in a lab.
    needs = Needs(is_cgroup_v1=True, proxy_mode="nftables")
    conflicts: list[Conflict] = []
    for path in sorted(folder.glob("kubeletconfiguration*")):
        for document, place in _read_documents(machine, path):
            conflicts += check_kubelet_patch(document, place, needs)
    return conflicts


def merge_patches(yours: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the patch files for kubeadm; a target that the user patches is the user's alone."""
    patched = {target_of(name) for name in yours}
    return {**{name: text for name, text in LAB_PATCHES.items() if target_of(name) not in patched}, **yours}


def target_of(name: str) -> str:
    """Return the target of a patch file named `target[suffix][+patchtype].extension`."""
    known = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubeletconfiguration",
             "corednsdeployment", "kubeproxydaemonset")  # fmt: skip
    return next((target for target in known if name.startswith(target)), name)
