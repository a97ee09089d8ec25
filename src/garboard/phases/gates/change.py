"""What a change waits for besides static pods: kube-proxy as it is configured now, and a certificate that is served."""

import base64
from collections.abc import Iterator
from typing import ClassVar

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged
from garboard.model.addresses import join_host_port
from garboard.phases.gates.evidence import (
    KUBELET_LOG,
    LOG_LINES,
    container_lines,
    gather_evidence,
    health_problem,
    probe_safely,
)
from garboard.phases.gates.static_pods import Steadily
from garboard.phases.gates.view import NodeView
from garboard.retry import Pauses
from garboard.values import dataclass

KUBE_PROXY = "kube-proxy"
# One that does not understand its configuration ends at once.
_SETTLING_S = 5.0
_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeProxySettled(Gate):
    """The kube-proxy of this node runs in one and the same container for a while, and says that it is well.

    The pods of before have gone by then. Without a `url` nobody can ask it.
    """

    pauses: ClassVar[Pauses] = Pauses.every(0.25)
    timeout_s: float
    url: str = ""

    @property
    def name(self) -> str:
        return f"{KUBE_PROXY} to run steadily"

    def describe(self) -> dict[str, Json]:
        return {"settlingSeconds": _SETTLING_S, **({"url": self.url} if self.url else {})}

    def probe(self, view: NodeView, /) -> Probe:
        steadily = Steadily(view.monotonic_s)
        return lambda: probe_safely(lambda: self._problem(view, steadily))

    def _problem(self, view: NodeView, steadily: Steadily) -> str | None:
        container = next((each for each in view.containers() if each.name == KUBE_PROXY and each.is_running), None)
        if container is None:
            steadily.changed()
            return "no container of it runs"
        unsettled = steadily.problem(container.id, _SETTLING_S, f"container {container.id[:13]} is new")
        unwell = probe_safely(lambda: health_problem(view.get(self.url), self.url)) if self.url else None
        return unwell or unsettled

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(view, KUBELET_LOG, lambda: _proxy_lines(view))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateServed(Gate):
    """A server shows the certificate that is in a file, to whoever connects now: it reads files again by itself."""

    pauses: ClassVar[Pauses] = Pauses.every(0.25)
    component: str
    path: str
    host: str
    port: int
    timeout_s: float

    @property
    def name(self) -> str:
        return f"{self.component} to show the certificate in {self.path}"

    def describe(self) -> dict[str, Json]:
        return {"address": join_host_port(self.host, str(self.port)), "file": self.path}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: probe_safely(lambda: self._problem(view))

    def _problem(self, view: NodeView) -> str | None:
        wanted = _first_certificate(view.read(self.path) or b"")
        if not wanted:
            return f"there is no certificate in {self.path}"
        is_served = view.served_certificate(self.host, self.port) == wanted
        return None if is_served else "it still shows another one"

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(view, KUBELET_LOG, lambda: container_lines(self.component, view))


def _proxy_lines(view: NodeView) -> Iterator[str]:
    """Say how the newest container of kube-proxy fares, and how its log ends."""
    found = next((each for each in view.containers() if each.name == KUBE_PROXY), None)
    if found is None:
        yield f"{KUBE_PROXY}: there is no container of it on this node"
        return
    state = "is running" if found.is_running else f"exited with status {found.exit_code}"
    yield f"{KUBE_PROXY}: container {found.id[:13]} {state}"
    yield from (f"  {line}" for line in view.tail(found.log_path, LOG_LINES))


def _first_certificate(data: bytes) -> bytes:
    """Return the first certificate of a file in DER; nothing if it has none."""
    body = data.partition(_BEGIN)[2].partition(_END)[0]
    try:
        return base64.b64decode(body)
    except ValueError:
        return b""


JOURNAL_TYPES = (
    Tagged("kube-proxy-settled", KubeProxySettled),
    Tagged("certificate-served", CertificateServed),
)
