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
from garboard.kube.aio.clock import LOOP_CLOCK, AioClock, LoopClock, TimerHandle, pause
from garboard.kube.aio.store import Delta, IndexKeys, NamespacedName, ObjectStore, key_of
from garboard.kube.aio.work_queue import QueueClosed, QueuePace, WorkQueue

__all__ = [
    "LOOP_CLOCK",
    "AioClock",
    "Bookmark",
    "ChangeType",
    "Changed",
    "Delta",
    "IndexKeys",
    "KubeApi",
    "LoopClock",
    "NamespacedName",
    "ObjectList",
    "ObjectSelection",
    "ObjectStore",
    "QueueClosed",
    "QueuePace",
    "TimerHandle",
    "WatchEvent",
    "WorkQueue",
    "key_of",
    "pause",
    "version_of",
]
