"""The checks of the machine itself: what it has, what is in the way, what runs."""

import re
from collections.abc import Iterator, Sequence

from garboard.errors import GarboardError
from garboard.model.component import ExternalEtcd
from garboard.model.minors import MinorFacts
from garboard.model.version import KubernetesVersion
from garboard.phases.preflight.exam import Exam
from garboard.phases.preflight.outcome import Check

_MIN_CPUS, _MIN_MEMORY_MIB = 2, 1700
_NODE_NAME = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
# Until which minor kubelets put up with a runtime that does not tell its cgroup driver.
_DRIVER_FALLBACK_ENDS = {36: "1.37", 37: "1.38"}

Found = Iterator[tuple[str, bool]]


def privileged_user() -> Check:
    def look(exam: Exam) -> Found:
        if exam.user_id() != 0:
            yield "this is not run as root", True

    return Check("IsPrivilegedUser", look)


def enough_cpus() -> Check:
    def look(exam: Exam) -> Found:
        if (count := exam.cpu_count()) < _MIN_CPUS:
            yield f"there are {count} CPUs available, and a control plane needs {_MIN_CPUS}", True

    return Check("NumCPU", look)


def enough_memory() -> Check:
    def look(exam: Exam) -> Found:
        if (size := exam.memory_mib()) < _MIN_MEMORY_MIB:
            yield f"the machine has {size} MB of memory, and a control plane needs {_MIN_MEMORY_MIB} MB", True

    return Check("Mem", look)


def port_is_free(port: int, address: str = "") -> Check:
    def look(exam: Exam) -> Found:
        if not exam.can_listen(address, port):
            where = f" (at {address})" if address else ""
            yield f"port {port} is in use{where}", True

    return Check(f"Port-{port}", look)


def file_is_available(path: str) -> Check:
    def look(exam: Exam) -> Found:
        if exam.exists(path):
            yield f"{path} exists already", True

    return Check(f"FileAvailable-{_dashed(path)}", look)


def folder_is_available(path: str) -> Check:
    def look(exam: Exam) -> Found:
        if exam.entries(path):
            yield f"{path} is not empty", True

    return Check(f"DirAvailable-{_dashed(path)}", look)


def file_says_one(path: str) -> Check:
    def look(exam: Exam) -> Found:
        content = exam.read(path)
        if content is None:
            yield f"{path} does not exist", True
        elif content[:1] != b"1":
            yield f"{path} is not set to 1", True

    return Check(f"FileContent-{_dashed(path)}", look)


def program_is_there(name: str) -> Check:
    def look(exam: Exam) -> Found:
        if not exam.has_program(name):
            yield f"the program {name} is not on PATH", True

    return Check(f"FileExisting-{name}", look)


def file_is_there(path: str, name: str) -> Check:
    def look(exam: Exam) -> Found:
        if not exam.exists(path):
            yield f"{path} does not exist", True

    return Check(name, look)


def runtime_is_ready(socket: str) -> Check:
    def look(exam: Exam) -> Found:
        if problem := exam.runtime(socket).problem:
            yield f"the container runtime at {socket} is not ready: {problem}", True

    return Check("CRI", look)


def runtime_tells_cgroup_driver(socket: str, minor: int) -> Check:
    def look(exam: Exam) -> Found:
        if not exam.runtime(socket).has_runtime_config:
            ends = _DRIVER_FALLBACK_ENDS[minor]
            told = "the container runtime does not tell its cgroup driver (RuntimeConfig of the CRI)"
            yield f"{told}, so the kubelet uses its own setting; kubelets of {ends} will not: update the runtime", False

    return Check("ContainerRuntimeVersion", look)


def swap_is_off() -> Check:
    def look(exam: Exam) -> Found:
        if len((exam.read("/proc/swaps") or b"").splitlines()) > 1:
            yield "swap is on, which only works with cgroup v2 and a kubelet that is configured for it", False

    return Check("Swap", look)


def node_name_works(name: str) -> Check:
    def look(exam: Exam) -> Found:
        if not _NODE_NAME.fullmatch(name):
            yield f"{name!r} is no good name for a node", False
        try:
            exam.resolve(name)
        except GarboardError as error:
            yield f"the host name {name!r} does not resolve: {error.message}", False

    return Check("Hostname", look)


def kubelet_fits(facts: MinorFacts, control_plane: KubernetesVersion | None) -> Check:
    """The kubelet is not too old for kubeadm of the minor, nor newer than the control plane, if that is known."""

    def look(exam: Exam) -> Found:
        text = exam.kubelet_version()
        version = KubernetesVersion.parse(text.partition("-")[0].partition("+")[0])
        if version.as_minor < facts.minimum_kubelet:
            yield f"the kubelet is {text}, and has to be {facts.minimum_kubelet} at least", True
        elif control_plane is not None and version.as_minor > control_plane.as_minor:
            yield f"the kubelet is {text}, newer than the control plane, which is {control_plane}", True

    return Check("KubeletVersion", look)


def service_is_enabled(service: str) -> Check:
    def look(exam: Exam) -> Found:
        if not exam.has_service_manager():
            yield "there is no service manager that is known here (systemd, OpenRC)", False
        elif not exam.has_service(service):
            yield f"there is no service {service}", False
        elif not exam.is_enabled(service):
            yield f"the service {service} does not start with the machine: systemctl enable {service}", False

    return Check(f"Service-{service}", look)


def firewall_is_open(ports: Sequence[int]) -> Check:
    def look(exam: Exam) -> Found:
        if not exam.has_service_manager():
            yield "there is no service manager that is known here (systemd, OpenRC)", False
        elif exam.is_active("firewalld"):
            yield f"firewalld is active: let the ports {', '.join(map(str, ports))} through", False

    return Check("Firewalld", look)


def external_etcd_fits(etcd: ExternalEtcd, minimum: str) -> Check:
    def look(exam: Exam) -> Found:
        for endpoint in etcd.http_endpoints or etcd.endpoints:
            try:
                version = exam.etcd_version(etcd, endpoint)
            except GarboardError as error:
                yield f"{endpoint} does not tell its version: {error.message}", True
                continue
            if _numbers(version) < _numbers(minimum.partition("-")[0]):
                yield f"etcd at {endpoint} is {version}, and has to be {minimum.partition('-')[0]} at least", True

    return Check("ExternalEtcdVersion", look)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall("[0-9]+", version)[:3])


def _dashed(path: str) -> str:
    return path.replace("/", "-")
