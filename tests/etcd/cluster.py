"""Real members of etcd on loopback, with TLS for clients and peers; each can be stopped, killed and started again."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from garboard.errors import GarboardError
from garboard.etcd import EtcdAccess, EtcdClient
from tests.ports import free_ports
from tests.rpc.certificates import Certificates


@dataclass
class RunningMember:
    """One member: its ports, its data and its process, if it runs."""

    name: str
    client_url: str
    peer_url: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def freeze(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        return (self.folder / "log").read_text()[-3000:]


@dataclass
class EtcdCluster:
    """Members that know each other."""

    program: Path
    certificates: Certificates
    folder: Path
    members: dict[str, RunningMember] = field(default_factory=dict)

    @property
    def access(self) -> EtcdAccess:
        of = self.certificates
        return EtcdAccess(ca=of.ca.read_bytes(), certificate=of.client.read_bytes(), key=of.client_key.read_bytes())

    def client(self, *names: str) -> EtcdClient:
        chosen = names or tuple(self.members)
        return EtcdClient(tuple(self.members[name].client_url for name in chosen), self.access)

    def prepare(self, name: str) -> RunningMember:
        """Choose ports for a member; nothing runs yet."""
        client, peer = free_ports(2)
        member = RunningMember(
            name, f"https://127.0.0.1:{client}", f"https://127.0.0.1:{peer}", self.folder / f"{name}-{client}"
        )
        member.folder.mkdir()
        self.members[name] = member
        return member

    def start(self, name: str, initial_cluster: str, state: str = "existing") -> RunningMember:
        member, of = self.members[name], self.certificates
        tls = [
            f"--{side}{flag}={path}"
            for side in ("", "peer-")
            for flag, path in (
                ("cert-file", of.server), ("key-file", of.server_key), ("trusted-ca-file", of.ca),
                ("client-cert-auth", "true"),
            )
        ]  # fmt: skip
        command: list[str | Path] = [
            self.program, f"--name={name}", f"--data-dir={member.folder / 'data'}", *tls,
            f"--listen-client-urls={member.client_url}", f"--advertise-client-urls={member.client_url}",
            f"--listen-peer-urls={member.peer_url}", f"--initial-advertise-peer-urls={member.peer_url}",
            f"--initial-cluster={initial_cluster}", f"--initial-cluster-state={state}", "--unsafe-no-fsync",
        ]  # fmt: skip
        with (member.folder / "log").open("ab") as log:
            member.process = subprocess.Popen(command, stdout=log, stderr=log)
        return member

    def forget_data(self, name: str) -> None:
        shutil.rmtree(self.members[name].folder / "data", ignore_errors=True)

    def await_answer(self, name: str, *, votes: bool = True) -> None:
        """Wait until a member lists the others, or, a learner that may not do that, tells its status."""
        give_up_at = time.monotonic() + 30
        client = self.client(name)
        while True:
            try:
                client.members() if votes else client.status(client.endpoints[0])
                return
            except GarboardError:
                assert time.monotonic() < give_up_at, self.members[name].log()
                time.sleep(0.1)


@contextmanager
def etcd_cluster(program: Path, certificates: Certificates, folder: Path, *names: str) -> Iterator[EtcdCluster]:
    """Run a cluster of the members `names`; all end with the block."""
    cluster = EtcdCluster(program, certificates, folder)
    try:
        first = ",".join(f"{name}={cluster.prepare(name).peer_url}" for name in names)
        for name in names:
            cluster.start(name, first, "new")
        for name in names:
            cluster.await_answer(name)
        yield cluster
    finally:
        for member in cluster.members.values():
            member.kill()
