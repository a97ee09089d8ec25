"""SystemVerification: the kernel and its control groups, by what kubeadm's validators want of both generations."""

import re
from collections.abc import Iterator

from garboard.errors import GarboardError
from garboard.model.version import KubernetesVersion, Minor
from garboard.phases.preflight.exam import Exam
from garboard.phases.preflight.outcome import Check

_RELEASES = re.compile(r"5\.(4|10|15).*|([6-9]|[1-9][0-9]+)\.[0-9]+\.[0-9]+.*")
_ROOT = "/sys/fs/cgroup"
# A setting may have had another name; each of these is wanted under one of its names.
_REQUIRED: tuple[tuple[str, ...], ...] = (
    ("NAMESPACES",), ("NET_NS",), ("PID_NS",), ("IPC_NS",), ("UTS_NS",), ("CPUSETS",), ("MEMCG",), ("INET",),
    ("EXT4_FS",), ("PROC_FS",), ("NETFILTER_XT_TARGET_REDIRECT", "IP_NF_TARGET_REDIRECT"),
    ("NETFILTER_XT_MATCH_COMMENT",), ("FAIR_GROUP_SCHED",), ("CGROUPS",), ("CGROUP_PIDS",), ("CGROUP_SCHED",),
)  # fmt: skip
_REQUIRED_V1 = (("CGROUP_CPUACCT",), ("CGROUP_DEVICE",), ("CGROUP_FREEZER",))
_REQUIRED_V2 = (("CGROUP_BPF",),)
_CONTROLLERS = ("cpu", "cpuset", "devices", "freezer", "memory", "pids")
_CONTROLLERS_V1 = (*_CONTROLLERS, "cpuacct")
_OPTIONAL_V1, _OPTIONAL_V2 = ("hugetlb", "blkio"), ("hugetlb", "io")
_WITHOUT_V1 = Minor(1, 35)
_LEGACY = "this machine uses cgroup v1, which kubelets of 1.35 and newer refuse"


def system_fits() -> Check:
    def look(exam: Exam) -> Iterator[tuple[str, bool]]:
        kubelet = KubernetesVersion.parse(exam.kubelet_version().partition("-")[0].partition("+")[0])
        release = exam.kernel_release()
        if not _RELEASES.fullmatch(release):
            yield f"the kernel {release} is not supported: 5.4, 5.10, 5.15 and 6.0 or newer are", True
        mount, is_unified = cgroup_mount((exam.read("/proc/mounts") or b"").decode("utf-8", "replace"), exam)
        yield from _kernel_findings(exam, is_unified=is_unified)
        if is_unified:
            yield from _controller_findings(_unified_controllers(mount, exam), _CONTROLLERS, _OPTIONAL_V2)
        else:
            yield f"{_LEGACY} unless failCgroupV1 is false in their configuration", kubelet.as_minor >= _WITHOUT_V1
            yield from _controller_findings(_legacy_controllers(exam), _CONTROLLERS_V1, _OPTIONAL_V1)

    return Check("SystemVerification", look)


def cgroup_mount(mounts: str, exam: Exam) -> tuple[str, bool]:
    """Return where control groups are mounted, and whether that is the unified hierarchy of v2."""
    legacy = ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3 or "cgroup" not in line:
            continue
        _, point, kind = fields[:3]
        if point == _ROOT:
            return point, kind == "cgroup2" or (kind == "tmpfs" and not exam.exists(f"{_ROOT}/memory"))
        if kind == "cgroup2":
            return point, True
        legacy = legacy or (point if kind == "cgroup" else "")
    if not legacy:
        raise GarboardError("no control groups are mounted")
    return legacy, False


def _kernel_findings(exam: Exam, *, is_unified: bool) -> Iterator[tuple[str, bool]]:
    try:
        config = exam.kernel_config()
    except GarboardError as error:
        yield f"the kernel's settings cannot be read: {error.message}", True
        return
    wanted = (*_REQUIRED, *(_REQUIRED_V2 if is_unified else _REQUIRED_V1))
    missing = [names[0] for names in wanted if not any(config.get(f"CONFIG_{name}") in ("y", "m") for name in names)]
    if missing:
        yield f"the kernel lacks {', '.join(f'CONFIG_{name}' for name in missing)}", True


def _controller_findings(
    found: set[str], required: tuple[str, ...], optional: tuple[str, ...]
) -> Iterator[tuple[str, bool]]:
    if missing := [name for name in required if name not in found]:
        yield f"control groups lack the controllers {', '.join(missing)}", True
    if missing := [name for name in optional if name not in found]:
        yield f"control groups lack the controllers {', '.join(missing)}, which some workloads want", False


def _unified_controllers(mount: str, exam: Exam) -> set[str]:
    # Devices and the freezer are part of the kernels that are supported and are not listed; kubeadm makes a group to
    # see the freezer, and a check should leave no trace.
    listed = (exam.read(f"{mount}/cgroup.controllers") or b"").decode().split()
    return {"devices", "freezer", *listed}


def _legacy_controllers(exam: Exam) -> set[str]:
    rows = (line.split() for line in (exam.read("/proc/cgroups") or b"").decode().splitlines() if line[:1] != "#")
    return {fields[0] for fields in rows if len(fields) >= 4 and fields[3] != "0"}
