"""Certificates of a real node renewed: what needs it is restarted, what does not serves on, and undo takes it back."""

import pytest

from garboard.retry import Pauses, wait_until
from tools.harness.killing import KillPoint
from tools.harness.lab import LabUnderTest
from tools.harness.swapping import COMPONENTS, Swapping

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]
RESTARTED = ["kube-controller-manager", "kube-scheduler"]
AUTHORITIES = ("ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key")
FILES = "cd /etc/kubernetes && sha256sum *.conf pki/*.crt pki/*.key pki/etcd/*.crt pki/etcd/*.key"
# What the API server, etcd's clients and its peers get to see, beside the files.
SERVED = """import socket, ssl, sys
from pathlib import Path
for port, name in ((6443, "apiserver"), (2379, "etcd/server"), (2380, "etcd/peer")):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    pair = [f"/etc/kubernetes/pki/etcd/healthcheck-client.{end}" for end in ("crt", "key")]
    context.load_cert_chain(*pair)
    with context.wrap_socket(socket.create_connection((sys.argv[1], port), 10)) as seen:
        served = ssl.DER_cert_to_PEM_cert(seen.getpeercert(binary_form=True))
    if served != Path(f"/etc/kubernetes/pki/{name}.crt").read_text():
        print(name, end=" ")
"""


@pytest.fixture
def node(one_node: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Swapping:
    return Swapping(one_node, garboard_in_node)


def files(node: Swapping) -> dict[str, str]:
    lines = node.lab.exec("cp1", "sh", "-c", FILES).stdout.splitlines()
    return {name: digest for digest, name in map(str.split, lines)}


def others_served(node: Swapping) -> str | None:
    """Return the certificates that are served and are not those on disk."""
    address = node.lab.status()["nodes"][0]["address"]
    found = node.lab.exec("cp1", *node.garboard[:-1], SERVED, str(address), check=False)
    return (found.stdout or found.stderr) or None


def restarted(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name in COMPONENTS if before[name] != after[name]]


def succeeded(done: object) -> None:
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]


def test_all_are_renewed_what_reads_them_once_restarts_and_the_api_server_and_etcd_serve_on(node: Swapping) -> None:
    before, former = files(node), node.containers()
    done = node.run("certs", "renew", "all", "--restart")
    succeeded(done)
    assert "Restarted: kube-controller-manager, kube-scheduler." in done.stdout
    after, running = files(node), node.containers()
    kept = sorted(name for name in before if before[name] == after[name])
    assert kept == ["kubelet.conf", *(f"pki/{name}" for name in AUTHORITIES)]
    assert restarted(former, running) == RESTARTED
    served_within = wait_until(lambda: others_served(node), timeout_s=90, pauses=Pauses.every(1.0))
    assert served_within is None, f"not read again: {served_within}"
    assert node.is_ready()


@pytest.mark.parametrize("then", ["resume", "undo"])
def test_renewal_that_was_killed_in_the_middle_of_the_restart_is_carried_on_or_taken_back(
    node: Swapping, then: str
) -> None:
    before, former = files(node), node.containers()
    command = ("certs", "renew", "scheduler.conf", "--restart")
    # The manifest is away: the certificate, the Lease, and the removal are steps 0 to 2.
    killed = KillPoint("end", 2).of(node.garboard)
    assert node.lab.exec("cp1", *killed, *command, check=False).returncode != 0
    succeeded(node.run(then))
    assert (files(node) == before) == (then == "undo")
    assert restarted(former, node.containers()) == ["kube-scheduler"]
    assert node.is_ready()
