"""The tunnel is open: an API server answers where the agent of this node listens."""

from collections.abc import Iterator

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged
from garboard.errors import GarboardError
from garboard.phases.gates.evidence import LOG_LINES, container_lines, evidence_lines, log_lines, probe_safely
from garboard.phases.gates.view import NodeView
from garboard.values import dataclass

AGENT = "konnectivity-agent"
_READINESS = "http://127.0.0.1:8093/readyz?verbose"


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelOpen(Gate):
    """Somebody answers at `server`, whatever the answer: the other end of the tunnel has connected to an API server.

    The agent is a service, or with `is_static_pod` a static pod.
    """

    server: str
    timeout_s: float
    is_static_pod: bool = False

    @property
    def name(self) -> str:
        return "the tunnel to the API server"

    def describe(self) -> dict[str, Json]:
        return {"url": f"{self.server}/version", "agent": "static pod" if self.is_static_pod else "service"}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: probe_safely(lambda: _unanswered(self.server, view))

    def evidence(self, view: NodeView, /) -> Evidence:
        look = container_lines if self.is_static_pod else _service_lines
        lines = evidence_lines(lambda: look(AGENT, view), lambda: _readiness_lines(view))
        shown = "crictl ps -a; crictl logs CONTAINER" if self.is_static_pod else f"journalctl -xeu {AGENT}"
        return Evidence(lines, shown)


def _unanswered(server: str, view: NodeView) -> None:
    view.get(f"{server}/version")


def _service_lines(service: str, view: NodeView) -> Iterator[str]:
    yield f"{service}: its service is {view.service_state(service)}"
    yield from log_lines(service, view.service_log(service, LOG_LINES))


def _readiness_lines(view: NodeView) -> Iterator[str]:
    """Say what the agent says of itself: whether a server is connected, and allows the API server as a destination."""
    try:
        answer = view.get(_READINESS)
    except GarboardError as error:
        yield f"{AGENT}: {error.message}"
        return
    yield from (f"{AGENT}: {line}" for line in answer.text.splitlines() if line.startswith("[-]"))


JOURNAL_TYPES = (Tagged("tunnel-open", TunnelOpen),)
