"""The single checks: what the machine has, what is in use already, what runs, its kernel, and its proxies."""

import re
from collections.abc import Callable, Iterator, Sequence

from garboard.errors import GarboardError
from garboard.model.addresses import address_at
from garboard.model.component import ExternalEtcd
from garboard.model.minors import FIRST_KUBELET_WITHOUT_CGROUP_V1, MinorFacts
from garboard.model.version import KubernetesVersion
from garboard.net.proxies import proxy_for
from garboard.phases.preflight.inspector import MachineInspector
from garboard.values import dataclass

_HTTPS_PORT = 443  # for which kubeadm looks, whatever port is used
_MIN_CPUS, _MIN_MEMORY_MIB = 2, 1700
_NODE_NAME = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
# SystemVerification: the kernel, and its control groups of v1 or v2, as kubeadm's validators check them.
_KERNEL_RELEASES = re.compile(r"5\.(4|10|15).*|([6-9]|[1-9][0-9]+)\.[0-9]+\.[0-9]+.*")
_CGROUP_ROOT = "/sys/fs/cgroup"
# A setting may have been renamed; one of its names must be set.
_SETTINGS: tuple[tuple[str, ...], ...] = (
    ("NAMESPACES",), ("NET_NS",), ("PID_NS",), ("IPC_NS",), ("UTS_NS",), ("CPUSETS",), ("MEMCG",), ("INET",),
    ("EXT4_FS",), ("PROC_FS",), ("NETFILTER_XT_TARGET_REDIRECT", "IP_NF_TARGET_REDIRECT"),
    ("NETFILTER_XT_MATCH_COMMENT",), ("FAIR_GROUP_SCHED",), ("CGROUPS",), ("CGROUP_PIDS",), ("CGROUP_SCHED",),
)  # fmt: skip
_SETTINGS_V1 = (("CGROUP_CPUACCT",), ("CGROUP_DEVICE",), ("CGROUP_FREEZER",))
_SETTINGS_V2 = (("CGROUP_BPF",),)
_CONTROLLERS = ("cpu", "cpuset", "devices", "freezer", "memory", "pids")
_CONTROLLERS_V1 = (*_CONTROLLERS, "cpuacct")
_OPTIONAL_V1, _OPTIONAL_V2 = ("hugetlb", "blkio"), ("hugetlb", "io")
_CGROUP_V1 = f"this machine uses cgroup v1, which kubelets of {FIRST_KUBELET_WITHOUT_CGROUP_V1} and newer refuse"

Found = Iterator[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check by kubeadm's name. It yields (text, is an error) for all that it finds."""

    name: str
    look: Callable[[MachineInspector], Found]


def privileged_user() -> Check:
    def look(inspector: MachineInspector) -> Found:
        if inspector.user_id() != 0:
            yield "this is not run as root", True

    return Check("IsPrivilegedUser", look)


def enough_cpus() -> Check:
    def look(inspector: MachineInspector) -> Found:
        if (count := inspector.cpu_count()) < _MIN_CPUS:
            yield f"there are {count} CPUs available, and a control plane needs {_MIN_CPUS}", True

    return Check("NumCPU", look)


def enough_memory() -> Check:
    def look(inspector: MachineInspector) -> Found:
        if (size := inspector.memory_mib()) < _MIN_MEMORY_MIB:
            yield f"the machine has {size} MB of memory, and a control plane needs {_MIN_MEMORY_MIB} MB", True

    return Check("Mem", look)


def port_is_free(port: int, address: str = "") -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not inspector.can_listen(address, port):
            where = f" (at {address})" if address else ""
            yield f"port {port} is in use{where}", True

    return Check(f"Port-{port}", look)


def file_is_available(path: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if inspector.exists(path):
            yield f"{path} exists already", True

    return Check(f"FileAvailable-{_dashed(path)}", look)


def folder_is_available(path: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if inspector.entries(path):
            yield f"{path} is not empty", True

    return Check(f"DirAvailable-{_dashed(path)}", look)


def file_says_one(path: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        content = inspector.read(path)
        if content is None:
            yield f"{path} does not exist", True
        elif content[:1] != b"1":
            yield f"{path} is not set to 1", True

    return Check(f"FileContent-{_dashed(path)}", look)


def program_is_there(name: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not inspector.has_program(name):
            yield f"the program {name} is not on PATH", True

    return Check(f"FileExisting-{name}", look)


def file_is_there(path: str, name: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not inspector.exists(path):
            yield f"{path} does not exist", True

    return Check(name, look)


def runtime_is_ready(socket: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if problem := inspector.runtime(socket).problem:
            yield f"the container runtime at {socket} is not ready: {problem}", True

    return Check("CRI", look)


def runtime_reports_cgroup_driver(socket: str, facts: MinorFacts) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not inspector.runtime(socket).has_runtime_config:
            ends = facts.cgroup_driver_fallback_ends
            told = "the container runtime does not tell its cgroup driver (RuntimeConfig of the CRI)"
            yield f"{told}, so the kubelet uses its own setting; kubelets of {ends} will not: update the runtime", False

    return Check("ContainerRuntimeVersion", look)


def swap_is_off() -> Check:
    def look(inspector: MachineInspector) -> Found:
        if len((inspector.read("/proc/swaps") or b"").splitlines()) > 1:
            yield "swap is on, which only works with cgroup v2 and a kubelet that is configured for it", False

    return Check("Swap", look)


def node_name_works(name: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not _NODE_NAME.fullmatch(name):
            yield f"{name!r} is no good name for a node", False
        try:
            inspector.resolve(name)
        except GarboardError as error:
            yield f"the host name {name!r} does not resolve: {error.message}", False

    return Check("Hostname", look)


def kubelet_fits(facts: MinorFacts, control_plane: KubernetesVersion | None) -> Check:
    """The kubelet is not too old for kubeadm of the minor, nor newer than the control plane, if that is known."""

    def look(inspector: MachineInspector) -> Found:
        text = inspector.kubelet_version()
        version = KubernetesVersion.parse(text.partition("-")[0].partition("+")[0])
        if version.as_minor < facts.minimum_kubelet:
            yield f"the kubelet is {text}, and has to be {facts.minimum_kubelet} at least", True
        elif control_plane is not None and version.as_minor > control_plane.as_minor:
            yield f"the kubelet is {text}, newer than the control plane, which is {control_plane}", True

    return Check("KubeletVersion", look)


def service_is_enabled(service: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not inspector.has_service_manager():
            yield "there is no service manager that is known here (systemd, OpenRC)", False
        elif not inspector.has_service(service):
            yield f"there is no service {service}", False
        elif not inspector.is_enabled(service):
            yield f"the service {service} does not start with the machine: systemctl enable {service}", False

    return Check(f"Service-{service}", look)


def firewall_is_open(ports: Sequence[int]) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if not inspector.has_service_manager():
            yield "there is no service manager that is known here (systemd, OpenRC)", False
        elif inspector.is_active("firewalld"):
            yield f"firewalld is active: let the ports {', '.join(map(str, ports))} through", False

    return Check("Firewalld", look)


def external_etcd_fits(etcd: ExternalEtcd, minimum: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        for endpoint in etcd.http_endpoints or etcd.endpoints:
            try:
                version = inspector.etcd_version(etcd, endpoint)
            except GarboardError as error:
                yield f"{endpoint} does not tell its version: {error.message}", True
                continue
            if _numbers(version) < _numbers(minimum.partition("-")[0]):
                yield f"etcd at {endpoint} is {version}, and has to be {minimum.partition('-')[0]} at least", True

    return Check("ExternalEtcdVersion", look)


def system_fits(*, allows_cgroup_v1: bool = False) -> Check:
    """Check the kernel and its control groups; the kubelet's configuration may allow those of v1."""

    def look(inspector: MachineInspector) -> Found:
        kubelet = KubernetesVersion.parse(inspector.kubelet_version().partition("-")[0].partition("+")[0])
        release = inspector.kernel_release()
        if not _KERNEL_RELEASES.fullmatch(release):
            yield f"the kernel {release} is not supported: 5.4, 5.10, 5.15 and 6.0 or newer are", True
        mount, is_unified = cgroup_mount((inspector.read("/proc/mounts") or b"").decode("utf-8", "replace"), inspector)
        yield from _kernel_findings(inspector, is_unified=is_unified)
        if is_unified:
            yield from _controller_findings(_unified_controllers(mount, inspector), _CONTROLLERS, _OPTIONAL_V2)
        else:
            is_refused = kubelet.as_minor >= FIRST_KUBELET_WITHOUT_CGROUP_V1 and not allows_cgroup_v1
            yield f"{_CGROUP_V1} unless failCgroupV1 is false in their configuration", is_refused
            yield from _controller_findings(_legacy_controllers(inspector), _CONTROLLERS_V1, _OPTIONAL_V1)

    return Check("SystemVerification", look)


def cgroup_mount(mounts: str, inspector: MachineInspector) -> tuple[str, bool]:
    """Return where control groups are mounted, and whether that is the unified hierarchy of v2."""
    legacy = ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3 or "cgroup" not in line:
            continue
        _, point, kind = fields[:3]
        if point == _CGROUP_ROOT:
            return point, kind == "cgroup2" or (kind == "tmpfs" and not inspector.exists(f"{_CGROUP_ROOT}/memory"))
        if kind == "cgroup2":
            return point, True
        legacy = legacy or (point if kind == "cgroup" else "")
    if not legacy:
        raise GarboardError("no control groups are mounted")
    return legacy, False


def _kernel_findings(inspector: MachineInspector, *, is_unified: bool) -> Found:
    try:
        config = inspector.kernel_config()
    except GarboardError as error:
        yield f"the kernel's settings cannot be read: {error.message}", True
        return
    wanted = (*_SETTINGS, *(_SETTINGS_V2 if is_unified else _SETTINGS_V1))
    missing = [names[0] for names in wanted if not any(config.get(f"CONFIG_{name}") in ("y", "m") for name in names)]
    if missing:
        yield f"the kernel lacks {', '.join(f'CONFIG_{name}' for name in missing)}", True


def _controller_findings(found: set[str], required: tuple[str, ...], optional: tuple[str, ...]) -> Found:
    if missing := [name for name in required if name not in found]:
        yield f"control groups lack the controllers {', '.join(missing)}", True
    if missing := [name for name in optional if name not in found]:
        yield f"control groups lack the controllers {', '.join(missing)}, which some workloads want", False


def _unified_controllers(mount: str, inspector: MachineInspector) -> set[str]:
    # Devices and the freezer are part of the kernels that are supported and are not listed; kubeadm makes a group to
    # see the freezer, and a check should leave no trace.
    listed = (inspector.read(f"{mount}/cgroup.controllers") or b"").decode().split()
    return {"devices", "freezer", *listed}


def _legacy_controllers(inspector: MachineInspector) -> set[str]:
    rows = (line.split() for line in (inspector.read("/proc/cgroups") or b"").decode().splitlines() if line[:1] != "#")
    return {fields[0] for fields in rows if len(fields) >= 4 and fields[3] != "0"}


def no_proxy_to(host: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        if proxy := proxy_for("https", host, _HTTPS_PORT, inspector.environment()):
            yield f"connections to {host} use the proxy {proxy}: add it to NO_PROXY if that is not meant", False

    return Check("HTTPProxy", look)


def no_proxy_to_network(cidr: str) -> Check:
    def look(inspector: MachineInspector) -> Found:
        first = address_at(cidr, 1)
        if first is not None and (proxy := proxy_for("https", str(first), _HTTPS_PORT, inspector.environment())):
            told = f"connections to {cidr} use the proxy {proxy}"
            yield f"{told}; pods and services may not be reached: add it to NO_PROXY", False

    return Check("HTTPProxyCIDR", look)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall("[0-9]+", version)[:3])


def _dashed(path: str) -> str:
    return path.replace("/", "-")
