"""A real API server that reaches its nodes through the tunnel: our ends and the stock ones, in every front-end mode."""

import hashlib
import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from garboard.lab.binaries import Binaries
from tests.support.lab.tunnel_cluster import CONTROL_PLANE, FRONT_PORT, SOCKET, TunnelCluster, tunnel_cluster
from tests.support.lab.webimage import pod, write_web_image
from tools.harness.lab import RUN, LabUnderTest
from tools.harness.snapshots import ClusterSnapshots

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

COPIED = 100_000_000
SAY = "i=0; while true; do echo line $i; i=$((i+1)); busybox sleep 0.1; done"
WEB = "echo from $HOSTNAME >/www/index.html; busybox httpd -p 8080 -h /www; " + SAY


@dataclass(frozen=True)
class Front:
    """How API servers come to the server: its flags, and what the egress selector says."""

    name: str
    port: int
    flags: tuple[str, ...]

    def connection(self, pki: Path) -> object:
        if self.name == "http-tcp":
            files = {"caBundle": "ca.crt", "clientKey": "apiserver.key", "clientCert": "apiserver.crt"}
            tls = {field: str(pki / name) for field, name in files.items()}
            tcp = {"url": f"https://127.0.0.1:{FRONT_PORT}", "tlsConfig": tls}
            return {"proxyProtocol": "HTTPConnect", "transport": {"tcp": tcp}}
        protocol = "GRPC" if self.name == "grpc-uds" else "HTTPConnect"
        return {"proxyProtocol": protocol, "transport": {"uds": {"udsName": SOCKET}}}

    def all_flags(self, pki: Path) -> list[str]:
        if self.name != "http-tcp":
            return [*self.flags, f"--uds-name={SOCKET}", "--server-port=0"]
        keys = {"server-cert": "front.crt", "server-key": "front.key", "server-ca-cert": "ca.crt"}
        return [*self.flags, f"--server-port={FRONT_PORT}", *(f"--{flag}={pki / name}" for flag, name in keys.items())]


FRONTS = [
    Front("grpc-uds", 6444, ("--mode=grpc",)),
    Front("http-uds", 6445, ("--mode=http-connect",)),
    Front("http-tcp", 6446, ("--mode=http-connect",)),
]
one_pair_a_day = pytest.mark.sampled(3, by="api")
PAIRS = [("ours", "stock"), ("stock", "ours"), ("ours", "ours")]


@dataclass(frozen=True)
class Tunnelled:
    """kubectl at an API server behind which there is nothing but the tunnel."""

    cluster: TunnelCluster
    port: int

    def command(self, *arguments: str) -> list[str]:
        return ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", f"--server=https://{CONTROL_PLANE}:{self.port}",
                *arguments]  # fmt: skip

    def kubectl(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> bytes:
        return self.cluster.run("cp1", *self.command(*arguments), stdin=stdin, check=check)

    def download(self, size: int, *arguments: str) -> bytes:
        """What kubectl writes: so many bytes, after which its input is closed."""
        return self.cluster.download("cp1", size, *self.command(*arguments))


@pytest.fixture(scope="module")
def cluster(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory, cluster_snapshots: ClusterSnapshots
) -> Iterator[TunnelCluster]:
    with tunnel_cluster(LabUnderTest(f"t{RUN}-tunnel"), binaries, cluster_snapshots) as made:
        archive = tmp_path_factory.mktemp("image") / "web.tar"
        write_web_image(archive)
        made.lab.lab("load", str(archive))
        made.lab.kubectl("apply", "-f", "-", stdin=web_pod(made.folder / "data"))
        made.lab.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
        yield made


@pytest.fixture(scope="module")
def content(cluster: TunnelCluster) -> bytes:
    """What is copied; the pod has it as /data/content."""
    made = random.Random(7).randbytes(COPIED)
    (cluster.folder / "data" / "content").write_bytes(made)
    return made


def web_pod(data: Path) -> str:
    document = yaml.safe_load(pod("web", "worker1", "sh", "-c", WEB))
    document["spec"]["volumes"] = [{"name": "data", "hostPath": {"path": str(data)}}]
    document["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return json.dumps(document)


@pytest.fixture(scope="module", params=FRONTS, ids=lambda front: front.name)
def front(cluster: TunnelCluster, request: pytest.FixtureRequest) -> Iterator[Front]:
    """An API server that knows no other way to the nodes."""
    chosen: Front = request.param
    cluster.start_api_server(f"api-{chosen.name}", chosen.port, chosen.connection(cluster.pki))
    yield chosen
    cluster.stop(f"api-{chosen.name}")


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: f"{pair[0]}-server,{pair[1]}-agent")
def api(cluster: TunnelCluster, front: Front, request: pytest.FixtureRequest) -> Iterator[Tunnelled]:
    server_is, agent_is = request.param
    cluster.start_server(server_is, front.all_flags(cluster.pki))
    cluster.start_agent(agent_is)
    yield Tunnelled(cluster, front.port)
    cluster.stop("agent")
    cluster.stop("server")


@one_pair_a_day
def test_exec(api: Tunnelled) -> None:
    before = api.cluster.dials()
    assert api.kubectl("exec", "web", "--", "busybox", "echo", "hello") == b"hello\n"
    assert api.kubectl("exec", "-i", "web", "--", "busybox", "tr", "a-z", "A-Z", stdin=b"shout") == b"SHOUT"
    assert api.cluster.dials() > before


@one_pair_a_day
def test_logs_are_followed(api: Tunnelled) -> None:
    following = api.cluster.spawn("cp1", *api.command("logs", "-f", "--tail=1", "web"))
    assert following.stdout is not None
    try:
        lines = [following.stdout.readline() for _ in range(10)]
    finally:
        following.stdout.close()  # kubectl ends with the next line it cannot write
        following.wait(20)
    numbers = [int(line.removeprefix(b"line ")) for line in lines]
    assert numbers == list(range(numbers[0], numbers[0] + 10))


@one_pair_a_day
def test_port_forward(api: Tunnelled) -> None:
    ask = "curl -sf -m 2 http://127.0.0.1:18080/ && break"
    forward = 'timeout 8 "$@" >/dev/null 2>&1 &'
    script = f"{forward} for i in $(seq 50); do {ask}; sleep 0.1; done; kill $!; wait"
    forwarding = api.command("port-forward", "pod/web", "18080:8080")
    assert api.cluster.run("cp1", "sh", "-c", script, "sh", *forwarding, check=False) == b"from web\n"


@one_pair_a_day
def test_webhook(api: Tunnelled) -> None:
    before = api.cluster.dials()
    name = f"hooked-{os.urandom(4).hex()}"
    labelled = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"hooked":"please"}}}}}}'
    api.kubectl("create", "-f", "-", stdin=labelled.encode())
    assert api.kubectl("get", "configmap", name, "-o", "jsonpath={.metadata.annotations.hooked}") == b"yes"
    assert api.cluster.dials() > before


@one_pair_a_day
def test_aggregated_api(api: Tunnelled) -> None:
    until = time.monotonic() + 60
    while b'"tunnel.test/v1"' not in api.kubectl("get", "--raw", "/apis/tunnel.test/v1", check=False):
        assert time.monotonic() < until
        time.sleep(0.5)


@one_pair_a_day
def test_large_copy_is_exact(api: Tunnelled, front: Front, content: bytes) -> None:
    size = COPIED if front.name != "http-uds" else COPIED // 10  # the same bytes as on TCP, with less around them
    # The program waits until all has come: every 5 seconds kubectl sends a heartbeat, and one that reaches a kubelet
    # whose program has ended cuts off what is under way, with a tunnel (of whatever make) as without one.
    script = f"busybox head -c {size} /data/content; busybox cat >/dev/null"
    down = api.download(size, "exec", "-i", "web", "--", "busybox", "sh", "-c", script)
    assert len(down) == size
    assert hashlib.sha256(down).digest() == hashlib.sha256(content[:size]).digest(), api.cluster.said()


@one_pair_a_day
def test_upload_is_exact(api: Tunnelled, front: Front, content: bytes) -> None:
    sent = content if front.name == "grpc-uds" else content[:5_000_000]
    script = "busybox cat >/tmp/y; busybox sha256sum /tmp/y; busybox rm /tmp/y"
    told = api.kubectl("exec", "-i", "web", "--", "busybox", "sh", "-c", script, stdin=sent)
    assert told.split()[0].decode() == hashlib.sha256(sent).hexdigest()


def test_there_is_no_other_way_to_the_node(cluster: TunnelCluster) -> None:
    direct = Tunnelled(cluster, 6443)
    assert b"hello" not in direct.kubectl("exec", "web", "--", "busybox", "echo", "hello", check=False)
    assert b"web" in direct.kubectl("get", "pods")
