"""Discovery over real connections: an API server of loopback that describes a cluster, rightly and wrongly."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.node.join import NodeConnector
from garboard.phases.join.discovery import discover
from garboard.pki import certificate
from garboard.pki.chain import authority_pins
from garboard.pki.files import IssuedPair
from garboard.pki.issue import certificate_pem, issue_certificate
from garboard.pki.keys import private_key_pem
from tests.support.phases.join.clusters import JOIN, MemoryCluster, load_join
from tests.support.pki.fixtures import INPUTS, KEYS

PATH = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
NOW = datetime.now().astimezone()


def issued(name: str, ca: IssuedPair | None, when: datetime) -> IssuedPair:
    inputs = replace(INPUTS, advertise_address=IPv4Address("127.0.0.1"))
    return issue_certificate(certificate(name), inputs, ca, KEYS, when)


@contextmanager
def serving(folder: Path, server: IssuedPair, answer: Callable[[], tuple[int, bytes]]) -> Iterator[int]:
    """Serve one path over TLS with that certificate; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            code, body = answer() if self.path == PATH else (404, b"{}")
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    (folder / "tls.pem").write_bytes(certificate_pem(server.certificate) + private_key_pem(server.key))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "tls.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        web.daemon_threads = True
        web.socket = tls.wrap_socket(web.socket, server_side=True)
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield web.server_port
        finally:
            web.shutdown()
            thread.join()


class Described:
    """A cluster with an authority of its own, whose API server has a certificate of `signer`'s, from `when` on."""

    def __init__(self, when: datetime = NOW, signer: IssuedPair | None = None) -> None:
        self.ca = issued("ca", None, NOW - timedelta(days=1))
        self.server = issued("apiserver", signer or self.ca, when)
        self.cluster = MemoryCluster()
        self.cluster.pki.files["ca.crt"] = certificate_pem(self.ca.certificate)

    def answer(self) -> tuple[int, bytes]:
        return 200, json.dumps(self.cluster.objects["ConfigMap", "cluster-info"]).encode()

    def join(self, folder: Path, pin: str = "") -> GarboardError | str:
        """Return the server that was found, or why none was."""
        with serving(folder, self.server, self.answer) as port:
            self.cluster.server = f"https://127.0.0.1:{port}"
            self.cluster.describe()
            pins = pin or authority_pins(self.cluster.ca)[0]
            text = JOIN.replace("192.0.2.1:6443", f"127.0.0.1:{port}").replace(
                "unsafeSkipCAVerification: true", f'caCertHashes: ["{pins}"]'
            )
            try:
                found = discover(
                    load_join(text + "timeouts: {discovery: 1s}\n"), NodeConnector(NodeMachine(None), print)
                )
            except GarboardError as error:
                return error
            assert found.server == self.cluster.server
            return "found"


def failure(found: GarboardError | str) -> GarboardError:
    assert isinstance(found, GarboardError)
    return found


def test_cluster_is_found_in_two_passes(tmp_path: Path) -> None:
    assert Described().join(tmp_path) == "found"


def test_wrong_pin_is_named(tmp_path: Path) -> None:
    assert failure(Described().join(tmp_path, "sha256:" + "0" * 64)).error_class == "wrong-ca"


def test_certificate_that_is_not_valid_yet_is_a_matter_of_clocks(tmp_path: Path) -> None:
    error = failure(Described(NOW + timedelta(days=2)).join(tmp_path))
    assert (error.error_class, error.exit_code) == ("clock-skew", 5)
    assert "not valid yet by this machine's clock" in error.message
    assert "date -u" in (error.hint or "")


def test_who_only_repeats_the_description_is_found_out(tmp_path: Path) -> None:
    stranger = issued("ca", None, NOW - timedelta(days=1))
    error = failure(Described(signer=stranger).join(tmp_path))
    assert error.error_class == "untrusted"


def test_endpoint_where_nobody_listens_is_told(tmp_path: Path) -> None:
    text = JOIN.replace("192.0.2.1:6443", "127.0.0.1:1") + "timeouts: {discovery: 0s}\n"
    with pytest.raises(GarboardError, match="refused the connection"):
        discover(load_join(text), NodeConnector(NodeMachine(None), print))
