import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import read_yaml
from garboard.errors import BadDocument
from garboard.pki.kubeconfig import BearerToken, ClientCertificate, Kubeconfig, read_kubeconfig

CONFIG = Kubeconfig(
    cluster_name="prod",
    server="https://10.0.0.1:6443",
    user_name="alice",
    ca=b"the ca",
    credential=ClientCertificate(b"the certificate", b"the key"),
)


def test_written_kubeconfig_has_kubeadms_layout() -> None:
    assert CONFIG.to_bytes().decode() == (
        "apiVersion: v1\n"
        "clusters:\n"
        "- cluster:\n"
        "    certificate-authority-data: dGhlIGNh\n"
        "    server: https://10.0.0.1:6443\n"
        "  name: prod\n"
        "contexts:\n"
        "- context:\n"
        "    cluster: prod\n"
        "    user: alice\n"
        "  name: alice@prod\n"
        "current-context: alice@prod\n"
        "kind: Config\n"
        "users:\n"
        "- name: alice\n"
        "  user:\n"
        "    client-certificate-data: dGhlIGNlcnRpZmljYXRl\n"
        "    client-key-data: dGhlIGtleQ==\n"
    )


def test_what_is_empty_is_left_out() -> None:
    partial = Kubeconfig(
        cluster_name="prod", server="https://a", user_name="u", ca=b"", credential=ClientCertificate(b"", b"k")
    )
    text = partial.to_bytes().decode()
    assert "authority" not in text
    assert "client-certificate" not in text


def test_token_stands_in_place_of_a_certificate() -> None:
    config = Kubeconfig(cluster_name="c", server="https://a", user_name="u", ca=b"x", credential=BearerToken("abc"))
    assert "    token: abc\n" in config.to_bytes().decode()
    assert "abc" not in repr(config)
    assert "the key" not in repr(CONFIG)


names = st.text(min_size=1, max_size=20)


@given(names, names, st.binary(max_size=40))
def test_written_kubeconfig_reads_back(cluster: str, user: str, ca: bytes) -> None:
    config = Kubeconfig(
        cluster_name=cluster, server="https://a:1", user_name=user, ca=ca, credential=ClientCertificate(b"c", b"k")
    )
    try:
        current = read_kubeconfig(config.to_bytes(), "x")
    except BadDocument:
        # Some control characters cannot stand in YAML at all; they are refused as a document, never mangled.
        assert not (cluster + user).isprintable()
        return
    assert (current.server, current.ca, current.client_certificate) == ("https://a:1", ca, b"c")


OTHERS = b"""
apiVersion: v1
kind: Config
current-context: mine
preferences: {colors: true}
contexts:
- {name: other, context: {cluster: b, user: b, namespace: x}}
- {name: mine, context: {cluster: z, user: me}}
clusters:
- {name: z, cluster: {server: "https://z", certificate-authority: /etc/ca.crt, proxy-url: "http://p"}}
- {name: b, cluster: {server: "https://b"}}
users:
- {name: me, user: {client-certificate-data: b2xk, as: root}}
- {name: b, user: {token: t}}
"""


def test_current_context_leads_to_its_cluster_and_user() -> None:
    current = read_kubeconfig(OTHERS, "a.conf")
    assert (current.server, current.ca, current.ca_path) == ("https://z", b"", "/etc/ca.crt")
    assert current.client_certificate == b"old"
    assert "b2xk" not in repr(current)


def test_new_credential_changes_nothing_else() -> None:
    current = read_kubeconfig(OTHERS, "a.conf")
    renewed = read_yaml(current.with_credential(b"ca", ClientCertificate(b"new", b"key")), source="a.conf")
    expected = read_yaml(OTHERS, source="a.conf")
    assert isinstance(expected, dict)
    expected["clusters"] = [
        {"name": "b", "cluster": {"server": "https://b"}},
        {
            "name": "z",
            "cluster": {
                "server": "https://z",
                "certificate-authority": "/etc/ca.crt",
                "proxy-url": "http://p",
                "certificate-authority-data": base64.b64encode(b"ca").decode(),
            },
        },
    ]
    expected["users"] = [
        {"name": "b", "user": {"token": "t"}},
        {"name": "me", "user": {"client-certificate-data": "bmV3", "as": "root", "client-key-data": "a2V5"}},
    ]
    assert renewed == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "not a kubeconfig", id="empty"),
        pytest.param(b"[1]", "not a kubeconfig", id="a list"),
        pytest.param(b"a: [", "a.conf", id="no YAML"),
        pytest.param(b"current-context: x", "current-context is not among its contexts", id="no contexts"),
        pytest.param(b"contexts: 7\ncurrent-context: x", "current-context", id="contexts of another type"),
        pytest.param(
            b"contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x",
            "the cluster of its current context",
            id="no cluster",
        ),
    ],
)
def test_other_files_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadDocument, match=reason):
        read_kubeconfig(data, "a.conf")


def test_data_that_is_not_base64_is_refused() -> None:
    current = read_kubeconfig(OTHERS.replace(b"b2xk", b"b2x"), "a.conf")
    with pytest.raises(BadDocument, match="client-certificate-data is not base64"):
        _ = current.client_certificate
