"""The API server: objects of any kind as JSON, read, listed, written and deleted; and Leases that one node holds.

Requests and answers are values (`requests`, `resources`); `KubeClient` sends them over one blocking connection, and
repeats what may be repeated (`patience`). Which objects are written is decided by the callers.
"""

from garboard.kube.access import Access, anonymous_access, in_cluster_access, read_access
from garboard.kube.client import KubeClient
from garboard.kube.errors import (
    ConnectionBroken,
    Forbidden,
    ObjectConflict,
    ObjectExists,
    ObjectInvalid,
    ObjectMissing,
    RequestRefused,
    ServerBusy,
    Unauthenticated,
    VersionExpired,
)
from garboard.kube.lease_holding import ClusterLeases, HandedLease
from garboard.kube.leases import DURATION_S as LEASE_DURATION_S
from garboard.kube.leases import LeaseClaim, LeaseFailed, LeaseLost, LeasePayload, micro_time
from garboard.kube.requests import ApiRequest, PatchFormat
from garboard.kube.resources import ObjectRef
from garboard.kube.reviews import ReviewedUser, access_review, read_access_review, read_token_review, token_review

__all__ = [
    "LEASE_DURATION_S",
    "Access",
    "ApiRequest",
    "ClusterLeases",
    "ConnectionBroken",
    "Forbidden",
    "HandedLease",
    "KubeClient",
    "LeaseClaim",
    "LeaseFailed",
    "LeaseLost",
    "LeasePayload",
    "ObjectConflict",
    "ObjectExists",
    "ObjectInvalid",
    "ObjectMissing",
    "ObjectRef",
    "PatchFormat",
    "RequestRefused",
    "ReviewedUser",
    "ServerBusy",
    "Unauthenticated",
    "VersionExpired",
    "access_review",
    "anonymous_access",
    "in_cluster_access",
    "micro_time",
    "read_access",
    "read_access_review",
    "read_token_review",
    "token_review",
]
