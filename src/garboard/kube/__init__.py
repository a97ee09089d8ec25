"""The API server, over plain blocking requests: read an object, list some, create one or bring it up to date.

It satisfies the Protocols of the executor (`put`) and of the phases that look at a cluster before they plan. Which
objects there should be is decided there; here are the connection, the paths and the errors in words.
"""

from garboard.kube.access import Access, anonymous_access, in_cluster_access, read_access
from garboard.kube.client import KubeClient
from garboard.kube.errors import (
    Forbidden,
    ObjectConflict,
    ObjectExists,
    ObjectInvalid,
    ObjectMissing,
    RequestRefused,
    Unauthenticated,
)
from garboard.kube.turns import LeaseTurns, TurnFailed

__all__ = [
    "Access",
    "Forbidden",
    "KubeClient",
    "LeaseTurns",
    "ObjectConflict",
    "ObjectExists",
    "ObjectInvalid",
    "ObjectMissing",
    "RequestRefused",
    "TurnFailed",
    "Unauthenticated",
    "anonymous_access",
    "in_cluster_access",
    "read_access",
]
