"""The control plane is well: a static pod of this node, or etcd as a whole."""

from collections.abc import Iterator
from typing import ClassVar

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.model.addresses import join_host_port
from garboard.model.node import Timeouts
from garboard.model.paths import manifest_path
from garboard.phases.gates.evidence import (
    API_SERVER,
    CONTROLLER_MANAGER,
    KUBELET_LOG,
    SCHEDULER,
    clock_lines,
    container_lines,
    containers_of,
    document,
    gather_evidence,
    health_problem,
    newest,
    of_component,
    probe_safely,
)
from garboard.phases.gates.view import NodeView
from garboard.retry import Pauses
from garboard.values import dataclass

# Where a component listens if its manifest does not say it: the flag for the address, the address, the port.
_LISTENS = {
    API_SERVER: ("advertise-address", "127.0.0.1", "6443"),
    CONTROLLER_MANAGER: ("bind-address", "127.0.0.1", "10257"),
    SCHEDULER: ("bind-address", "127.0.0.1", "10259"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentHealthy(Gate):
    """A static pod of the control plane is well, at the address that its manifest gives it."""

    component: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"a healthy {self.component}"

    @property
    def manifest(self) -> str:
        return manifest_path(self.component)

    @property
    def path(self) -> str:
        """The path that kubeadm asks for; the controller manager has no /livez."""
        return "/healthz" if self.component == CONTROLLER_MANAGER else "/livez"

    def describe(self) -> dict[str, Json]:
        return {"path": self.path, "addressFrom": self.manifest}

    def probe(self, view: NodeView, /) -> Probe:
        server = component_server(self, view)
        url = f"{server}{self.path}"
        if self.component == API_SERVER:
            return lambda: probe_safely(lambda: health_problem(view.ask_api_server(server, self.path), url))
        return lambda: probe_safely(lambda: health_problem(view.get(url), url))

    def evidence(self, view: NodeView, /) -> Evidence:
        found = newest(of_component(self.component, containers_of(view)))
        command = f"crictl logs {found.id[:13]}" if found else KUBELET_LOG
        if self.component != API_SERVER:
            return gather_evidence(view, command, lambda: container_lines(self.component, view))
        return gather_evidence(
            view,
            command,
            lambda: container_lines(self.component, view),
            lambda: container_lines("etcd", view),
            lambda: clock_lines(component_server(self, view), view),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerReady(Gate):
    """The API server of this node says itself that it can serve, not another one behind the shared endpoint."""

    timeout_s: float

    @property
    def name(self) -> str:
        return "this node's API server to be ready"

    def describe(self) -> dict[str, Json]:
        return {"path": "/readyz", "addressFrom": manifest_path(API_SERVER)}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: probe_safely(lambda: self._problem(view))

    def _problem(self, view: NodeView) -> str | None:
        server = server_of(API_SERVER, document(manifest_path(API_SERVER), view))
        return health_problem(view.ask_api_server(server, "/readyz"), f"{server}/readyz")

    def evidence(self, view: NodeView, /) -> Evidence:
        lines = (lambda each=each: container_lines(each, view) for each in (API_SERVER, "etcd"))
        return gather_evidence(view, KUBELET_LOG, *lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdHealthy(Gate):
    """More than half of the voting members of etcd answer, and have nothing to complain about."""

    pauses: ClassVar[Pauses] = Pauses.every(0.5)  # a probe asks every member
    timeout_s: float

    @property
    def name(self) -> str:
        return "a majority of healthy etcd members"

    def describe(self) -> dict[str, Json]:
        return {"members": "all that vote"}

    def probe(self, view: NodeView, /) -> Probe:
        return view.etcd_probe()

    def evidence(self, view: NodeView, /) -> Evidence:
        return Evidence()  # the probe names the members that are not well

    def failure(self, found: str, evidence: Evidence) -> GarboardError:
        return ClusterUnreachable(
            f"etcd has no majority of healthy members after {self.timeout_s:.0f} s: {found}",
            hint="look at the logs of the members named above: crictl logs $(crictl ps -aq --name etcd | head -1)",
            error_class="etcd-unreachable",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCaughtUp(Gate):
    """The member of etcd on this node has applied all that etcd had when the wait began."""

    pauses: ClassVar[Pauses] = Pauses.every(0.25)
    peer_url: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"etcd member {self.peer_url} to catch up"

    def describe(self) -> dict[str, Json]:
        return {"peerURL": self.peer_url}

    def probe(self, view: NodeView, /) -> Probe:
        look = view.member_probe(self.peer_url)
        return lambda: probe_safely(look)

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(view, KUBELET_LOG, lambda: container_lines("etcd", view))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdSparesMember(Gate):
    """The other members of etcd are healthy enough for the one of this node to be away for a while."""

    pauses: ClassVar[Pauses] = Pauses.every(0.5)  # a probe asks every member
    is_for_beginning: ClassVar[bool] = True
    peer_url: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"a quorum of etcd without {self.peer_url}"

    def describe(self) -> dict[str, Json]:
        return {"peerURL": self.peer_url}

    def probe(self, view: NodeView, /) -> Probe:
        return view.etcd_probe(without=self.peer_url)

    def evidence(self, view: NodeView, /) -> Evidence:
        return Evidence()  # the probe names the members that are not well

    def failure(self, found: str, evidence: Evidence) -> GarboardError:
        return GarboardError(
            f"etcd would lose its quorum without the member of this node: {found}",
            hint="bring the members named above back first; nothing was taken away",
            error_class="quorum",
        )


def component_server(gate: ComponentHealthy, view: NodeView) -> str:
    """Return where a component listens, by its manifest."""
    return server_of(gate.component, document(gate.manifest, view))


def server_of(component: str, pod: dict[str, Json]) -> str:
    """Return where the component of a static pod listens."""
    return f"https://{join_host_port(*listener_of(component, pod))}"


def listener_of(component: str, pod: dict[str, Json]) -> tuple[str, str]:
    """Return the address and port where the component of a static pod listens."""
    flag, host, port = _LISTENS[component]
    flags = component_flags(pod, component)
    return flags.get(flag, host), flags.get("secure-port", port)


def component_flags(pod: dict[str, Json], component: str) -> dict[str, str]:
    """Return the flags of the container that runs the component; of one given twice the last counts."""
    container = container_of(pod, component)
    command, args = container.get("command"), container.get("args")
    words = [*(command[1:] if isinstance(command, list) else ()), *(args if isinstance(args, list) else ())]
    split = (str(word).removeprefix("--").partition("=") for word in words)
    return {name: value for name, _, value in split}


def container_of(pod: dict[str, Json], component: str) -> dict[str, Json]:
    """Return the container of a static pod that runs the component; empty if there is none."""
    spec = pod.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else ():
        command = container.get("command") if isinstance(container, dict) else None
        if isinstance(container, dict) and isinstance(command, list) and command[:1] == [component]:
            return container
    return {}


def control_plane_gates(timeouts: Timeouts) -> Iterator[ComponentHealthy]:
    """Yield what wait-control-plane waits for; they start beside each other, so the order costs no time."""
    timeout_s = timeouts.control_plane_component_health_check.seconds
    for component in (API_SERVER, CONTROLLER_MANAGER, SCHEDULER):
        yield ComponentHealthy(component=component, timeout_s=timeout_s)


JOURNAL_TYPES = (
    Tagged("component-healthy", ComponentHealthy, "ComponentHealthy"),
    Tagged("api-server-ready", ApiServerReady),
    Tagged("etcd-healthy", EtcdHealthy, "EtcdHealthy"),
    Tagged("member-caught-up", MemberCaughtUp),
    Tagged("etcd-spares-member", EtcdSparesMember),
)
