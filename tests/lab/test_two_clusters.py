"""Two clusters side by side, one of them on an etcd of somebody else: what is the other's is told, or left alone."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from tests.support.lab.external_etcd import ExternalEtcd
from tests.support.lab.first_node import CONFIG, DOCUMENTS
from tests.support.lab.node_tree import node_tree, unexplained
from tools.harness.lab import RUN, LabUnderTest, put

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
VERSION = str(DEFAULT_VERSION)
ETCD = ExternalEtcd(LabUnderTest(f"t{RUN}-two"), "worker1", "10.89.0.14")
KEY = "0123456789abcdef" * 4
AHEAD_S = 7200
_SKEWED = Path(__file__).parents[1] / "support" / "lab" / "skewed_server.py"
_KUBECTL = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf")
_APPROVAL = "kubeadm:node-autoapprove-bootstrap"


@dataclass(frozen=True)
class Cluster:
    """A cluster by its first node, and how others join it."""

    lab: LabUnderTest
    node: str
    address: str
    token: str
    pin: str

    @property
    def endpoint(self) -> str:
        return f"{self.address}:6443"

    def kubectl(self, *words: str) -> str:
        return self.lab.exec(self.node, *_KUBECTL, *words).stdout


@dataclass(frozen=True)
class Pair:
    """The cluster that is joined and the other one; worker2 joins, and cp3."""

    lab: LabUnderTest
    garboard: tuple[str, ...]
    joined: Cluster
    other: Cluster

    def join(self, node: str, document: str, *flags: str, check: bool = True) -> str:
        """Join with that configuration; one that must fail leaves the node as it was. Return what was said."""
        put(self.lab, node, CONFIG, document)
        before = node_tree(self.lab, node)
        ended = self.lab.exec(node, *self.garboard, "join", "--config", CONFIG, *flags, check=check)
        if not check:
            assert ended.returncode != 0
            assert "Traceback" not in ended.stderr
            assert unexplained(before, node_tree(self.lab, node)) == [], ended.stderr
            assert self.lab.exec(node, "systemctl", "is-active", "kubelet", check=False).stdout != "active\n"
        return ended.stderr


def document(discovery: str, more: str = "", timeouts: str = "discovery: 2s") -> str:
    return (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
        "nodeRegistration: {ignorePreflightErrors: [SystemVerification, NumCPU, Mem]}\n"
        f"timeouts: {{{timeouts}}}\ndiscovery: {discovery}\n{more}"
    )


def by_token(token: str, pin: str, endpoint: str) -> str:
    known = f"caCertHashes: [{pin}]" if pin else "unsafeSkipCAVerification: true"
    return f"{{bootstrapToken: {{token: {token}, apiServerEndpoint: '{endpoint}', {known}}}}}"


def begin(lab: LabUnderTest, garboard: tuple[str, ...], node: str, address: str, etcd: str, *flags: str) -> Cluster:
    """Make a first node that is its own endpoint."""
    text = DOCUMENTS.replace("VERSION", VERSION).replace("10.89.0.11", address)
    text = text.replace("control-plane.lab:6443", f"{address}:6443\n{etcd}".rstrip())
    put(lab, node, CONFIG, text.replace("bootstrapTokens:", f"certificateKey: {KEY}\nbootstrapTokens:"))
    lab.exec(node, *garboard, "init", "--config", CONFIG, "--skip-token-print", *flags)
    told = lab.exec(node, "kubeadm", "token", "create", "--print-join-command").stdout.split()
    return Cluster(lab, node, address, told[4], told[6])


@pytest.fixture(scope="module")
def clusters(garboard_in_node: tuple[str, ...], binaries: Binaries) -> Iterator[Pair]:
    lab = ETCD.lab
    lab.lab("up", "--by", "none", "--control-planes", "3", "--workers", "2", "--kubernetes-version", VERSION)
    try:
        ETCD.start(str(binaries.locate("etcd", "v3.7.0")), VERSION)
        ETCD.give_client("cp2")
        other = begin(lab, garboard_in_node, "cp1", "10.89.0.11", "", "--skip-phases", "addon")
        joined = begin(lab, garboard_in_node, "cp2", "10.89.0.12", ETCD.document, "--upload-certs")
        yield Pair(lab, garboard_in_node, joined, other)
    finally:
        lab.lab("down", check=False)


@pytest.mark.parametrize(
    ("pinned", "error_class", "said"),
    [
        pytest.param("other", "wrong-ca", "this is another cluster", id="with that one's CA"),
        pytest.param("joined", "unknown-token", "of another cluster", id="with the right CA"),
        pytest.param("", "unknown-token", "of another cluster", id="with any CA"),
    ],
)
def test_token_of_another_cluster_is_named(clusters: Pair, pinned: str, error_class: str, said: str) -> None:
    pin = {"other": clusters.other.pin, "joined": clusters.joined.pin, "": ""}[pinned]
    told = clusters.join(
        "worker2", document(by_token(clusters.other.token, pin, clusters.joined.endpoint)), check=False
    )
    assert f"error[{error_class}]" in told
    assert said in told


def test_expired_token_is_named(clusters: Pair) -> None:
    cluster = clusters.joined
    token = clusters.lab.exec("cp2", "kubeadm", "token", "create", "--ttl", "2s").stdout.strip()
    await_unsigned(cluster, token)
    told = clusters.join("worker2", document(by_token(token, cluster.pin, cluster.endpoint)), check=False)
    assert "error[unknown-token]" in told
    assert "it has expired or was deleted" in told


def await_unsigned(cluster: Cluster, token: str) -> None:
    """Wait until the cluster has removed the token, and its signature made with that."""
    identifier = token.partition(".")[0]
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        secrets = cluster.kubectl("get", "secrets", "-n", "kube-system", "-o", "name")
        signed = cluster.kubectl("get", "configmap", "-n", "kube-public", "cluster-info", "-o", "yaml")
        if identifier not in secrets and f"jws-kubeconfig-{identifier}" not in signed:
            return
        time.sleep(0.5)
    raise AssertionError("the token does not expire")


def test_clock_that_is_behind_the_cluster_is_named(clusters: Pair) -> None:
    """The certificate of a control plane whose clock is two hours ahead starts in our future."""
    cluster = clusters.joined
    serve_skewed(cluster, 7443, starts_in_s=AHEAD_S)
    told = clusters.join("worker2", document(by_token(cluster.token, cluster.pin, "cp2:7443")), check=False)
    assert "error[clock-skew]" in told
    assert "not valid yet by this machine's clock" in told
    assert re.search(r"this machine's clock is (2h0m0s|1h59m5\ds) behind the server's", told)


def test_wait_in_vain_for_a_certificate_tells_what_it_hangs_on(clusters: Pair) -> None:
    """Nobody approves the request; and the server that is asked has another time and a name."""
    cluster = clusters.joined
    serve_skewed(cluster, 7444, starts_in_s=-60)
    info = cluster.kubectl("get", "configmap", "-n", "kube-public", "cluster-info", "-o", "jsonpath={.data.kubeconfig}")
    put(clusters.lab, "worker2", "/srv/found.conf", info.replace("10.89.0.12:6443", "cp2:7444"))
    discovery = f"{{file: {{kubeConfigPath: /srv/found.conf}}, tlsBootstrapToken: {cluster.token}}}"
    binding = cluster.kubectl("get", "clusterrolebinding", _APPROVAL, "-o", "json")
    cluster.kubectl("delete", "clusterrolebinding", _APPROVAL)
    try:
        told = clusters.join(
            "worker2", document(discovery, timeouts="tlsBootstrap: 15s"), "--undo-on-failure", check=False
        )
    finally:
        put(clusters.lab, "cp2", "/tmp/binding.json", binding)
        cluster.kubectl("create", "-f", "/tmp/binding.json")
    assert "in vain for the kubelet's own certificate" in told
    assert "kubelet: its service is active, its health: ok" in told
    assert re.search(r"certificate signing request csr-\w+: pending: nobody has approved it", told)
    assert "DNS: cp2 is 10.89.0.12" in told
    assert re.search(r"clock: this machine is (7200|7199|7198) s behind https://cp2:7444", told)
    assert "kubectl --kubeconfig /etc/kubernetes/admin.conf get csr,nodes" in told
    assert "node/worker2" not in cluster.kubectl("get", "nodes", "-o", "name")


def serve_skewed(cluster: Cluster, port: int, *, starts_in_s: int) -> None:
    """Put a front before the API server whose clock is ahead, with a certificate of the cluster's CA."""
    lab, node = cluster.lab, cluster.node
    certificate, key = issue(
        lab.exec(node, "cat", "/etc/kubernetes/pki/ca.crt").stdout,
        lab.exec(node, "cat", "/etc/kubernetes/pki/ca.key").stdout,
        host=node,
        starts=datetime.now(UTC) + timedelta(seconds=starts_in_s),
    )
    for name, text in (("crt", certificate), ("key", key), ("py", _SKEWED.read_text())):
        put(lab, node, f"/srv/{port}.{name}", text)
    words = f"python3 /srv/{port}.py {port} /srv/{port}.crt /srv/{port}.key {AHEAD_S} {cluster.endpoint}"
    lab.exec(node, "sh", "-c", f"setsid nohup {words} </dev/null >/srv/{port}.log 2>&1 &")
    lab.exec(node, "sh", "-c", f"until ss -Htln sport = :{port} | grep -q .; do sleep 0.1; done")


def issue(ca: str, ca_key: str, *, host: str, starts: datetime) -> tuple[str, str]:
    """Return a server certificate and its key, as PEM."""
    issuer = x509.load_pem_x509_certificate(ca.encode())
    signer = serialization.load_pem_private_key(ca_key.encode(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(starts)
        .not_valid_after(starts + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]  # a CA's key can sign
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


@pytest.mark.verify
def test_control_plane_joins_an_external_etcd_as_kubeadm_does_and_reset_leaves_that_alone(clusters: Pair) -> None:
    lab, cluster = clusters.lab, clusters.joined
    members = ETCD.ask("member", "list")
    control_plane = f"controlPlane: {{localAPIEndpoint: {{advertiseAddress: 10.89.0.13}}, certificateKey: '{KEY}'}}\n"
    text = document(by_token(cluster.token, cluster.pin, cluster.endpoint), control_plane, "discovery: 20s")
    told = clusters.join("cp3", text)
    assert "External etcd mode" in told
    ours = made_by_join(lab, "cp3")
    assert "/etc/kubernetes/manifests/etcd.yaml" not in ours
    cluster.kubectl("wait", "--for=condition=Ready", "node/cp3", "--timeout=90s")

    lab.exec("cp3", "sh", "-c", "mkdir -p /var/lib/etcd/member && echo mine >/var/lib/etcd/member/data")
    lab.exec("cp3", *clusters.garboard, "reset", "--force")
    assert lab.exec("cp3", "cat", "/var/lib/etcd/member/data").stdout == "mine\n"
    assert ETCD.ask("member", "list") == members
    cluster.kubectl("delete", "node", "cp3")
    assert json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"], "the data of the cluster are still there"

    lab.exec("cp3", "rm", "-rf", "/var/lib/etcd/member")
    lab.exec("cp3", "kubeadm", "join", "--config", CONFIG)
    assert made_by_join(lab, "cp3") == ours


def made_by_join(lab: LabUnderTest, node: str) -> str:
    """Return every file of a control plane with mode and owner, and the content of those that are rendered."""
    listed = "find /etc/kubernetes /var/lib/kubelet/*.* /var/lib/kubelet/pki -printf '%M %U:%G %p\\n' | sort -k3"
    rendered = "tail -n +1 /etc/kubernetes/manifests/*.yaml /var/lib/kubelet/*.yaml /etc/kubernetes/kubelet.conf"
    found = lab.exec(node, "sh", "-c", f"{listed}; {rendered}").stdout
    return re.sub(r"certificate-authority-data: \S+|2026-\d\d-\d\d-\d\d-\d\d-\d\d", "OWN", found)
