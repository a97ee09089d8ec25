"""Real members of etcd on loopback, with TLS for clients and peers; each can be stopped, killed and started again."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from garboard.errors import GarboardError
from garboard.etcd import DATABASE, EtcdAccess, EtcdClient, Member, stored_members
from garboard.host.files import read_part
from tests.support.host import freezing
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports


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
            freezing.thaw(self.process)
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def freeze(self) -> None:
        assert self.process
        freezing.freeze(self.process)

    def thaw(self) -> None:
        assert self.process
        freezing.thaw(self.process)

    def stored(self) -> set[Member]:
        """Return the members that its database names, whether it runs or not."""
        path = self.folder / "data" / DATABASE
        return set(stored_members(lambda offset, count: read_part(path, offset, count)))

    def log(self) -> str:
        return (self.folder / "log").read_text()[-3000:]


@dataclass
class EtcdCluster:
    """Members that know each other."""

    program: Path
    certificates: Certificates
    folder: Path
    flags: tuple[str, ...] = ()  # of every member, besides those that it needs
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
            *self.flags,
        ]  # fmt: skip
        with (member.folder / "log").open("ab") as log:
            member.process = subprocess.Popen(command, stdout=log, stderr=log)
        return member

    def await_stored(self, name: str) -> None:
        """Wait until the database of a member names all members: etcd commits them up to 100 ms after they agreed."""
        give_up_at = time.monotonic() + 10
        while (found := self.members[name].stored()) != set(self.client(name).members()):
            assert time.monotonic() < give_up_at, found
            time.sleep(0.05)

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
def etcd_cluster(
    program: Path, certificates: Certificates, folder: Path, *names: str, flags: tuple[str, ...] = ()
) -> Iterator[EtcdCluster]:
    """Run a cluster of the members `names`; all end with the block."""
    cluster = EtcdCluster(program, certificates, folder, flags)
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
