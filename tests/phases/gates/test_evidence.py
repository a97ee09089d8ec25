"""What is told about a gate that stays closed."""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from garboard.documents import Json
from garboard.phases.gates import (
    Answer,
    ComponentHealthy,
    KubeletBootstrapped,
    KubeletHealthy,
    ObservedContainer,
    component_evidence,
)
from tests.support.phases.gates.views import NOW, MemoryNodeView, manifest

SERVER = "https://192.0.2.10:6443"
API_SERVER = ComponentHealthy(component="kube-apiserver", timeout_s=4)
LOG = "/var/log/pods/kube-system_kube-apiserver-cp1/0.log"


def view(**more: object) -> MemoryNodeView:
    found = MemoryNodeView(**more)  # type: ignore[arg-type]
    found.files["/var/lib/kubelet/config.yaml"] = b"{}"
    found.files |= manifest("kube-apiserver", "--advertise-address=192.0.2.10", "--secure-port=6443")
    return found


def container(**more: object) -> ObservedContainer:
    own = {"name": "kube-apiserver", "pod": "kube-apiserver-cp1", "is_static": True}
    values = {"id": "0123456789abcdef", "log_path": LOG, **own, **more}
    return ObservedContainer(**values)  # type: ignore[arg-type]


def test_exited_container_is_shown_with_its_status_and_the_end_of_its_log() -> None:
    here = view(running=[container(is_running=False, exit_code=1, attempt=2, reason="Error")])
    here.files[LOG] = b"2026-11-15T12:00:00.1Z stderr F Error: unknown flag: --no-such-flag\n"
    found = API_SERVER.evidence(here)
    assert "kube-apiserver: container 0123456789abc exited with status 1 (attempt 3): Error" in found.lines
    assert "  | Error: unknown flag: --no-such-flag" in found.lines
    assert found.next_command == "crictl logs 0123456789abc"


@pytest.mark.parametrize("is_running", [True, False], ids=["at work", "just made"])
def test_container_that_was_started_again_is_shown_with_why_the_one_before_failed(is_running: bool) -> None:
    before = container(is_running=False, exit_code=1, id="fedcba9876543210", log_path=LOG)
    again = container(is_running=is_running, attempt=1, log_path=LOG.replace("0.log", "1.log"))
    here = view(running=[again, before])
    here.files[LOG] = b"2026-11-15T12:00:00.1Z stderr F Error: unknown flag: --no-such-flag\n"
    found = API_SERVER.evidence(here)
    assert "kube-apiserver: container fedcba9876543 exited with status 1" in found.lines
    assert "  | Error: unknown flag: --no-such-flag" in found.lines
    assert found.next_command == "crictl logs 0123456789abc"


def test_a_static_pod_that_never_started_points_to_the_kubelet() -> None:
    here = view(state="activating", log=["failed to run Kubelet: swap is on"])
    found = API_SERVER.evidence(here)
    assert any("service is activating" in line for line in found.lines)
    assert "  | failed to run Kubelet: swap is on" in found.lines
    assert any("there is no container of it" in line for line in found.lines)
    assert found.next_command == "journalctl -xeu kubelet"


def test_healthy_kubelet_does_not_show_its_log() -> None:
    here = view(web={"http://127.0.0.1:10248/healthz": Answer(200, "ok")}, log=["chatter"])
    assert KubeletHealthy(timeout_s=1).evidence(here).lines == ("kubelet: its service is active, its health: ok",)


def test_a_runtime_that_does_not_answer_is_itself_evidence() -> None:
    assert "the container runtime does not answer" in API_SERVER.evidence(view(running=None)).lines


def test_requests_for_certificates_are_shown_with_what_became_of_them() -> None:
    spec: dict[str, Json] = {"username": "system:bootstrap:abcdef"}
    approved: Json = [{"type": "Approved"}]
    here = view()
    here.objects = {
        "CertificateSigningRequest/a": {"metadata": {"name": "csr-a"}, "spec": spec, "status": {}},
        "CertificateSigningRequest/b": {
            "metadata": {"name": "csr-b"},
            "spec": spec,
            "status": {"conditions": approved, "certificate": "x"},
        },
        "CertificateSigningRequest/c": {"metadata": {"name": "csr-c"}, "spec": {"username": "system:node:other"}},
    }
    lines = KubeletBootstrapped(node_name="w1", timeout_s=4).evidence(here).lines
    assert "certificate signing request csr-a: pending: nobody has approved it" in lines
    assert "certificate signing request csr-b: approved and issued" in lines
    assert not any("csr-c" in line for line in lines)


def test_a_clock_that_is_wrong_is_told_and_one_that_is_right_is_not() -> None:
    def lines(skew: timedelta) -> str:
        date = format_datetime(NOW + skew, usegmt=True)
        here = view(web={f"{SERVER}/version": Answer(403, "", date)})
        return "\n".join(KubeletBootstrapped(node_name="w1", timeout_s=1, server=SERVER).evidence(here).lines)

    assert "clock: this machine is 7200 s behind" in lines(timedelta(hours=2))
    assert "clock: this machine is 600 s ahead of" in lines(timedelta(minutes=-10))
    assert "clock" not in lines(timedelta(seconds=2))


def test_a_name_that_does_not_resolve_is_told() -> None:
    lines = API_SERVER.evidence(view(endpoint="api.example.com:6443")).lines
    assert "DNS: api.example.com does not resolve: Name or service not known" in lines
    lines = API_SERVER.evidence(view(names={"api.example.com": "192.0.2.1"}, endpoint="api.example.com:6443")).lines
    assert "DNS: api.example.com is 192.0.2.1" in lines


def test_shared_endpoint_at_which_nobody_answers_is_told() -> None:
    lines = API_SERVER.evidence(view(endpoint="192.0.2.250:6443")).lines
    assert "endpoint: nobody answers at 192.0.2.250:6443: https://192.0.2.250:6443/version: Connection refused" in lines
    answering = view(web={"https://192.0.2.250:6443/version": Answer(200, "{}")}, endpoint="192.0.2.250:6443")
    assert not any("endpoint" in line for line in API_SERVER.evidence(answering).lines)


def test_control_plane_that_the_kubelet_depends_on_is_told_where_it_is_on_this_machine() -> None:
    gate = KubeletBootstrapped(node_name="cp2", timeout_s=1, server=SERVER)
    here = view(running=[container(is_running=False, exit_code=1)])
    assert "kube-apiserver: container 0123456789abc exited with status 1" in gate.evidence(here).lines
    here.files = {}
    assert not any(line.startswith("kube-apiserver") for line in gate.evidence(here).lines)


def test_one_static_pod_is_told_of_with_its_kubelet() -> None:
    here = view(running=[container(name="etcd", is_running=False, exit_code=2)])
    told = component_evidence("etcd", here)
    assert told[0].startswith("kubelet: its service is active")
    assert "etcd: container 0123456789abc exited with status 2" in told
