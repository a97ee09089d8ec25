"""A fake API server, and a kubeconfig and a client that lead to it."""

from tests.support.kube.fixtures import api, certificates, client, kubeconfig

__all__ = ["api", "certificates", "client", "kubeconfig"]
