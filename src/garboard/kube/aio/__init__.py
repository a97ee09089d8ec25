"""The API server for controllers: asyncio, lists with their versions, watches that resume, a store, a queue, a leader.

`KubeApi` is what controllers write against; `AioKubeClient` is the real one. Requests, answers and the patience with a
busy server are those of the blocking client (`garboard.kube`); what objects mean is left to the callers.
"""

from garboard.kube.aio.api import (
    Bookmark,
    Changed,
    ChangeType,
    KubeApi,
    ObjectList,
    ObjectSelection,
    WatchEvent,
    version_of,
)
from garboard.kube.aio.client import AioKubeClient
from garboard.kube.aio.clock import LOOP_CLOCK, AioClock, LoopClock, TimerHandle, pause, time_limit
from garboard.kube.aio.leading import LeaderElection, LeaderPace
from garboard.kube.aio.reflector import Reflector, without_managed_fields
from garboard.kube.aio.store import Delta, IndexKeys, NamespacedName, ObjectStore, key_of
from garboard.kube.aio.synced import Synced, all_synced
from garboard.kube.aio.work_queue import QueueClosed, QueuePace, WorkQueue
from garboard.kube.aio.workers import run_workers

__all__ = [
    "LOOP_CLOCK",
    "AioClock",
    "AioKubeClient",
    "Bookmark",
    "ChangeType",
    "Changed",
    "Delta",
    "IndexKeys",
    "KubeApi",
    "LeaderElection",
    "LeaderPace",
    "LoopClock",
    "NamespacedName",
    "ObjectList",
    "ObjectSelection",
    "ObjectStore",
    "QueueClosed",
    "QueuePace",
    "Reflector",
    "Synced",
    "TimerHandle",
    "WatchEvent",
    "WorkQueue",
    "all_synced",
    "key_of",
    "pause",
    "run_workers",
    "time_limit",
    "version_of",
    "without_managed_fields",
]
