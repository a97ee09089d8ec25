"""The bundle of a failed run: what is in it, and what never is."""

import pytest

from garboard.engine import Note, Plan, Step, WriteFile
from garboard.errors import GarboardError
from garboard.phases.diagnostics import bundle, masked
from garboard.phases.waiting import ContainerSeen
from tests.phases.waiting.worlds import MemoryWorld

TOKEN = "abcdef.0123456789abcdef"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvq\n-----END RSA PRIVATE KEY-----"


class FewFiles:
    def paths_below(self, path: str) -> tuple[str, ...]:
        return (f"{path}/admin.conf",)

    def owner(self, path: str) -> tuple[int, int, int] | None:
        return 0, 0, 0o600


def collected(world: MemoryWorld) -> dict[str, str]:
    secret = WriteFile(
        path="/etc/kubernetes/bootstrap-kubelet.conf", content=TOKEN.encode(), mode=0o600, is_secret=True
    )
    plan = Plan((Step(secret, "x", "kubelet-start"),), (Note(f"token {TOKEN}"),))
    error = GarboardError(f"no answer for {TOKEN}", hint="look")
    return dict(bundle(error, plan, world, FewFiles(), ("kernel: 6.1",)))


def world() -> MemoryWorld:
    log = "/var/log/pods/x/0.log"
    return MemoryWorld(
        files={
            "/etc/kubernetes/manifests/etcd.yaml": b"kind: Pod\n",
            "/etc/kubernetes/admin.conf": KEY.encode(),
            log: f"2026-11-15T12:00:00Z stderr F started with {TOKEN}\n".encode(),
        },
        running=[ContainerSeen(id="0123456789", name="etcd", pod="etcd-cp1", is_running=False, log_path=log)],
        log=["kubelet says hello"],
        objects={"Node/cp1": {"metadata": {"name": "cp1", "managedFields": []}}},
    )


def test_bundle_has_what_a_person_would_ask_for() -> None:
    found = collected(world())
    assert "hint: look" in found["error.txt"]
    assert '"phase": "kubelet-start"' in found["plan.json"]
    assert found["files.txt"].splitlines()[-1] == "0600 0:0 /etc/kubernetes/admin.conf"
    assert found["files/etc-kubernetes-manifests-etcd.yaml"] == "kind: Pod\n"
    assert found["kubelet.log"] == "kubelet says hello\n"
    assert "started with" in found["containers/etcd-0-01234567.log"]
    assert '"cp1"' in found["nodes.json"]
    assert "managedFields" not in found["nodes.json"]


def test_no_secret_is_in_any_file() -> None:
    text = "".join(collected(world()).values())
    assert TOKEN not in text
    assert "PRIVATE KEY" not in text
    assert "MIIEvq" not in text


def test_what_does_not_answer_is_told_in_its_place() -> None:
    assert "does not answer" in collected(MemoryWorld(running=None))["containers.json"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a {KEY} b", "a <hidden> b"),
        ("-----BEGIN EC PRIVATE KEY-----\ncut off", "<hidden>"),
        (f"--token {TOKEN} \\", "--token <hidden> \\"),
        ("--certificate-key 00ff \\", "--certificate-key <hidden> \\"),
        ("client-key-data: LS0t\nserver: x", "client-key-data: <hidden>\nserver: x"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer <hidden>"),
        ("kube-apiserver v1.37.1 at 10.89.0.11:6443", "kube-apiserver v1.37.1 at 10.89.0.11:6443"),
        ("sha256:" + "ab" * 32, "sha256:" + "ab" * 32),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, left: str) -> None:
    assert masked(text) == left
