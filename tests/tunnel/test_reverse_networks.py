"""From the node to the control plane across networks that have no route to each other.

    node 10.91.1.2 ── 10.91.1.1 proxy server 10.91.2.1 ── 10.91.2.2 control plane

The machine in the middle forwards nothing; a node reaches its proxy port and no more.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.harness.certificates import Certificates

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and ip for network namespaces"),
]

LISTEN = "10.200.0.1"
TLS_SERVER = """
import http.server, ssl, sys
server = http.server.HTTPServer(("10.91.2.2", 6443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2)"


class Networks:
    """Three machines as network namespaces, and what runs on them."""

    def __init__(self) -> None:
        self._prefix = f"gt{os.getpid()}"
        self._running: list[subprocess.Popen[bytes]] = []

    def up(self) -> None:
        for name in ("node", "mid", "plane"):
            _ip("netns", "add", self._name(name))
            _ip("-n", self._name(name), "link", "set", "lo", "up")
        for name, subnet in (("node", 1), ("plane", 2)):
            here, there = f"{self._prefix}{name[0]}0", f"{self._prefix}{name[0]}1"
            _ip("-n", self._name("mid"), "link", "add", here, "type", "veth", "peer", "name", there, "netns",
                self._name(name))  # fmt: skip
            for place, link, last in (("mid", here, 1), (name, there, 2)):
                _ip("-n", self._name(place), "addr", "add", f"10.91.{subnet}.{last}/24", "dev", link)
                _ip("-n", self._name(place), "link", "set", link, "up")
        # Where a node would send what is not for its own network: to a machine that drops it.
        _ip("-n", self._name("node"), "route", "add", "default", "via", "10.91.1.1")
        _ip("-n", self._name("plane"), "route", "add", "default", "via", "10.91.2.1")
        _ip("-n", self._name("node"), "addr", "add", f"{LISTEN}/32", "dev", "lo")

    def start(self, where: str, *command: str | Path, folder: Path) -> None:
        with (folder / f"{where}.log").open("ab") as log:
            full = ["ip", "netns", "exec", self._name(where), *map(str, command)]
            self._running.append(subprocess.Popen(full, stdout=log, stderr=log, cwd=folder))

    def run(self, where: str, *command: str | Path) -> "subprocess.CompletedProcess[str]":
        full = ["ip", "netns", "exec", self._name(where), *map(str, command)]
        return subprocess.run(full, capture_output=True, text=True, timeout=30)

    def unplug(self, name: str) -> None:
        """From now on everything that is sent to the machine is lost."""
        _ip("-n", self._name(name), "link", "set", f"{self._prefix}{name[0]}1", "down")

    def down(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        for name in ("node", "mid", "plane"):
            subprocess.run(["ip", "netns", "del", self._name(name)], check=False, capture_output=True)

    def _name(self, name: str) -> str:
        return f"{self._prefix}-{name}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def networks() -> Iterator[Networks]:
    made = Networks()
    with contextlib.ExitStack() as stack:
        stack.callback(made.down)
        made.up()
        yield made


@pytest.fixture
def keys(tmp_path: Path) -> Certificates:
    """With the addresses of both networks in the server's certificate: for agents, and for the node's clients."""
    made = tmp_path / "keys"
    made.mkdir()
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    ca = ["-CA", str(made / "ca.crt"), "-CAkey", str(made / "ca.key")]
    names = f"subjectAltName=IP:10.91.1.1,IP:{LISTEN}"
    for name, signed in (("ca", []), ("server", [*ca, "-addext", names]), ("client", ca)):
        command = ["openssl", "req", "-x509", *new, *signed, "-keyout", made / f"{name}.key", "-out",
                   made / f"{name}.crt", "-subj", f"/CN={name}"]  # fmt: skip
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return Certificates(
        made / "ca.crt", made / "server.crt", made / "server.key", made / "client.crt", made / "client.key"
    )


def test_node_fetches_from_the_control_plane_through_its_agent_only(
    networks: Networks, keys: Certificates, tmp_path: Path
) -> None:
    garboard = Path(sys.executable).parent / "garboard"
    (tmp_path / "hello.txt").write_text("x" * 300_000)
    networks.start("plane", sys.executable, "-c", TLS_SERVER, keys.server, keys.server_key, folder=tmp_path)
    networks.start(
        "mid", garboard, "tunnel", "server", f"--uds-name={tmp_path}/front", "--server-port=0",
        f"--cluster-cert={keys.server}", f"--cluster-key={keys.server_key}", f"--cluster-ca-cert={keys.ca}",
        "--allowed-destination=10.91.2.2:6443", folder=tmp_path,
    )  # fmt: skip
    networks.start(
        "node", garboard, "tunnel", "agent", "--agent-id=node-1", "--proxy-server-host=10.91.1.1",
        f"--ca-cert={keys.ca}", f"--agent-cert={keys.client}", f"--agent-key={keys.client_key}",
        f"--bind-address={LISTEN}", "--target=6443:10.91.2.2:6443", "--target=6444:10.91.2.2:22",
        "--sync-interval=200ms", folder=tmp_path,
    )  # fmt: skip
    fetch: list[str | Path] = ["curl", "-sS", "--fail", "--cacert", keys.ca, f"https://{LISTEN}:6443/hello.txt"]
    until = time.monotonic() + 60
    while (got := networks.run("node", *fetch)).returncode and time.monotonic() < until:
        time.sleep(0.5)
    assert (got.stdout, got.stderr) == ("x" * 300_000, "")
    for port in ("6443", "22"):
        assert networks.run("node", sys.executable, "-c", CONNECT, "10.91.2.2", port).returncode, "there is a route"
        assert networks.run("node", sys.executable, "-c", CONNECT, "10.91.1.1", port).returncode, "the port is open"
    denied = networks.run("node", "curl", "-sS", f"http://{LISTEN}:6444/")
    assert denied.returncode in (7, 56)  # reset, before or after curl takes the connection for made
    assert "target.dial.failed target=6444:10.91.2.2:22" in (tmp_path / "node.log").read_text()
    lines = (tmp_path / "mid.log").read_text().splitlines()
    [told, *_] = [line for line in lines if "verdict=allowed" in line]
    assert " agent=node-1 identity='CN=client' from=10.91.1.2:" in told
    assert f" client={LISTEN}:" in told or " client=10.91.1.2:" in told
    assert " target=10.91.2.2:6443 " in told
    assert [line for line in lines if "agent.targets.refused agent=node-1 " in line and "targets=10.91.2.2:22" in line]


def test_agent_whose_network_swallows_everything_is_given_up_within_the_time_for_a_dial(
    networks: Networks, keys: Certificates, tmp_path: Path
) -> None:
    """Its link is cut without a word; the next client is told at once that there is no agent."""
    garboard = Path(sys.executable).parent / "garboard"
    networks.start(
        "mid", garboard, "tunnel", "server", f"--uds-name={tmp_path}/front", "--server-port=0",
        "--mode=http-connect", f"--cluster-cert={keys.server}", f"--cluster-key={keys.server_key}",
        f"--cluster-ca-cert={keys.ca}", folder=tmp_path,
    )  # fmt: skip
    networks.start(
        "node", garboard, "tunnel", "agent", "--proxy-server-host=10.91.1.1", f"--ca-cert={keys.ca}",
        f"--agent-cert={keys.client}", f"--agent-key={keys.client_key}", "--sync-interval=200ms", folder=tmp_path,
    )  # fmt: skip
    until = time.monotonic() + 60
    while "agent.connected" not in (tmp_path / "mid.log").read_text():
        assert time.monotonic() < until
        time.sleep(0.1)
    networks.unplug("node")
    first = connect(tmp_path / "front")
    assert "while it dialled" in first, first  # and not: no answer in 30 seconds
    assert "no tunnels available" in connect(tmp_path / "front")


def connect(front: Path) -> str:
    """What an HTTP-CONNECT client is told."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(100)
        client.connect(str(front))
        client.sendall(b"CONNECT 10.0.0.1:1 HTTP/1.1\r\n\r\n")
        told = b""
        while data := client.recv(4096):
            told += data
    return told.decode()
