"""What is told about a gate that stays closed."""

from datetime import timedelta
from email.utils import format_datetime

from garboard.documents import Json
from garboard.phases.waiting import (
    Answer,
    ApiServerReady,
    ComponentHealthy,
    ContainerSeen,
    KubeletBootstrapped,
    KubeletHealthy,
    gather,
    gather_component,
)
from tests.phases.waiting.test_looking import manifest
from tests.phases.waiting.worlds import NOW, MemoryWorld

SERVER = "https://192.0.2.10:6443"
API_SERVER = ComponentHealthy(component="kube-apiserver", timeout_s=4)
LOG = "/var/log/pods/kube-system_kube-apiserver-cp1/0.log"


def world(**more: object) -> MemoryWorld:
    found = MemoryWorld(**more)  # type: ignore[arg-type]
    found.files["/var/lib/kubelet/config.yaml"] = b"{}"
    found.files |= manifest("kube-apiserver", "--advertise-address=192.0.2.10", "--secure-port=6443")
    return found


def container(**more: object) -> ContainerSeen:
    values = {"id": "0123456789abcdef", "name": "kube-apiserver", "pod": "kube-apiserver-cp1", "log_path": LOG, **more}
    return ContainerSeen(**values)  # type: ignore[arg-type]


def test_exited_container_is_shown_with_its_status_and_the_end_of_its_log() -> None:
    here = world(running=[container(is_running=False, exit_code=1, attempt=2, reason="Error")])
    here.files[LOG] = b"2026-11-15T12:00:00.1Z stderr F Error: unknown flag: --no-such-flag\n"
    found = gather(API_SERVER, here)
    assert "kube-apiserver: container 0123456789abc exited with status 1 (attempt 3): Error" in found.lines
    assert "  | Error: unknown flag: --no-such-flag" in found.lines
    assert found.next_command == "crictl logs 0123456789abc"


def test_a_static_pod_that_never_started_points_to_the_kubelet() -> None:
    here = world(state="activating", log=["failed to run Kubelet: swap is on"])
    found = gather(API_SERVER, here)
    assert any("service is activating" in line for line in found.lines)
    assert "  | failed to run Kubelet: swap is on" in found.lines
    assert any("there is no container of it" in line for line in found.lines)
    assert found.next_command == "journalctl -xeu kubelet"


def test_healthy_kubelet_does_not_show_its_log() -> None:
    here = world(web={"http://127.0.0.1:10248/healthz": Answer(200, "ok")}, log=["chatter"])
    assert gather(KubeletHealthy(timeout_s=1), here).lines == ("kubelet: its service is active, its health: ok",)


def test_a_runtime_that_does_not_answer_is_itself_evidence() -> None:
    assert "the container runtime does not answer" in gather(API_SERVER, world(running=None)).lines


def test_requests_for_certificates_are_shown_with_what_became_of_them() -> None:
    spec: dict[str, Json] = {"username": "system:bootstrap:abcdef"}
    approved: Json = [{"type": "Approved"}]
    here = world()
    here.objects = {
        "CertificateSigningRequest/a": {"metadata": {"name": "csr-a"}, "spec": spec, "status": {}},
        "CertificateSigningRequest/b": {
            "metadata": {"name": "csr-b"},
            "spec": spec,
            "status": {"conditions": approved, "certificate": "x"},
        },
        "CertificateSigningRequest/c": {"metadata": {"name": "csr-c"}, "spec": {"username": "system:node:other"}},
    }
    lines = gather(KubeletBootstrapped(node_name="w1", timeout_s=4), here).lines
    assert "certificate signing request csr-a: pending: nobody has approved it" in lines
    assert "certificate signing request csr-b: approved and issued" in lines
    assert not any("csr-c" in line for line in lines)


def test_a_clock_that_is_wrong_is_told_and_one_that_is_right_is_not() -> None:
    def lines(skew: timedelta) -> str:
        date = format_datetime(NOW + skew, usegmt=True)
        here = world(web={f"{SERVER}/version": Answer(403, "", date)})
        return "\n".join(gather(ApiServerReady(server=SERVER, timeout_s=1), here).lines)

    assert "clock: this machine is 7200 s behind" in lines(timedelta(hours=2))
    assert "clock: this machine is 600 s ahead of" in lines(timedelta(minutes=-10))
    assert "clock" not in lines(timedelta(seconds=2))


def test_a_name_that_does_not_resolve_is_told() -> None:
    lines = gather(API_SERVER, world(), endpoint="api.example.com:6443").lines
    assert "DNS: api.example.com does not resolve: Name or service not known" in lines
    lines = gather(API_SERVER, world(names={"api.example.com": "192.0.2.1"}), endpoint="api.example.com:6443").lines
    assert "DNS: api.example.com is 192.0.2.1" in lines


def test_shared_endpoint_at_which_nobody_answers_is_told() -> None:
    lines = gather(API_SERVER, world(), endpoint="192.0.2.250:6443").lines
    assert "endpoint: nobody answers at 192.0.2.250:6443: https://192.0.2.250:6443/version: Connection refused" in lines
    answering = world(web={"https://192.0.2.250:6443/version": Answer(200, "{}")})
    assert not any("endpoint" in line for line in gather(API_SERVER, answering, endpoint="192.0.2.250:6443").lines)


def test_control_plane_that_the_kubelet_depends_on_is_told_where_it_is_on_this_machine() -> None:
    gate = KubeletBootstrapped(node_name="cp2", timeout_s=1, server=SERVER)
    here = world(running=[container(is_running=False, exit_code=1)])
    assert "kube-apiserver: container 0123456789abc exited with status 1" in gather(gate, here).lines
    here.files = {}
    assert not any(line.startswith("kube-apiserver") for line in gather(gate, here).lines)


def test_one_static_pod_is_told_of_with_its_kubelet() -> None:
    here = world(running=[container(name="etcd", is_running=False, exit_code=2)])
    told = gather_component("etcd", here)
    assert told[0].startswith("kubelet: its service is active")
    assert "etcd: container 0123456789abc exited with status 2" in told
