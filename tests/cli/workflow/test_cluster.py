"""Whom a node asks about its cluster, and as whom."""

import pytest

from garboard.cli.workflow.cluster import KUBELET_CONF, NodeCluster
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine

BOOTSTRAP_CONF = "/etc/kubernetes/bootstrap-kubelet.conf"
_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters: [{{name: k, cluster: {{server: 'https://192.0.2.1:6443', insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {user}}}]
"""
TOKEN = _KUBECONFIG.format(user="{token: abcdef.0123456789abcdef}").encode()
# What a kubelet writes before it has asked for its certificate.
WITHOUT_CERTIFICATE = _KUBECONFIG.format(user="{client-certificate: /gone.pem, client-key: /gone.pem}").encode()


class Files(NodeMachine):
    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(None)
        self.files = files

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)


@pytest.mark.parametrize("own", [{}, {KUBELET_CONF: WITHOUT_CERTIFICATE}], ids=["no kubeconfig", "no certificate"])
def test_kubelet_without_a_certificate_is_who_it_joins_as(own: dict[str, bytes]) -> None:
    NodeCluster(Files({**own, BOOTSTRAP_CONF: TOKEN}), KUBELET_CONF, "").check()
    with pytest.raises(GarboardError) as raised:
        NodeCluster(Files(own), KUBELET_CONF, "").check()
    assert raised.value.error_class == "bad-kubeconfig"


def test_nobody_stands_in_for_an_administrator() -> None:
    files = {"/etc/kubernetes/admin.conf": WITHOUT_CERTIFICATE, BOOTSTRAP_CONF: TOKEN}
    with pytest.raises(GarboardError, match="gone"):
        NodeCluster(Files(files), "/etc/kubernetes/admin.conf", "").check()
