"""A cluster whose API server reaches its worker through a tunnel only: programs in its nodes, and a webhook there."""

import base64
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from garboard.cli.lab.wiring import labs
from garboard.host import Machine
from garboard.lab.binaries import Binaries
from garboard.lab.bundle import write_zipapp
from tools.harness.lab import LabUnderTest, garboard
from tools.harness.snapshots import ClusterSnapshots

CONTROL_PLANE, WORKER = "10.89.0.11", "10.89.0.12"
AGENT_PORT, HEALTH_PORT, ADMIN_PORT, FRONT_PORT = 8132, 8134, 8133, 8131
HOOK_ADDRESS, HOOK_PORT = "10.96.77.77", 9443
SOCKET = "/run/konnectivity.sock"
LOG_TAIL = 4000
HOOK = """
import base64, http.server, json, ssl, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, body, code=200):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = [{"op": "add", "path": "/metadata/annotations", "value": {"hooked": "yes"}}]
        self.answer({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode()}})
    def do_GET(self):
        if self.path.partition("?")[0] == "/apis/tunnel.test/v1":
            self.answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "tunnel.test/v1",
                         "resources": []})
        else:
            self.answer({"kind": "Status", "code": 404}, 404)

server = http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[3])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@dataclass
class TunnelCluster:
    """The lab, a folder that every node sees, and what runs in the nodes."""

    lab: LabUnderTest
    folder: Path
    binaries: Binaries
    running: dict[str, tuple[str, "subprocess.Popen[bytes]"]] = field(default_factory=dict)

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def ours(self) -> list[str]:
        """The command that is garboard in a node."""
        return [str(Path(sys.executable).resolve()), str(self.folder / "garboard.pyz"), "tunnel"]

    def start(self, node: str, name: str, command: Sequence[str | Path]) -> None:
        """Start a program in a node; it is known there by a file with its process id."""
        script = f'echo $$ >/run/{name}.pid; exec "$@"'
        with (self.folder / f"{name}.log").open("ab") as log:
            entered = labs().enter(self.lab.name, node, ["sh", "-c", script, name, *map(str, command)])
            self.running[name] = node, subprocess.Popen(entered, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, name: str) -> None:
        node, process = self.running.pop(name)
        self.run(node, "sh", "-c", f"kill -9 $(cat /run/{name}.pid)", check=False)
        process.wait(10)

    def run(self, node: str, *command: str, stdin: bytes = b"", check: bool = True, timeout_s: float = 60) -> bytes:
        """Run a program in a node to its end and return what it said."""
        entered = labs().enter(self.lab.name, node, list(command))
        ended = subprocess.run(entered, input=stdin, capture_output=True, timeout=timeout_s, check=False)
        if check and ended.returncode != 0:
            raise AssertionError(f"{command}: {ended.stdout[-500:]!r} {ended.stderr[-2000:]!r}\n{self.said()}")
        return ended.stdout

    def download(self, node: str, size: int, *command: str, timeout_s: float = 200) -> bytes:
        """What a program in a node writes, so many bytes; then its input is closed, and it has to end well."""
        entered = labs().enter(self.lab.name, node, list(command))
        pipe = subprocess.PIPE
        with subprocess.Popen(entered, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
            assert process.stdout is not None
            given_up = threading.Timer(timeout_s, process.kill)
            given_up.start()
            got = bytearray()
            while len(got) < size and (piece := process.stdout.read(1 << 20)):
                got += piece
            rest, errors = process.communicate()
            given_up.cancel()
        if process.returncode != 0:
            raise AssertionError(f"{command}: ended after {len(got)} bytes: {errors[-2000:]!r}\n{self.said()}")
        return bytes(got + rest)

    def said(self) -> str:
        """The end of what every running program has logged, to be shown when a test fails."""
        logs = {name: (self.folder / f"{name}.log").read_text(errors="replace") for name in self.running}
        return "\n".join(f"--- {name}\n{text[-LOG_TAIL:]}" for name, text in logs.items())

    def spawn(self, node: str, *command: str) -> "subprocess.Popen[bytes]":
        entered = labs().enter(self.lab.name, node, list(command))
        return subprocess.Popen(entered, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def wait_for(self, node: str, url: str, text: str = "", timeout_s: float = 30) -> None:
        """Until the page answers with the text in it."""
        until = time.monotonic() + timeout_s
        while True:
            said = self.run(node, "curl", "-ks", "-m", "2", "-w", "%{http_code}", url, check=False).decode()
            if said.endswith("200") and text in said:
                return
            assert time.monotonic() < until, f"{url} in {node} has no {text!r}"
            time.sleep(0.1)

    def block_ways_in(self) -> None:
        """Let the control plane open no connection to the kubelet of the worker: nodes may only dial out."""
        rule = f"ip saddr {CONTROL_PLANE} tcp dport 10250 ct state new reject with tcp reset"
        rules = f"table inet way_in {{ chain input {{ type filter hook input priority -10; {rule}; }}; }}"
        self.run("worker1", "nft", "-f", "-", stdin=rules.encode())

    def start_hook(self) -> None:
        """A webhook and an aggregated API, served on the worker behind a Service."""
        (self.folder / "hook.py").write_text(HOOK)
        keys = [self.pki / "agent-hook" / name for name in ("server.crt", "server.key")]
        python = Path(sys.executable).resolve()
        self.start("worker1", "hook", [python, self.folder / "hook.py", *keys, str(HOOK_PORT)])
        ca = base64.b64encode((self.pki / "agent-hook" / "ca.crt").read_bytes()).decode()
        service = {"name": "hook", "namespace": "default"}
        selector = {"matchLabels": {"hooked": "please"}}
        objects = [
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
             "spec": {"clusterIP": HOOK_ADDRESS, "ports": [{"port": 443, "targetPort": HOOK_PORT}]}},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
             "metadata": {"name": "hook", "labels": {"kubernetes.io/service-name": "hook"}},
             "endpoints": [{"addresses": [WORKER], "conditions": {"ready": True}}], "ports": [{"port": HOOK_PORT}]},
            {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.tunnel.test"},
             "spec": {"group": "tunnel.test", "version": "v1", "service": service, "caBundle": ca,
                      "groupPriorityMinimum": 100, "versionPriority": 10}},
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
             "metadata": {"name": "hook"}, "webhooks": [{
                 "name": "hook.tunnel.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                 "clientConfig": {"service": {**service, "path": "/"}, "caBundle": ca}, "objectSelector": selector,
                 "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                            "operations": ["CREATE"]}]}]},
        ]  # fmt: skip
        self.lab.kubectl("apply", "-f", "-", stdin="---\n".join(json.dumps(each) + "\n" for each in objects))

    def start_api_server(self, name: str, port: int, egress: object) -> None:
        """One more API server of the cluster, with an egress selector; it leaves the cluster's endpoints alone."""
        config = self.folder / f"{name}.yaml"
        selection = {"name": "cluster", "connection": egress}
        kind = {"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration"}
        config.write_text(json.dumps({**kind, "egressSelections": [selection]}))
        manifest = yaml.safe_load(self.run("cp1", "cat", "/etc/kubernetes/manifests/kube-apiserver.yaml"))
        arguments = manifest["spec"]["containers"][0]["command"][1:]
        changed = [
            f"--secure-port={port}",
            "--endpoint-reconciler-type=none",
            f"--egress-selector-config-file={config}",
        ]
        program = self.binaries.locate("kube-apiserver", "v1.37.1")
        self.start("cp1", name, [program, *(each for each in arguments if "secure-port" not in each), *changed])
        self.wait_for("cp1", f"https://{CONTROL_PLANE}:{port}/readyz", "ok", 60)

    def start_server(self, whose: str, front: Sequence[str]) -> None:
        program = [*self.ours, "server"] if whose == "ours" else [str(self.binaries.locate("konnectivity-server"))]
        keys = {"cluster-cert": "server.crt", "cluster-key": "server.key", "cluster-ca-cert": "ca.crt"}
        self.start("cp1", "server", [
            *program, *front, f"--agent-port={AGENT_PORT}", f"--health-port={HEALTH_PORT}",
            f"--admin-port={ADMIN_PORT}", "--logtostderr=true", "--server-id=one", "--keepalive-time=1m",
            *(f"--{flag}={self.pki / file}" for flag, file in keys.items()),
        ])  # fmt: skip
        self.wait_for("cp1", f"http://127.0.0.1:{HEALTH_PORT}/healthz", "ok")

    def start_agent(self, whose: str) -> None:
        program = [*self.ours, "agent"] if whose == "ours" else [str(self.binaries.locate("konnectivity-agent"))]
        keys = {"ca-cert": "ca.crt", "agent-cert": "agent.crt", "agent-key": "agent.key"}
        self.start("worker1", "agent", [
            *program, f"--proxy-server-host={CONTROL_PLANE}", f"--proxy-server-port={AGENT_PORT}", "--v=2",
            "--sync-interval=200ms", "--sync-interval-cap=1s", "--agent-id=worker1",
            *(f"--{flag}={self.pki / file}" for flag, file in keys.items()),
        ])  # fmt: skip
        self.wait_for("cp1", f"http://127.0.0.1:{HEALTH_PORT}/readyz", "ok")

    def dials(self) -> int:
        """How many connections the server has asked its agents for."""
        page = self.run("cp1", "curl", "-s", f"http://127.0.0.1:{HEALTH_PORT}/metrics").decode()
        rows = [line for line in page.splitlines() if "stream_packets_total{" in line and "DIAL_REQ" in line]
        return sum(int(float(row.rpartition(" ")[2])) for row in rows if "to_agent" in row)


@contextlib.contextmanager
def tunnel_cluster(lab: LabUnderTest, binaries: Binaries, snapshots: ClusterSnapshots) -> Iterator[TunnelCluster]:
    """The cluster with certificates, the program and the webhook in place; what was started is stopped."""
    folder = Path(tempfile.mkdtemp(prefix="garboard-tunnel-", dir="/opt"))
    cluster = TunnelCluster(lab, folder, binaries)
    try:
        (folder / "data").mkdir()
        write_zipapp(folder / "garboard.pyz", Machine())
        garboard("tunnel", "certs", "-o", str(cluster.pki), "--server-name", CONTROL_PLANE)
        garboard("tunnel", "certs", "-o", str(cluster.pki / "agent-hook"), "--server-name", "hook.default.svc")
        snapshots.up(lab, "--control-planes", "1", "--workers", "1")
        cluster.block_ways_in()
        cluster.start_hook()
        yield cluster
    finally:
        for name in list(cluster.running):
            cluster.stop(name)
        lab.lab("down", check=False)
        shutil.rmtree(folder)
