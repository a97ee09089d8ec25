"""What a worker has of the quotas of its server: each is divided evenly, so that no two have to ask each other."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

QuotaT = TypeVar("QuotaT", bound="DataclassInstance")


def share_of(quota: int, workers: int) -> int:
    """One worker's part, rounded up: never nothing."""
    return -(-quota // workers)


def quota_share(quota: QuotaT, workers: int) -> QuotaT:
    """The same quota with one worker's part of each of its numbers."""
    return replace(quota, **{each.name: share_of(getattr(quota, each.name), workers) for each in fields(quota)})
