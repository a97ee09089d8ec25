"""The container runtime of this machine, as plans use it."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

from garboard.engine import PullImage
from garboard.errors import GarboardError

TRIES, PAUSE_S = 5, 0.5


class PullFailed(GarboardError):
    """A registry, or the runtime, did not give an image."""

    default_class = "image-pull"


class NodeRuntime:
    """Pulls images. A connection is made when one is needed, for most plans need none."""

    def __init__(self, socket: str, tell: Callable[[str], None], pause_s: float = PAUSE_S) -> None:
        self.socket = socket
        self._tell = tell
        self._pause_s = pause_s

    def pull(self, action: PullImage) -> None:
        """Pull the images side by side; every failure is told, and is one unless nobody needs the images."""
        images = (action.image, *action.beside)
        with ThreadPoolExecutor(len(images)) as pool:
            failed = [each for each in pool.map(partial(self._pull, is_always=action.is_always), images) if each]
        if not failed:
            return
        told = "; ".join(failed)
        if action.is_needed:
            raise PullFailed(told, hint="check the name and the registry, or pass --ignore-preflight-errors=ImagePull")
        self._tell(f"warning: [ImagePull] {told}")

    def _pull(self, image: str, *, is_always: bool) -> str | None:
        """Pull an image unless it is there, and again a few times, as kubeadm does; return why it failed."""
        from garboard.cri import CriClient

        with closing(CriClient(self.socket)) as runtime:
            for attempt in range(1, TRIES + 1):
                try:
                    if is_always or runtime.image_status(image) is None:
                        runtime.pull_image(image)
                    return None
                except GarboardError as error:
                    if attempt == TRIES:
                        return f"cannot pull {image}: {error.message}"
                    time.sleep(self._pause_s)
        return None

    def remove_sandboxes(self) -> None:
        """Leave it to reset, which has hands of its own for that."""
        raise GarboardError("removing sandboxes is left to garboard reset")
