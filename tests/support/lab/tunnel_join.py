"""A cluster whose API server is behind a tunnel, and a bare worker that reaches nothing but the tunnel's port."""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import yaml

from garboard.manifests.tunnel_agent import agent_unit
from garboard.retry import Pauses, wait_until
from garboard.tunnel.deploy.manifests import cluster_configuration, egress_selector
from garboard.tunnel.deploy.plan import EGRESS_FILE, Deployment
from tests.support.lab.clusters import await_nodes
from tests.support.lab.node_tree import Plan
from tools.harness.joining import CONFIG, Joining, begun_cluster
from tools.harness.killing import KillPoint
from tools.harness.lab import RUN, LabUnderTest, garboard, put

CONTROL_PLANE, WORKER, BIND = "10.89.0.11", "worker1", "10.255.0.1"
AGENT_PORT = 8132
DEPLOYMENT = Deployment(server_host=CONTROL_PLANE, bind_address=ip_address(BIND))
SERVER_UNIT = "konnectivity-server"
PKI = "/etc/kubernetes/konnectivity"
_OWN = "10.244.1.0/24"
# What stays open: what is local, the pods of the node itself, and the way to the tunnel.
CLOSED = f"""
table inet closed {{
  chain output {{ type filter hook output priority -10;
    oifname "lo" accept; ct state established,related accept; ip daddr {{ {BIND}, {_OWN} }} accept;
    ip daddr {CONTROL_PLANE} tcp dport {AGENT_PORT} accept; meta l4proto tcp reject with tcp reset; drop; }}
  chain input {{ type filter hook input priority -10;
    iifname "lo" accept; ct state established,related accept; ip saddr {_OWN} accept; drop; }}
  chain forward {{ type filter hook forward priority -10;
    ip saddr {_OWN} ip daddr {_OWN} accept; meta l4proto tcp reject with tcp reset; drop; }}
}}
"""
_ASKS = """
import os, ssl, time, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=place + "ca.crt")
while True:
    try:
        url = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}/apis".format(**os.environ)
        token = {"Authorization": "Bearer " + open(place + "token").read()}
        asked = urllib.request.Request(url, headers=token)
        print("answered", urllib.request.urlopen(asked, context=trust, timeout=10).status, time.time(), flush=True)
    except OSError as error:
        print(error, flush=True)
    time.sleep(1)
"""
_LEFT_OVER = f"""
ls -d {PKI} /etc/systemd/system/konnectivity-agent.service /etc/kubernetes/*.conf 2>/dev/null
ls -A /etc/kubernetes/manifests /etc/systemd/system/*.wants 2>/dev/null | grep konnectivity
ip -o addr show to {BIND}
systemctl is-active konnectivity-agent | grep '^active'
pgrep -af '[t]unnel agent'
"""
_PYTHON = str(Path(sys.executable).resolve())
# What a Python of the machine needs in a pod.
_FOLDERS = ("/usr", "/lib", "/lib64", *(() if sys.base_prefix.startswith("/usr") else (sys.base_prefix,)))


@dataclass(frozen=True)
class TunnelJoin:
    """The lab, its cluster, and a folder that all nodes see, with the credentials of the tunnel in `pki`."""

    joining: Joining
    folder: Path
    version: str

    @property
    def lab(self) -> LabUnderTest:
        return self.joining.lab

    def prepare(self, **more: str) -> None:
        """Write the configuration of the worker: the document about the tunnel is beside that for kubeadm."""
        fields = {"server": f"{CONTROL_PLANE}:{AGENT_PORT}", "credentials": str(self.folder / "pki"), **more}
        kind = {"apiVersion": "tunnel.garboard.dev/v1alpha1", "kind": "TunnelConfiguration"}
        self.joining.prepare(WORKER, f"---\n{json.dumps({**kind, **fields})}\n")

    @property
    def join_command(self) -> tuple[str, ...]:
        return (*self.joining.garboard, "join", "--config", CONFIG)

    def shown(self) -> Plan:
        """Return the plan of the join, as `--dry-run` prints it."""
        plan: Plan = json.loads(self.lab.exec(WORKER, *self.join_command, "--dry-run", "-o", "json").stdout)
        return plan

    def run(self, *words: str) -> None:
        self.lab.exec(WORKER, *self.joining.garboard, *words)

    def kill(self, point: KillPoint) -> None:
        """Join until the point; the run that is left is open."""
        garboard_until = point.of(self.joining.garboard)
        ended = self.lab.exec(WORKER, *garboard_until, *self.join_command[len(self.joining.garboard) :], check=False)
        status = self.lab.exec(WORKER, *self.joining.garboard, "status", "-o", "json").stdout
        assert json.loads(status)["runs"], ended.stderr

    def modes(self) -> str:
        """Return the credentials of the agent with their modes."""
        return self.lab.exec(WORKER, "sh", "-c", f"cd {PKI} && stat -c '%a %n' * | sort").stdout

    def crash(self, node: str, end: str) -> None:
        """End the server or the agent of a node by SIGKILL; its unit starts it again."""
        self.lab.exec(node, "sh", "-c", f"kill -9 $(pgrep -f '[t]unnel {end}')")

    def restart_node(self) -> None:
        """Cut the power of the worker and give it back; its rules are closed again at once."""
        self.lab.lab("stop", WORKER)
        self.lab.lab("start", WORKER)
        close(self.lab)

    def forget_worker(self) -> None:
        """Remove what neither undo nor reset may: the Node and its pods, and the rules of kube-proxy and logs of pods.

        A kube-proxy that finds the table of another leaves its maps empty.
        """
        of_worker = ("--field-selector", f"spec.nodeName={WORKER}")
        self.lab.kubectl("delete", "node", WORKER, "--ignore-not-found")
        self.lab.kubectl("delete", "pods", "-A", *of_worker, "--force", "--grace-period=0", check=False)
        left = "for f in ip ip6; do nft delete table $f kube-proxy; done; rm -rf /var/log/pods /var/log/containers"
        self.lab.exec(WORKER, "sh", "-c", left, check=False)

    def answers(self, address: str) -> bool:
        """Whether an API server answers the worker at that address."""
        url = f"https://{address}:6443/version"
        said = self.lab.exec(
            WORKER, "curl", "-ks", "-m", "3", "-o", "/dev/null", "-w", "%{http_code}", url, check=False
        )
        return said.stdout not in ("", "000")

    def run_pod(self, name: str) -> None:
        """Run a pod on the worker that asks the API server every second, in an image that every node has."""
        image = f"registry.k8s.io/kube-proxy:{self.version}"
        places = {f"folder-{index}": path for index, path in enumerate(_FOLDERS)}
        mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, path in places.items()]
        volumes = [{"name": name, "hostPath": {"path": path}} for name, path in places.items()]
        container = {"name": "main", "image": image, "imagePullPolicy": "Never", "volumeMounts": mounts,
                     "command": [_PYTHON, "-c", _ASKS]}  # fmt: skip
        spec = {"nodeName": WORKER, "terminationGracePeriodSeconds": 0, "containers": [container], "volumes": volumes}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps(pod))

    def await_pod(self, name: str) -> None:
        """Until the pod gets an answer to what it asks from now on; its log comes back through the tunnel."""
        now = time.time()

        def is_answered() -> bool:
            lines = self.lab.kubectl("logs", name, "--tail=3", check=False).splitlines()
            return any(line.startswith("answered 200 ") and float(line.split()[2]) > now for line in lines)

        until(90, is_answered, f"the API server answers the pod {name}")

    def say_hello(self, name: str) -> str:
        return self.lab.kubectl("exec", name, "--", _PYTHON, "-c", "print('hello')")

    def await_worker(self) -> None:
        await_nodes(self.lab, WORKER)

    def left_over(self) -> str:
        """Return what a join through the tunnel leaves on the worker, if it is not taken back."""
        return self.lab.exec(WORKER, "sh", "-c", _LEFT_OVER, check=False).stdout


def until(seconds: float, condition: Callable[[], bool], what: str) -> None:
    problem = wait_until(lambda: None if condition() else what, timeout_s=seconds, pauses=Pauses.every(0.5))
    assert problem is None, f"not within {seconds:.0f} s: {what}"


def close(lab: LabUnderTest) -> None:
    """Leave the worker no way but that to the tunnel."""
    lab.exec(WORKER, "sh", "-c", f"nft -f - <<'EOF'{CLOSED}EOF")


def _server_unit() -> str:
    """Return the tunnel's server as a unit of the first node, which has the agents' address as well."""
    unit = agent_unit(DEPLOYMENT.agent, program="/usr/bin/garboard")
    lines = [line for line in unit.splitlines() if not line.startswith("ExecStart=")]
    flags = " ".join(DEPLOYMENT.server_flags())
    lines.insert(lines.index("Restart=always"), f"ExecStart=/usr/bin/garboard tunnel server {flags}")
    return "\n".join(lines) + "\n"


def _put_behind_tunnel(lab: LabUnderTest, folder: Path) -> None:
    """Start the tunnel's server on the first node, and have its API server use it, as `tunnel manifests` says."""
    put(lab, "cp1", f"/etc/systemd/system/{SERVER_UNIT}.service", _server_unit())
    lab.exec("cp1", "sh", "-c", f"mkdir -p {Path(EGRESS_FILE).parent} && cp -r {folder / 'pki'} {PKI}")
    put(lab, "cp1", EGRESS_FILE, json.dumps(egress_selector(DEPLOYMENT)) + "\n")
    lab.exec("cp1", "systemctl", "enable", "--now", SERVER_UNIT)
    documents = [*yaml.safe_load_all(lab.exec("cp1", "cat", CONFIG).stdout)]
    said = cluster_configuration(DEPLOYMENT)["apiServer"]
    assert isinstance(said, dict)
    for document in documents:
        if document["kind"] == "ClusterConfiguration":
            known = document.setdefault("apiServer", {})
            known.update({key: [*known.get(key, ()), *_items(values)] for key, values in said.items()})
    put(lab, "cp1", CONFIG, yaml.safe_dump_all(documents))


def _items(values: object) -> Sequence[object]:
    assert isinstance(values, list)
    return values


def _lead_kube_proxy_to_agents(lab: LabUnderTest) -> None:
    found = json.loads(lab.kubectl("get", "configmap", "-n", "kube-system", "kube-proxy", "-o", "json"))
    config = yaml.safe_load(found["data"]["kubeconfig.conf"])
    config["clusters"][0]["cluster"]["server"] = DEPLOYMENT.agent.api_url
    found["data"]["kubeconfig.conf"] = yaml.safe_dump(config)
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(found))


@contextmanager
def tunnel_join(name: str, version: str, program: tuple[str, ...]) -> Iterator[TunnelJoin]:
    """Make the cluster, and close the network of its worker, which is bare."""
    folder = Path(tempfile.mkdtemp(prefix="garboard-tunnel-", dir="/opt"))
    try:
        garboard("tunnel", "certs", "-o", str(folder / "pki"), "--server-name", CONTROL_PLANE)
        with begun_cluster(
            f"t{RUN}-{name}", version, program, control_planes=1, workers=1, init=("garboard",),
            before=lambda lab: _put_behind_tunnel(lab, folder),
        ) as joining:  # fmt: skip
            _lead_kube_proxy_to_agents(joining.lab)
            close(joining.lab)
            yield TunnelJoin(joining, folder, version)
    finally:
        shutil.rmtree(folder)
