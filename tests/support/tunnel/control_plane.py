"""A real etcd and kube-apiserver on loopback, without nodes: enough for tokens and leases."""

import contextlib
import json
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from garboard.lab.binaries import Binaries
from garboard.pki import KeyAlgorithm
from garboard.pki.keys import generate_key, private_key_pem
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

ADMIN_TOKEN = "admin-of-the-test"


@dataclass(frozen=True)
class ControlPlane:
    """An API server, and an administrator's way to it."""

    port: int
    kubeconfig: Path
    ca: Path

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            method=method,
            data=json.dumps(content).encode() if content is not None else None,
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.ca), timeout=10) as answer:
            return json.load(answer)

    def token(self, namespace: str, account: str, audience: str) -> str:
        """A token for a service account, which is made if it is not there."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        with contextlib.suppress(urllib.error.HTTPError):
            self.ask("POST", accounts, {"metadata": {"name": account}})
        asked = {"spec": {"audiences": [audience], "expirationSeconds": 3600}}
        return str(self.ask("POST", f"{accounts}/{account}/token", asked)["status"]["token"])

    def leases(self) -> list[str]:
        found = self.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")["items"]
        return sorted(each["metadata"]["name"] for each in found if "proxy-server" in each["metadata"]["name"])


@contextlib.contextmanager
def control_plane(binaries: Binaries, certificates: Certificates, folder: Path) -> Iterator[ControlPlane]:
    client_port, peer_port, port = free_ports(3)
    running: list[subprocess.Popen[bytes]] = []
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n')
    signing_key = folder / "sa.key"
    signing_key.write_bytes(private_key_pem(generate_key(KeyAlgorithm.ECDSA_P256)))
    etcd = f"http://127.0.0.1:{client_port}"
    commands = [
        [binaries.locate_for("etcd", "v1.37.1"), f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={etcd}",
         f"--advertise-client-urls={etcd}", f"--listen-peer-urls=http://127.0.0.1:{peer_port}", "--unsafe-no-fsync",
         f"--initial-advertise-peer-urls=http://127.0.0.1:{peer_port}",
         f"--initial-cluster=default=http://127.0.0.1:{peer_port}"],
        [binaries.locate("kube-apiserver", "v1.37.1"), f"--etcd-servers={etcd}", f"--secure-port={port}",
         "--bind-address=127.0.0.1", f"--tls-cert-file={certificates.server}", "--authorization-mode=RBAC",
         f"--tls-private-key-file={certificates.server_key}", f"--token-auth-file={tokens}",
         f"--service-account-key-file={signing_key}", "--service-account-issuer=https://test",
         f"--service-account-signing-key-file={signing_key}", "--service-cluster-ip-range=10.96.0.0/16",
         f"--cert-dir={folder / 'made'}"],
    ]  # fmt: skip
    try:
        for number, command in enumerate(commands):
            with (folder / f"control-plane-{number}.log").open("wb") as log:
                running.append(subprocess.Popen([str(each) for each in command], stdout=log, stderr=log))
        plane = ControlPlane(port, folder / "admin.conf", certificates.ca)
        plane.kubeconfig.write_bytes(
            Kubeconfig(
                cluster_name="test", server=f"https://127.0.0.1:{port}", user_name="admin",
                ca=certificates.ca.read_bytes(), credential=BearerToken(ADMIN_TOKEN),
            ).to_bytes()
        )  # fmt: skip
        _wait(plane, running)
        yield plane
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def _wait(plane: ControlPlane, running: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError, socket.timeout, ValueError):
            plane.ask("GET", "/api/v1/namespaces/kube-system")
            return
        assert all(each.poll() is None for each in running), "a program of the control plane has ended"
        assert time.monotonic() < until, "the API server did not come up"
        time.sleep(0.1)
