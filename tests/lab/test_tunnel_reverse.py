"""A node that reaches the API server through its agent alone, on the files that `tunnel manifests` wrote."""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from garboard.lab.binaries import Binaries
from garboard.model.image import GARBOARD_IMAGE
from tests.support.lab.tunnel_cluster import CONTROL_PLANE, TunnelCluster
from tools.harness.lab import RUN, LabUnderTest, garboard
from tools.harness.snapshots import ClusterSnapshots

pytestmark = [pytest.mark.lab, pytest.mark.timeout(500)]

BIND = "10.255.0.1"
ENDPOINT = "10.89.0.1"
# Only what the API server's own node and the machine's way in need.
CLOSED_ON_CP1 = (
    "table inet closed { chain input { type filter hook input priority -10; "
    "ip saddr { 10.89.0.12, 10.244.1.0/24 } tcp dport 6443 reject with tcp reset; }; }"
)
_NO_ENDPOINT = f"ip daddr {ENDPOINT} tcp dport 6443 reject with tcp reset;"
CLOSED_ON_WORKER = (
    f"table inet closed {{ chain output {{ type filter hook output priority -10; {_NO_ENDPOINT} }}; "
    f"chain forward {{ type filter hook forward priority -10; {_NO_ENDPOINT} }}; }}"
)
IN_POD = """
import ssl, time, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=place + "ca.crt")
asked = urllib.request.Request("https://kubernetes.default.svc.cluster.local/apis",
                               headers={"Authorization": "Bearer " + open(place + "token").read()})
while True:
    try:
        print(urllib.request.urlopen(asked, context=trust, timeout=20).status)
        time.sleep(600)
    except OSError as error:  # the node has only just come
        print(error)
        time.sleep(1)
"""


def within(seconds: float, condition: Callable[[], bool], what: str) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.5)


class Reversed(TunnelCluster):
    """The cluster on its way from an exposed API server to one behind the tunnel."""

    def install(self, node: str, source: Path, target: str) -> None:
        """Copy a file or folder of the machine into a node."""
        self.run(node, "sh", "-c", 'mkdir -p "$(dirname "$2")" && cp -r "$1" "$2"', "sh", str(source), target)

    def move_control_plane(self, out: Path) -> None:
        """Let kubeadm render the API server anew, with what `tunnel manifests` says about it."""
        self.install("cp1", self.pki, "/etc/kubernetes/konnectivity")
        self.install("cp1", out / "control-plane/egress-selector.yaml",
                     "/etc/kubernetes/konnectivity-server/egress-selector.yaml")  # fmt: skip
        self.install("cp1", out / "control-plane/manifests/konnectivity-server.yaml",
                     "/etc/kubernetes/manifests/konnectivity-server.yaml")  # fmt: skip
        get = ("get", "configmap", "-n", "kube-system", "kubeadm-config", "-o", "jsonpath={.data.ClusterConfiguration}")
        configuration = yaml.safe_load(self.lab.kubectl(*get))
        said = yaml.safe_load((out / "control-plane/kubeadm.yaml").read_text())["apiServer"]
        known = configuration["apiServer"]
        for key, values in said.items():
            known[key] = [*known.get(key, []), *values]
        init = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
                "localAPIEndpoint": {"advertiseAddress": CONTROL_PLANE, "bindPort": 6443}}  # fmt: skip
        self.run("cp1", "sh", "-c", "cat >/run/kubeadm.yaml", stdin=yaml.safe_dump_all([configuration, init]).encode())
        self.run("cp1", "sh", "-c", "rm /etc/kubernetes/pki/apiserver.*")
        self.run("cp1", "kubeadm", "init", "phase", "certs", "apiserver", "--config", "/run/kubeadm.yaml")
        self.run("cp1", "kubeadm", "init", "phase", "control-plane", "apiserver", "--config", "/run/kubeadm.yaml")

    def endpoint(self) -> str:
        return self.lab.kubectl("get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[*].addresses[*].ip}",
                                check=False)  # fmt: skip

    def lead_kube_proxy_to_the_agent(self) -> None:
        found = json.loads(self.lab.kubectl("get", "configmap", "-n", "kube-system", "kube-proxy", "-o", "json"))
        config = yaml.safe_load(found["data"]["kubeconfig.conf"])
        config["clusters"][0]["cluster"]["server"] = f"https://{BIND}:6443"
        found["data"]["kubeconfig.conf"] = yaml.safe_dump(config)
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps(found))

    def reset_worker(self, out: Path) -> None:
        """The worker forgets the cluster, and gets nothing but its agent and a bootstrap kubeconfig."""
        self.run("worker1", "systemctl", "stop", "kubelet")
        self.lab.kubectl("delete", "node", "worker1")
        self.run("worker1", "sh", "-c", "crictl stop $(crictl ps -q)", check=False)
        # A kube-proxy that finds the table of another leaves its maps empty.
        self.run("worker1", "sh", "-c", "nft delete table ip kube-proxy; nft delete table ip6 kube-proxy", check=False)
        self.run("worker1", "sh", "-c", "rm -rf /etc/kubernetes/kubelet.conf /var/lib/kubelet/pki")
        for name in ("ca.crt", "agent.crt", "agent.key"):
            self.install("worker1", self.pki / name, f"/etc/kubernetes/konnectivity/{name}")
        self.install("worker1", out / "node/manifests/konnectivity-agent.yaml",
                     "/etc/kubernetes/manifests/konnectivity-agent.yaml")  # fmt: skip
        self.install("worker1", out / "node/bootstrap-kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf")
        self.run("worker1", "systemctl", "start", "kubelet")

    def answers(self, address: str) -> bool:
        """Whether something on the worker is answered there."""
        url = f"https://{address}:6443/version"
        code = self.run("worker1", "curl", "-ks", "-m", "3", "-o", "/dev/null", "-w", "%{http_code}", url, check=False)
        return code != b"000"


@pytest.fixture(scope="module")
def cluster(binaries: Binaries, cluster_snapshots: ClusterSnapshots) -> Iterator[Reversed]:
    lab = LabUnderTest(f"t{RUN}-reverse")
    folder = Path(tempfile.mkdtemp(prefix="garboard-tunnel-", dir="/opt"))
    made = Reversed(lab, folder, binaries)
    try:
        garboard("tunnel", "certs", "-o", str(made.pki), "--server-name", CONTROL_PLANE)
        garboard("image", "-o", str(folder / "image.tar"))
        cluster_snapshots.up(lab, "--control-planes", "1", "--workers", "1")
        lab.lab("load", str(folder / "image.tar"))
        yield made
    finally:
        lab.lab("down", check=False)
        shutil.rmtree(folder)


def test_node_joins_and_lives_through_its_agent_alone(cluster: Reversed) -> None:
    lab, out = cluster.lab, cluster.folder / "out"
    token = cluster.run("cp1", "kubeadm", "token", "create").decode().strip()
    ca = cluster.folder / "cluster-ca.crt"
    ca.write_bytes(cluster.run("cp1", "cat", "/etc/kubernetes/pki/ca.crt"))
    garboard(
        "tunnel", "manifests", "-o", str(out), "--server-host", CONTROL_PLANE, "--bind-address", BIND,
        "--cluster-ca", str(ca), "--token", token,
    )  # fmt: skip

    cluster.move_control_plane(out)
    within(120, lambda: cluster.endpoint() == BIND, "the API server publishes the agents' address")
    cluster.lead_kube_proxy_to_the_agent()

    # Closed: neither the API server nor the lab's endpoint answer the worker any more.
    assert cluster.answers(CONTROL_PLANE)
    cluster.run("cp1", "nft", "-f", "-", stdin=CLOSED_ON_CP1.encode())
    cluster.run("worker1", "nft", "-f", "-", stdin=CLOSED_ON_WORKER.encode())
    assert not cluster.answers(CONTROL_PLANE)
    assert not cluster.answers(ENDPOINT)

    cluster.reset_worker(out)
    ready = ("get", "node", "worker1", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")
    within(120, lambda: lab.kubectl(*ready, check=False) == "True", "the kubelet has joined through its agent")
    config = yaml.safe_load(cluster.run("worker1", "cat", "/etc/kubernetes/kubelet.conf"))
    assert config["clusters"][0]["cluster"]["server"] == f"https://{BIND}:6443"
    assert cluster.answers(BIND)

    _check_pod(cluster)

    assert not cluster.answers(CONTROL_PLANE)
    assert not cluster.answers(ENDPOINT)


def _check_pod(cluster: Reversed) -> None:
    """A pod on the worker asks `kubernetes.default`, and what it says comes back through the other direction."""
    python = str(Path(sys.executable).resolve())
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks"},
        "spec": {"nodeName": "worker1", "terminationGracePeriodSeconds": 0, "containers": [{
            "name": "main", "image": GARBOARD_IMAGE, "imagePullPolicy": "Never",
            "command": [python, "-u", "-c", IN_POD],
        }]},
    }  # fmt: skip
    cluster.lab.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    within(90, lambda: "200" in cluster.lab.kubectl("logs", "asks", check=False).splitlines(), "the pod gets an answer")
    hello = cluster.lab.kubectl("exec", "asks", "--", python, "-c", "print('hello')")
    assert hello == "hello\n"
