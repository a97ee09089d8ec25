"""The container runtime of this machine, as plans use it."""

import time
from contextlib import closing

from garboard.engine import PullImage
from garboard.errors import GarboardError

_TRIES, _PAUSE_S = 5, 0.5


class NodeRuntime:
    """Pulls images; a connection is made for each, for most plans need none."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    def pull(self, action: PullImage) -> None:
        """Pull an image unless it is there; a registry that fails is asked again, as kubeadm does."""
        from garboard.cri import CriClient, RuntimeCallFailed

        with closing(CriClient(self.socket)) as runtime:
            if not action.is_always and runtime.image_status(action.image) is not None:
                return
            for attempt in range(1, _TRIES + 1):
                try:
                    runtime.pull_image(action.image)
                    return
                except RuntimeCallFailed as error:
                    if attempt == _TRIES:
                        raise _failed(action.image, error) from error
                    time.sleep(_PAUSE_S)

    def remove_sandboxes(self) -> None:
        raise GarboardError("removing sandboxes belongs to reset")


def _failed(image: str, error: GarboardError) -> GarboardError:
    return GarboardError(
        f"cannot pull {image}: {error.message}",
        hint=f"check the name and the registry: crictl pull {image}",
        error_class="image-pull",
    )
