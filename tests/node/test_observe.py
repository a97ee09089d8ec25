"""What planning reads is remembered as it was first read, and looked at again before a saved plan is carried out."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.engine import Observation, Plan
from garboard.engine.precondition import what_moved_since
from garboard.errors import GarboardError
from garboard.host.root import inside
from garboard.model.component import ExternalEtcd
from garboard.net.tls import new_server_context
from garboard.node.observations import ObservedObjects
from garboard.node.observe import NodeInspector, ObservedMachine, looking_again, observed_members
from tests.support.engine.actions import MemoryFiles
from tests.support.net.proxy_server import ProxyServer, serving_proxy
from tools.harness.certificates import Certificates, make_certificates


class Objects:
    def __init__(self, **versions: str) -> None:
        self.versions = versions

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        found = self.versions.get(name)
        return {"kind": kind, "metadata": {"name": name, "resourceVersion": found}} if found else None


def test_file_counts_as_it_was_first_read(tmp_path: Path) -> None:
    machine, path = ObservedMachine(None), tmp_path / "a"
    assert machine.read(str(path)) is None
    path.write_text("later")
    assert machine.read(str(path)) == b"later"
    machine.folder(str(tmp_path)).read("b")
    assert machine.observed() == (Observation(f"file {tmp_path}/a"), Observation(f"file {tmp_path}/b"))


def test_objects_count_by_their_version() -> None:
    live = Objects(config="7", gone="3")
    objects = ObservedObjects()
    for name in ("config", "gone", "made"):
        objects.remember("ConfigMap", "kube-system", name, live.find("ConfigMap", "kube-system", name))
    objects.remember("Node", "", "restless", {"metadata": {"resourceVersion": "1"}})
    plan = Plan(observed=objects.observed())
    look = looking_again(MemoryFiles(), live)
    assert list(what_moved_since(plan, look)) == []
    live.versions = {"config": "8", "made": "9"}
    assert list(what_moved_since(plan, look)) == [
        "object ConfigMap kube-system/config has changed since the plan was made",
        "object ConfigMap kube-system/gone has gone since the plan was made",
        "object ConfigMap kube-system/made has been made since the plan was made",
    ]


def test_members_count_whatever_their_order() -> None:
    plan = Plan(observed=(observed_members(["1 a", "2 b"]),))
    assert list(what_moved_since(plan, looking_again(MemoryFiles(), Objects(), lambda: ["2 b", "1 a"]))) == []
    moved = what_moved_since(plan, looking_again(MemoryFiles(), Objects(), lambda: ["1 a"]))
    assert list(moved) == ["members of etcd has changed since the plan was made"]


@pytest.mark.parametrize("other", [Observation("file /a", "2"), Observation("file /b", "1"), Observation("file /a")])
def test_digest_of_all_changes_with_any_of_it(other: Observation) -> None:
    assert Plan(observed=(Observation("file /a", "1"),)).observed_digest != Plan(observed=(other,)).observed_digest


class Version(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"etcdserver":"3.6.4"}')

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"), "etcd.test")


@pytest.fixture
def etcd_port(certificates: Certificates) -> Iterator[int]:
    """An etcd that requires a client certificate."""
    context = new_server_context(certificates.ca)
    context.load_cert_chain(certificates.server, certificates.server_key)
    with HTTPServer(("127.0.0.1", 0), Version) as httpd:
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield httpd.server_port
        httpd.shutdown()


def external(certificates: Certificates) -> ExternalEtcd:
    return ExternalEtcd(
        endpoints=(),
        ca_file=str(certificates.ca),
        cert_file=str(certificates.client),
        key_file=str(certificates.client_key),
    )


def test_external_etcd_is_asked_through_the_proxy(
    certificates: Certificates, etcd_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = ProxyServer(etcd_port)
    with serving_proxy(proxy, proxy.accept_connect) as running:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{running.port}")
        # Nobody resolves its name: only the proxy leads there.
        assert NodeInspector(None).etcd_version(external(certificates), "https://etcd.test:2379") == "3.6.4"
    assert proxy.asked == ["CONNECT etcd.test:2379 HTTP/1.1"]


def test_external_etcd_is_asked_with_the_certificates_below_the_root(
    certificates: Certificates, etcd_port: int, tmp_path: Path
) -> None:
    for path in (certificates.ca, certificates.client, certificates.client_key):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    etcd = ExternalEtcd(endpoints=(), ca_file="/ca.crt", cert_file="/client.crt", key_file="/client.key")
    with inside(str(tmp_path)):
        assert NodeInspector(None).etcd_version(etcd, f"https://127.0.0.1:{etcd_port}") == "3.6.4"
        (tmp_path / "ca.crt").unlink()
        outside = external(certificates)
        with pytest.raises(GarboardError, match=f"cannot read {certificates.ca}"):
            NodeInspector(None).etcd_version(outside, f"https://127.0.0.1:{etcd_port}")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["ca_file", "cert_file", "key_file"])
def test_pipe_in_place_of_a_certificate_of_etcd_is_refused(
    certificates: Certificates, tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    etcd = replace(external(certificates), **{name: str(tmp_path / "pipe")})  # type: ignore[arg-type]
    with pytest.raises(GarboardError, match="is a named pipe"):
        NodeInspector(None).etcd_version(etcd, "https://127.0.0.1:1")


def test_empty_authority_of_etcd_is_not_that_of_the_system(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    with pytest.raises(GarboardError, match=r"ca\.crt is empty"):
        NodeInspector(None).etcd_version(
            replace(external(certificates), ca_file=str(tmp_path / "ca.crt")), "https://127.0.0.1:1"
        )
