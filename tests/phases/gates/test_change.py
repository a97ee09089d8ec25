"""Gates of a change: a kube-proxy that runs steadily, and a certificate that is served."""

import base64
from dataclasses import dataclass

import pytest

from garboard.phases.gates import Answer, CertificateServed, KubeProxySettled, ObservedContainer
from tests.support.phases.gates.views import MemoryNodeView

URL = "http://127.0.0.1:10256/healthz"
PROXY = ObservedContainer(id="c1", name="kube-proxy", pod="kube-proxy-x", namespace="kube-system", is_running=True)


@dataclass
class TickingView(MemoryNodeView):
    """A node whose time goes on with each look."""

    elapsed_s: float = 0.0

    def monotonic_s(self) -> float:
        self.elapsed_s += 3.0
        return self.elapsed_s


def test_kube_proxy_is_settled_when_one_container_has_run_for_a_while() -> None:
    view = TickingView(running=[PROXY], web={URL: Answer(200)})
    probe = KubeProxySettled(timeout_s=1.0, url=URL).probe(view)
    assert probe() == "container c1 is new"
    assert probe() == "container c1 is new"
    assert probe() is None


def test_a_kube_proxy_that_ends_again_and_again_is_never_settled() -> None:
    view = TickingView(running=[PROXY], web={URL: Answer(200)})
    probe = KubeProxySettled(timeout_s=1.0, url=URL).probe(view)
    for number in range(10):
        view.running = [ObservedContainer(id=f"c{number}", name="kube-proxy", pod="p", is_running=bool(number % 2))]
        assert probe() is not None


@pytest.mark.parametrize("web", [{}, {URL: Answer(503, "no rules yet")}])
def test_a_kube_proxy_that_is_not_well_is_not_settled(web: dict[str, Answer]) -> None:
    view = TickingView(running=[PROXY], web=web)
    probe = KubeProxySettled(timeout_s=1.0, url=URL).probe(view)
    assert [probe() is None for _ in range(4)] == [False] * 4
    assert probe() is not None


def test_one_that_nobody_can_ask_only_has_to_run() -> None:
    probe = KubeProxySettled(timeout_s=1.0).probe(TickingView(running=[PROXY]))
    assert [probe() is None for _ in range(3)] == [False, False, True]


def test_the_evidence_is_the_end_of_its_log() -> None:
    ended = ObservedContainer(
        id="c2", name="kube-proxy", pod="p", is_running=False, exit_code=1, log_path="/var/log/proxy"
    )
    view = MemoryNodeView(running=[ended], files={"/var/log/proxy": b"unrecognized feature gate: Nonsense\n"})
    evidence = KubeProxySettled(timeout_s=1.0).evidence(view)
    assert any("unrecognized feature gate: Nonsense" in line for line in evidence.lines)
    assert any("exited with status 1" in line for line in evidence.lines)


DER, OTHER = b"this certificate", b"that certificate"
PATH = "/etc/kubernetes/pki/apiserver.crt"


def pem(data: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(data) + b"-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("served", "file", "problem"),
    [
        (DER, pem(DER), None),
        (DER, pem(DER) + pem(OTHER), None),
        (OTHER, pem(DER), "it still shows another one"),
        (DER, b"", f"there is no certificate in {PATH}"),
        (DER, b"-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----", f"there is no certificate in {PATH}"),
    ],
)
def test_the_first_certificate_of_the_file_is_the_one_that_is_served(
    served: bytes, file: bytes, problem: str | None
) -> None:
    view = MemoryNodeView(files={PATH: file}, served={("192.0.2.1", 6443): served})
    gate = CertificateServed(component="kube-apiserver", path=PATH, host="192.0.2.1", port=6443, timeout_s=1.0)
    assert gate.probe(view)() == problem


def test_a_server_that_does_not_answer_shows_nothing() -> None:
    gate = CertificateServed(component="etcd", path=PATH, host="192.0.2.1", port=2379, timeout_s=1.0)
    assert "Connection refused" in str(gate.probe(MemoryNodeView(files={PATH: pem(DER)}))())
