"""A cluster in memory that nodes can join, and the connector through which they find it."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from garboard.config import FixedFacts, ReadOptions
from garboard.config.load import ConfigFile
from garboard.documents import Json, write_yaml
from garboard.errors import ClusterUnreachable
from garboard.manifests import NodeHost
from garboard.model.lifecycle import JoinConfiguration
from garboard.phases.join.cluster import find_cluster
from garboard.phases.join.context import JoinContext, observe_join
from garboard.phases.join.trust import signature_of
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import MachineInspector
from garboard.pki import KeyAlgorithm
from garboard.pki.issue import certificate_pem
from garboard.pki.store import service_account_files
from garboard.pki.transfer import shared_files
from garboard.retry import Clock
from tests.support.phases.machines import NOW, MemoryMachine
from tests.support.pki.fixtures import KEYS, MemoryFolder, full_folder, issue_tree, sealed_files

ENDPOINT = "192.0.2.1:6443"
SERVER = f"https://{ENDPOINT}"
TOKEN = "abcdef.0123456789abcdef"
CERTIFICATE_KEY = "ab" * 32
FACTS = FixedFacts(host="node-2", address="192.0.2.20")
CLUSTER_CONFIGURATION = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
controlPlaneEndpoint: api.example.com:6443
encryptionAlgorithm: ECDSA-P256
{more}
"""
KUBELET_CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
"""
JOIN = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "192.0.2.1:6443", unsafeSkipCAVerification: true}
"""
CONTROL_PLANE = f"""\
controlPlane:
  certificateKey: {CERTIFICATE_KEY}
"""


@cache
def _shared_once() -> dict[str, bytes]:
    files = full_folder(now=NOW).files
    sa = service_account_files(KEYS.private_key(KeyAlgorithm.ECDSA_P256))
    return {**{name: files[name] for name in shared_files().values() if name in files}, **{f.name: f.data for f in sa}}


def _authority() -> MemoryFolder:
    return MemoryFolder(dict(_shared_once()))


@dataclass
class MemoryCluster:
    """Objects by kind and name, and what its control planes share."""

    pki: MemoryFolder = field(default_factory=_authority)
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    server: str = SERVER

    @classmethod
    def made(cls, *, version: str = "v1.37.1", more: str = "") -> "MemoryCluster":
        cluster = cls()
        cluster.put("kubeadm-config", ClusterConfiguration=CLUSTER_CONFIGURATION.format(version=version, more=more))
        cluster.put("kubelet-config", kubelet=KUBELET_CONFIGURATION)
        cluster.describe()
        sealed = sealed_files(cluster.pki, shared_files(), bytes.fromhex(CERTIFICATE_KEY), lambda count: b"n" * count)
        data = {name: base64.b64encode(value).decode() for name, value in sealed.items()}
        cluster.objects["Secret", "kubeadm-certs"] = {"data": data}
        return cluster

    @property
    def ca(self) -> bytes:
        return self.pki.files["ca.crt"]

    def put(self, name: str, **data: str) -> None:
        self.objects["ConfigMap", name] = {"data": data}

    def describe(self, *tokens: str) -> None:
        """Write cluster-info, signed with tokens."""
        ca = base64.b64encode(self.ca).decode()
        cluster: Json = {"name": "", "cluster": {"certificate-authority-data": ca, "server": self.server}}
        text = write_yaml(
            {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": None, "users": None}
        )
        signed = {f"jws-kubeconfig-{each[:6]}": signature_of(text, each) for each in tokens or (TOKEN,)}
        self.put("cluster-info", kubeconfig=text, **signed)


@dataclass
class MemoryApi:
    cluster: MemoryCluster
    server_time: datetime | None = None
    failure: Callable[[str], Exception | None] = lambda _name: None

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        if error := self.failure(name):
            raise error
        return self.cluster.objects.get((kind, name))


@dataclass
class MemoryConnector:
    """Connects to one cluster; what each kind of connection shall raise, and files, are given. Its time is its own."""

    cluster: MemoryCluster
    files: dict[str, bytes] = field(default_factory=dict)
    when_unverified: Callable[[str], Exception | None] = lambda _name: None
    when_verified: Callable[[str], Exception | None] = lambda _name: None
    when_user: Callable[[str], Exception | None] = lambda _name: None
    reported: list[str] = field(default_factory=list)
    slept_s: float = 0.0
    skew: timedelta = timedelta()
    on_sleep: Callable[[], None] = lambda: None
    users: list[bytes] = field(default_factory=list)

    def unverified(self, server: str) -> MemoryApi:
        assert server == self.cluster.server
        return MemoryApi(self.cluster, NOW - self.skew, self.when_unverified)

    def verified(self, server: str, ca: bytes) -> MemoryApi:
        def fail(name: str) -> Exception | None:
            if ca not in (self.cluster.ca, b""):
                return ClusterUnreachable("has a certificate that is not trusted", error_class="untrusted")
            return self.when_verified(name)

        return MemoryApi(self.cluster, NOW, fail)

    def as_user(self, kubeconfig: bytes, source: str) -> MemoryApi:
        self.users.append(kubeconfig)
        return MemoryApi(self.cluster, NOW, self.when_user)

    def fetch(self, url: str) -> bytes:
        return self.files[url]

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def now(self) -> datetime:
        return NOW

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.slept_s, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.on_sleep()

    def report(self, line: str, /) -> None:
        self.reported.append(line)


def load_join(text: str) -> JoinConfiguration:
    options = ReadOptions(detects_cri=False)
    return ConfigFile.read(text, file="join.yaml", host=FACTS, options=options).join().config


def context_of(
    cluster: MemoryCluster,
    machine: MemoryMachine,
    text: str = JOIN,
    patches: NodePatches | None = None,
    *,
    inspector: MachineInspector | None = None,
    is_whole: bool = False,
) -> JoinContext:
    config = load_join(text)
    return observe_join(
        config,
        find_cluster(config, MemoryConnector(cluster), FACTS, downloads=True),
        host=NodeHost(hostname="node-2"),
        machine=machine,
        patches=patches or NodePatches(),
        now=NOW,
        inspector=inspector,
        is_whole=is_whole,
    )


def other_ca() -> bytes:
    return certificate_pem(issue_tree()["ca"].certificate)
