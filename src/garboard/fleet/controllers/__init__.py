"""Controllers of pools, claims, deployments and their provisions: what each is decided from, and what is decided.

Everything here is pure. `garboard.node.fleet` watches, keeps what was told in an `ObjectCache`, and writes.
"""

from garboard.fleet.controllers.actions import (
    Action,
    Announcement,
    Create,
    Decision,
    Delete,
    Replace,
    ReplaceStatus,
    RunProvision,
    StopProvision,
)
from garboard.fleet.controllers.cache import ObjectCache
from garboard.fleet.controllers.deciding import KEYED_KINDS, WATCHED_KINDS, Reconciled, keys_for
from garboard.fleet.controllers.stored import ObjectId, Stored

__all__ = [
    "KEYED_KINDS",
    "WATCHED_KINDS",
    "Action",
    "Announcement",
    "Create",
    "Decision",
    "Delete",
    "ObjectCache",
    "ObjectId",
    "Reconciled",
    "Replace",
    "ReplaceStatus",
    "RunProvision",
    "StopProvision",
    "Stored",
    "keys_for",
]
