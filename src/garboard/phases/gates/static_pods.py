"""Static pods that are replaced: those that were taken away have ended, and those that were put in place run steadily.

Both gates look at manifests that are there or away, not at what a run did: they are right also when the run is resumed
or taken back half-way.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged, WillNotOpen
from garboard.model.addresses import join_host_port
from garboard.model.paths import manifest_path
from garboard.phases.gates.control_plane import component_flags, container_of, server_of
from garboard.phases.gates.evidence import (
    API_SERVER,
    KUBELET_LOG,
    LOG_LINES,
    container_lines,
    document,
    gather_evidence,
    health_problem,
    log_text,
    newest,
    of_component,
    probe_safely,
)
from garboard.phases.gates.view import NodeView, ObservedContainer
from garboard.retry import Pauses
from garboard.values import dataclass

# How long a container has to stay the same: a component that cannot work ends within this time.
SETTLING_S: Mapping[str, float] = {API_SERVER: 10.0, "etcd": 10.0}
_OTHERS_SETTLING_S = 5.0
# The kubelet still has the worker of a pod for this long after its sandbox has stopped; a new pod of the same name that
# comes earlier is put back by 10 s and more.
_ENDED_FOR_S = 1.5
# As the programs of Kubernetes say it, before they do anything else.
_UNKNOWN_FLAG = re.compile(r"^Error: unknown flag: (--[a-z0-9-]+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerClosed(Gate):
    """A component whose manifest is away takes no more connections."""

    component: str
    host: str
    port: int
    timeout_s: float

    @property
    def name(self) -> str:
        return f"{self.component} to close {join_host_port(self.host, str(self.port))}"

    def describe(self) -> dict[str, Json]:
        return {"address": join_host_port(self.host, str(self.port)), "unless": manifest_path(self.component)}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: self._problem(view)

    def _problem(self, view: NodeView) -> str | None:
        if view.read(manifest_path(self.component)) is not None or not view.is_listening(self.host, self.port):
            return None
        return "it still takes connections"

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(view, KUBELET_LOG, lambda: container_lines(self.component, view))


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsEnded(Gate):
    """The static pods whose manifests are away have ended, and the kubelet has forgotten them.

    `components` and `pods`, as NAMESPACE/NAME, stand in the same order.
    """

    components: tuple[str, ...]
    pods: tuple[str, ...]
    timeout_s: float

    @property
    def name(self) -> str:
        return f"the end of {', '.join(self.components)}"

    def describe(self) -> dict[str, Json]:
        return {"pods": [*self.pods], "forSeconds": _ENDED_FOR_S}

    def probe(self, view: NodeView, /) -> Probe:
        steadily = Steadily(view.monotonic_s)
        return lambda: probe_safely(lambda: self._problem(view, steadily))

    def _problem(self, view: NodeView, steadily: "Steadily") -> str | None:
        away = [pod for component, pod in self._pairs() if view.read(manifest_path(component)) is None]
        left = sorted({*away} & {*view.ready_pods()}) if away else []
        if left:
            steadily.changed()
            return f"{', '.join(left)} still {'has' if len(left) == 1 else 'have'} a sandbox"
        return steadily.problem("ended", _ENDED_FOR_S, "they have just ended") if away else None

    def _pairs(self) -> Iterator[tuple[str, str]]:
        return zip(self.components, self.pods, strict=True)

    def evidence(self, view: NodeView, /) -> Evidence:
        lines = (lambda each=each: container_lines(each, view) for each in self.components)
        return gather_evidence(view, KUBELET_LOG, *lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsSettled(Gate):
    """Each component runs in one and the same container for its settling time, and its own probe is answered.

    The times of all run beside each other. Pods of before have ended by then, so that a container that runs is new.
    One that has ended because it does not have a flag of its manifest would do so again however often it is started.
    The API server is asked whether it lives; whether it is ready depends on others, and is a gate of its own.
    """

    pauses: ClassVar[Pauses] = Pauses(first_s=0.05, longest_s=0.25, growth=1.2)
    components: tuple[str, ...]
    timeout_s: float

    @property
    def name(self) -> str:
        return f"{', '.join(self.components)} to run steadily"

    def describe(self) -> dict[str, Json]:
        return {"settlingSeconds": {each: settling_s(each) for each in self.components}}

    def probe(self, view: NodeView, /) -> Probe:
        steady = {each: Steadily(view.monotonic_s) for each in self.components}
        return lambda: probe_safely(lambda: self._problem(view, steady))

    def _problem(self, view: NodeView, steady: "Mapping[str, Steadily]") -> str | None:
        running = view.containers()
        problems = [
            f"{component}: {problem}"
            for component in self.components
            if (problem := _unsettled(component, newest(of_component(component, running)), steady[component], view))
        ]
        return "; ".join(problems) or None

    def evidence(self, view: NodeView, /) -> Evidence:
        lines = (lambda each=each: container_lines(each, view) for each in self.components)
        return gather_evidence(view, KUBELET_LOG, *lines)


class Steadily:
    """Measures for how long something has been the same."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._what = ""
        self._since_s = 0.0

    def changed(self) -> None:
        self._what = ""

    def problem(self, what: str, needed_s: float, told: str) -> str | None:
        """Return None once it has been the same for the time that is needed, else what is told."""
        now_s = self._monotonic_s()
        if what != self._what:
            self._what, self._since_s = what, now_s
        return None if now_s - self._since_s >= needed_s else told


def settling_s(component: str) -> float:
    return SETTLING_S.get(component, _OTHERS_SETTLING_S)


def _unsettled(component: str, container: ObservedContainer | None, steadily: Steadily, view: NodeView) -> str | None:
    """Say why a component is not settled; None if it is."""
    if container is None or not container.is_running:
        steadily.changed()
        if container is not None and (flag := _refused_flag(component, container, view)):
            raise WillNotOpen(f"{component}: it does not have the flag {flag}, and ends whenever it is started")
        return "no container of it runs"
    unsettled = steadily.problem(container.id, settling_s(component), f"container {container.id[:13]} is new")
    return _unanswered(component, view) or unsettled


def _refused_flag(component: str, container: ObservedContainer, view: NodeView) -> str:
    """Return the flag for which a container has ended, if its manifest has that still; else an empty text.

    While a manifest is taken back, the container of the one before may be all that there is.
    """
    if not container.exit_code:
        return ""
    flags = component_flags(document(manifest_path(component), view), component)
    found = (_UNKNOWN_FLAG.search(log_text(line)) for line in view.tail(container.log_path, LOG_LINES))
    return next((each[1] for each in found if each and each[1].removeprefix("--") in flags), "")


def _unanswered(component: str, view: NodeView) -> str | None:
    """Say what the component answers to the probe of its manifest; None if that is well, or there is no such probe."""
    pod = document(manifest_path(component), view)
    request = _probe_request(pod, component)
    if request is None:
        return None
    path = str(request.get("path") or "/")
    if component == API_SERVER:  # it may know nobody who does not say who he is
        server = server_of(component, pod)
        return probe_safely(lambda: health_problem(view.ask_api_server(server, path), f"{server}{path}"))
    host, port = str(request.get("host") or "127.0.0.1"), _port(request.get("port"), pod, component)
    url = f"{str(request.get('scheme') or 'HTTP').lower()}://{join_host_port(host, port)}{path}"
    return probe_safely(lambda: health_problem(view.get(url), url))


def _probe_request(pod: dict[str, Json], component: str) -> dict[str, Json] | None:
    container = container_of(pod, component)
    for name in ("livenessProbe",) if component == API_SERVER else ("readinessProbe", "livenessProbe"):
        probe = container.get(name)
        request = probe.get("httpGet") if isinstance(probe, dict) else None
        if isinstance(request, dict):
            return request
    return None


def _port(named: Json, pod: dict[str, Json], component: str) -> str:
    """Return the number of a port that a probe gives by name or number."""
    ports = container_of(pod, component).get("ports")
    for each in ports if isinstance(ports, list) else ():
        if isinstance(each, dict) and each.get("name") == named:
            return str(each.get("containerPort"))
    return str(named)


JOURNAL_TYPES = (
    Tagged("listener-closed", ListenerClosed),
    Tagged("pods-ended", PodsEnded),
    Tagged("components-settled", ComponentsSettled),
)
