"""What a kubeconfig grants, and which ones are refused."""

import dataclasses

import pytest

from garboard.documents import Json, write_yaml
from garboard.errors import BadDocument
from garboard.kube import KubeClient, in_cluster_access, read_access
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.api_server import FakeApi
from tools.harness.certificates import Certificates


def with_files(server: str, certificates: Certificates) -> bytes:
    """Return a kubeconfig that names files; the CA is beside it."""
    document: Json = {
        "clusters": [{"name": "a", "cluster": {"server": server, "certificate-authority": "ca.crt"}}],
        "users": [
            {
                "name": "b",
                "user": {"client-certificate": str(certificates.client), "client-key": str(certificates.client_key)},
            }
        ],
        "contexts": [{"name": "c", "context": {"cluster": "a", "user": "b"}}],
        "current-context": "c",
    }
    return write_yaml(document).encode()


def test_files_that_it_names_are_read(api: FakeApi, certificates: Certificates) -> None:
    data = with_files(f"https://127.0.0.1:{api.port}", certificates)
    source = str(certificates.ca.parent / "admin.conf")

    def read(path: str) -> bytes | None:
        known = (certificates.ca, certificates.client, certificates.client_key)
        return next((each.read_bytes() for each in known if str(each) == path), None)

    with KubeClient(read_access(data, source, read)) as client:
        assert client.find("Secret", "kube-system", "x") is None
    assert api.users == ["client"]


def test_file_that_it_names_and_that_is_missing_is_told(certificates: Certificates) -> None:
    with pytest.raises(BadDocument, match=r"certificate-authority /here/ca\.crt does not exist"):
        read_access(with_files("https://h:1", certificates), "/here/admin.conf", lambda _path: None)


@pytest.mark.parametrize(
    "server", ["http://127.0.0.1:1", "127.0.0.1:6443", "https://h:99999", "https://", "https://h:x"]
)
def test_server_that_is_no_https_address_is_refused(kubeconfig: Kubeconfig, server: str) -> None:
    with pytest.raises(BadDocument, match="is not an https:// address"):
        read_access(dataclasses.replace(kubeconfig, server=server).to_bytes(), "admin.conf", lambda _path: None)


def test_certificates_that_cannot_be_read_are_told(kubeconfig: Kubeconfig) -> None:
    with pytest.raises(BadDocument, match="its certificates cannot be read"):
        read_access(dataclasses.replace(kubeconfig, ca=b"\xff nonsense").to_bytes(), "x", lambda _path: None)


def test_secrets_are_not_shown(kubeconfig: Kubeconfig) -> None:
    access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
    assert access.credential
    assert "PRIVATE" not in repr(access)
    assert "credential" not in repr(access)


def test_pod_gets_to_its_api_server_by_its_service_account() -> None:
    files = {
        "/var/run/secrets/kubernetes.io/serviceaccount/token": b"t0ken\n",
        "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt": b"pem",
    }
    found = in_cluster_access({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, files.get)
    assert (found.server, found.host, found.token, found.ca) == ("https://[fd00::1]:443", "fd00::1", "t0ken", b"pem")
    with pytest.raises(BadDocument, match="no pod"):
        in_cluster_access({}, files.get)
