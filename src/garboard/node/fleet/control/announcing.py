"""Events about objects, so that `kubectl describe` tells what was decided. One that cannot be written is no failure."""

import logging
import zlib
from collections.abc import Callable
from datetime import datetime

from garboard.errors import GarboardError
from garboard.fleet.controllers import Announcement
from garboard.fleet.controllers.stored import write_time
from garboard.kube import ObjectRef
from garboard.kube.aio import KubeApi
from garboard.values import Json

log = logging.getLogger("garboard.fleet")

_LONGEST = 1024


class Announcer:
    """Writes Events."""

    def __init__(self, api: KubeApi, now: Callable[[], datetime]) -> None:
        self._api, self._now = api, now

    async def announce(self, each: Announcement) -> None:
        event = event_of(each, self._now())
        ref = ObjectRef("Event", str(each.about.namespace or "default"), str(_name(each, self._now())), "v1")
        log.info("event %s reason=%s message=%r", each.about.id, each.reason, each.message)
        try:
            await self._api.create(ref, event)
        except GarboardError as error:
            log.debug("event.lost %s reason=%r", each.about.id, error.message)


def event_of(each: Announcement, now: datetime) -> dict[str, Json]:
    about, moment = each.about, write_time(now)
    involved: dict[str, Json] = {
        "apiVersion": about.text("apiVersion"), "kind": about.kind, "name": about.name, "namespace": about.namespace,
        "uid": about.uid, "resourceVersion": about.version,
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": _name(each, now), "namespace": about.namespace or "default"},
        "involvedObject": involved,
        "type": each.type,
        "reason": each.reason,
        "message": each.message[:_LONGEST],
        "source": {"component": "garboard-fleet"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _name(each: Announcement, now: datetime) -> str:
    """Return a name that the same announcement has again, so that it is not written twice for one version."""
    digest = zlib.crc32(f"{each.about.uid}/{each.about.version}/{each.reason}/{each.message}".encode())
    return f"{each.about.name[:200]}.{digest:08x}{int(now.timestamp()) // 3600:x}"
