"""Connections through proxies that check what they are told, to a server behind them."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.errors import ClusterUnreachable
from garboard.etcd import EtcdAccess, EtcdClient
from garboard.host.web import Unreachable, fetch
from garboard.kube import KubeClient, ObjectRef, read_access
from garboard.net.connect import ProxyFailed, Route, open_connection, start_tls
from garboard.net.proxies import ProxyAddress
from garboard.pki.kubeconfig import ClientCertificate, Kubeconfig
from tests.support.kube.api_server import FakeApi, serving
from tests.support.net.proxy_server import ProxyServer, serving_proxy
from tools.harness.certificates import Certificates, make_certificates

SERVER = "api.test"  # which nobody resolves: only a proxy leads there
REF = ObjectRef("ConfigMap", "kube-system", "x")
LARGE: Json = {"metadata": {"name": "x"}, "data": {"key": "v" * 1_000_000}}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"), SERVER)


@pytest.fixture
def api(certificates: Certificates) -> Iterator[FakeApi]:
    with serving(FakeApi(), certificates) as running:
        yield running


@pytest.fixture
def kubeconfig(certificates: Certificates) -> Kubeconfig:
    return Kubeconfig(
        cluster_name="kubernetes",
        server=f"https://{SERVER}:6443",
        user_name="admin",
        ca=certificates.ca.read_bytes(),
        credential=ClientCertificate(certificates.client.read_bytes(), certificates.client_key.read_bytes()),
    )


@contextmanager
def proxied(scheme: str, api: FakeApi, certificates: Certificates, user: str = "") -> Iterator[ProxyServer]:
    proxy = ProxyServer(api.port, user)
    accept = proxy.accept_socks if scheme == "socks5" else proxy.accept_connect
    with serving_proxy(proxy, accept, certificates if scheme == "https" else None) as running:
        yield running


def connect(kubeconfig: Kubeconfig, environment: dict[str, str], more: str = "") -> KubeClient:
    data = kubeconfig.to_bytes().decode().replace("    server:", f"{more}    server:")
    return KubeClient(
        read_access(data.encode(), "admin.conf", lambda _path: None),
        timeout_s=5.0,
        patience_s=0.0,
        environment=environment,
    )


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
@pytest.mark.parametrize("user", ["", "someone:hush"])
def test_api_server_is_reached_through_a_proxy(
    api: FakeApi, certificates: Certificates, kubeconfig: Kubeconfig, scheme: str, user: str
) -> None:
    with proxied(scheme, api, certificates, user) as proxy:
        at = f"{user}@" if user else ""
        environment = {"HTTPS_PROXY": f"{scheme}://{at}localhost:{proxy.port}"}
        with connect(kubeconfig, environment) as client:
            client.create(REF, LARGE)
            assert client.find("ConfigMap", "kube-system", "x") == LARGE
    asked = f"{SERVER}:6443"
    assert proxy.asked == [asked if scheme == "socks5" else f"CONNECT {asked} HTTP/1.1"]
    assert api.users == ["client"] * 2  # the certificate of the user is for the API server, not for the proxy


def test_connection_through_a_proxy_is_opened_again(
    api: FakeApi, certificates: Certificates, kubeconfig: Kubeconfig
) -> None:
    with proxied("https", api, certificates) as proxy:
        with connect(kubeconfig, {"HTTPS_PROXY": f"https://localhost:{proxy.port}"}) as client:
            client.find("ConfigMap", "kube-system", "x")
            api.hang_up()
            client.create(REF, LARGE)
        assert len(proxy.asked) == 2


def test_proxy_of_the_kubeconfig_comes_first(api: FakeApi, certificates: Certificates, kubeconfig: Kubeconfig) -> None:
    with proxied("http", api, certificates) as proxy:
        named = f"    proxy-url: http://localhost:{proxy.port}\n"
        with connect(kubeconfig, {"HTTPS_PROXY": "http://localhost:9", "NO_PROXY": "*"}, named) as client:
            assert client.find("ConfigMap", "kube-system", "x") is None
    assert len(proxy.asked) == 1


def test_exception_is_connected_to_directly(api: FakeApi, certificates: Certificates, kubeconfig: Kubeconfig) -> None:
    environment = {"HTTPS_PROXY": "http://localhost:9", "NO_PROXY": ".test"}
    with connect(kubeconfig, environment) as client, pytest.raises(ClusterUnreachable, match="does not resolve"):
        client.find("ConfigMap", "kube-system", "x")


@pytest.mark.parametrize(
    ("scheme", "said"),
    [("http", "407 Proxy Authentication Required"), ("https", "407"), ("socks5", "does not accept its user")],
)
def test_refusal_of_a_proxy_is_told_without_the_password(
    api: FakeApi, certificates: Certificates, kubeconfig: Kubeconfig, scheme: str, said: str
) -> None:
    with proxied(scheme, api, certificates, "someone:right") as proxy:
        environment = {"HTTPS_PROXY": f"{scheme}://someone:hush@localhost:{proxy.port}"}
        with connect(kubeconfig, environment) as client, pytest.raises(ClusterUnreachable, match=said) as caught:
            client.find("ConfigMap", "kube-system", "x")
    assert f"{scheme}://localhost:{proxy.port}" in caught.value.message
    assert "NO_PROXY" in (caught.value.hint or "")
    assert "hush" not in f"{caught.value.message} {caught.value.hint} {caught.value.__cause__!r}"
    assert api.asked == []


def test_proxy_that_is_not_there_is_named(kubeconfig: Kubeconfig) -> None:
    with (
        connect(kubeconfig, {"HTTPS_PROXY": "http://localhost:9"}) as client,
        pytest.raises(ClusterUnreachable, match=r"the proxy http://localhost:9 cannot be used: .*refused"),
    ):
        client.find("ConfigMap", "kube-system", "x")


def test_proxy_of_another_authority_is_not_trusted(api: FakeApi, kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    with proxied("https", api, make_certificates(tmp_path)) as proxy:
        environment = {"HTTPS_PROXY": f"https://someone:hush@localhost:{proxy.port}"}
        with connect(kubeconfig, environment) as client, pytest.raises(ClusterUnreachable, match="the proxy https"):
            client.find("ConfigMap", "kube-system", "x")
    assert proxy.asked == []


def test_server_behind_a_proxy_is_verified(api: FakeApi, certificates: Certificates, kubeconfig: Kubeconfig) -> None:
    other = kubeconfig.to_bytes().replace(SERVER.encode(), b"other.test")
    with proxied("https", api, certificates) as proxy:
        access = read_access(other, "admin.conf", lambda _path: None)
        environment = {"HTTPS_PROXY": f"https://localhost:{proxy.port}"}
        with (
            KubeClient(access, patience_s=0.0, environment=environment) as client,
            pytest.raises(ClusterUnreachable, match="not trusted"),
        ):
            client.find("ConfigMap", "kube-system", "x")
    assert api.asked == []


def test_scheme_that_is_no_proxy_is_refused() -> None:
    with pytest.raises(ProxyFailed, match=r"ftp://p:0 is none of http://"):
        open_connection(Route(SERVER, 1, ProxyAddress("ftp", "p", 0)), 1.0)


def test_server_that_speaks_first_is_heard_from_its_first_byte(api: FakeApi, certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        behind = FakeApi(port=server.getsockname()[1])
        with proxied("http", behind, certificates) as proxy:
            route = Route(SERVER, 1, ProxyAddress("http", "127.0.0.1", proxy.port))
            with closing(open_connection(route, 5.0)) as client:
                accepted, _ = server.accept()
                with accepted:
                    accepted.sendall(b"220 hello")
                    assert client.recv(9) == b"220 hello"


def test_etcd_is_reached_through_the_proxy_of_https() -> None:
    environment = {"HTTPS_PROXY": "http://someone:hush@localhost:9"}
    client = EtcdClient(("https://etcd.test:2379",), EtcdAccess(), environment=environment)
    with pytest.raises(ClusterUnreachable, match=r"the proxy http://localhost:9 cannot be used") as caught:
        client.members()
    assert "hush" not in caught.value.message


def test_discovery_file_is_fetched_through_a_proxy(
    api: FakeApi, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's authorities are those that count, so the server behind is not trusted: it was reached."""
    with proxied("http", api, certificates, "someone:hush") as proxy:
        environment = {"HTTPS_PROXY": f"http://someone:hush@localhost:{proxy.port}"}
        with pytest.raises(Unreachable, match=r"certificate verify failed|self.signed"):
            fetch(f"https://{SERVER}/cluster-info.yaml", environment=environment)
    assert proxy.asked == [f"CONNECT {SERVER}:443 HTTP/1.1"]


def test_plain_file_is_asked_of_the_proxy_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        environment = {"HTTP_PROXY": f"http://u:p@127.0.0.1:{server.getsockname()[1]}"}
        with pytest.raises(Unreachable):
            fetch("http://files.test/x", timeout_s=0.3, environment=environment)
        accepted, _ = server.accept()
        with accepted:
            request = accepted.recv(4096)
    assert request.startswith(b"GET http://files.test/x HTTP/1.1\r\n")
    assert b"proxy-authorization: basic dtpw" in request.lower()


def test_nothing_of_tls_is_left_unread(certificates: Certificates, api: FakeApi) -> None:
    """A reader of an answer outlives the connection, as http.client has it."""
    context = ssl.create_default_context(cafile=certificates.ca)
    context.load_cert_chain(certificates.client, certificates.client_key)
    with proxied("https", api, certificates) as proxy:
        from_proxy = ProxyAddress("https", "localhost", proxy.port)
        route = Route(SERVER, 6443, from_proxy, certificates.ca.read_bytes())
        secure = start_tls(open_connection(route, 5.0), context, SERVER)
        secure.sendall(b"GET /x HTTP/1.0\r\n\r\n")
        file = secure.makefile("rb")
        secure.close()
        assert b"NotFound" in file.read()
        file.close()
        assert secure.fileno() == -1
