"""How the tunnel programs get to their API server: a kubeconfig, or a pod's service account.

The client is loaded by those that have an API server to talk to: most run for months and never do.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from garboard.errors import BadUsage
from garboard.host import Machine

if TYPE_CHECKING:
    from garboard.kube import Access
    from garboard.kube.server_leases import ApiLeaseBook
    from garboard.kube.tokens import ApiTokenReviewer


def access_from(kubeconfig: Path | None) -> "Callable[[], Access]":
    """A way to the API server that is looked up anew every time, since tokens and certificates change."""
    from garboard.kube import in_cluster_access, read_access

    def read() -> "Access":
        if kubeconfig is None:
            return in_cluster_access(os.environ, _content)
        return read_access(Machine().read_file(kubeconfig), str(kubeconfig), _content)

    return read


def _content(path: str) -> bytes | None:
    return Machine().read_file(Path(path)) if Path(path).is_file() else None


def reviewer_for(kubeconfig: Path | None) -> "ApiTokenReviewer":
    from garboard.kube.tokens import ApiTokenReviewer

    return ApiTokenReviewer(access_from(kubeconfig))


def server_lease_book(kubeconfig: Path | None, namespace: str, label: str) -> "ApiLeaseBook":
    """For a server, whose own lease gets the labels."""
    from garboard.kube.server_leases import ApiLeaseBook

    return ApiLeaseBook(access_from(kubeconfig), namespace, label, _labels(label))


def agent_lease_book(kubeconfig: Path | None, namespace: str, selector: str) -> "ApiLeaseBook":
    from garboard.kube.server_leases import ApiLeaseBook

    return ApiLeaseBook(access_from(kubeconfig), namespace, selector)


def _labels(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",")]
    if any(not name or not equals or "=" in value for name, equals, value in pairs):
        raise BadUsage(f"--lease-label={text} is not a list of labels", hint="write k8s-app=konnectivity-server")
    return {name: value for name, _, value in pairs}
