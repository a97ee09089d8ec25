"""A real API server on loopback with an etcd of its own, and a token that may do everything."""

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from garboard.errors import GarboardError
from garboard.kube import Access, KubeClient
from garboard.lab.binaries import Binaries
from tools.harness.ports import free_ports

TOKEN = "test-token"


@contextmanager
def real_api_server(
    binaries: Binaries,
    version: str,
    folder: Path,
    processes: dict[str, "subprocess.Popen[bytes]"] | None = None,
    users: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
) -> Iterator[Access]:
    """Run etcd and kube-apiserver of a release; the access is that of an administrator.

    `processes` gets the two by their names, for tests that stop one. `users` are others that it knows, each with a
    group, by their names, which are their tokens as well; `flags` are more of kube-apiserver.
    """
    client, peer, port = free_ports(3)
    key = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    others = (f'{name},{name},{name},"{group}"\n' for name, group in (users or {}).items())
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,1,"system:masters"\n' + "".join(others))
    url = f"http://127.0.0.1:{client}"
    etcd: list[str | Path] = [
        binaries.locate_for("etcd", version), f"--data-dir={folder / 'data'}", f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}", f"--listen-peer-urls=http://127.0.0.1:{peer}", "--unsafe-no-fsync",
    ]  # fmt: skip
    server: list[str | Path] = [
        binaries.locate("kube-apiserver", version), f"--etcd-servers={url}", f"--secure-port={port}",
        "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", f"--cert-dir={folder / 'certs'}",
        "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC", *flags,
    ]  # fmt: skip
    with ExitStack() as ends:
        for name, command in (("etcd", etcd), ("kube-apiserver", server)):
            log = ends.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log)
            if processes is not None:
                processes[name] = process
            ends.callback(process.wait, 10)
            ends.callback(process.kill)
        access = Access(
            server=f"https://127.0.0.1:{port}", host="127.0.0.1", port=port, token=TOKEN, is_unverified=True
        )
        _await(access, folder / "kube-apiserver.log")
        yield access


def _await(access: Access, log: Path) -> None:
    give_up_at = time.monotonic() + 60
    with KubeClient(access) as client:
        while True:
            try:
                if (
                    client.find("ClusterRole", "", "system:node")
                    and client.find("ConfigMap", "kube-system", "x") is None
                ):
                    return
            except GarboardError:
                pass
            assert time.monotonic() < give_up_at, log.read_text()[-3000:]
            time.sleep(0.2)
