"""The container runtime of this machine, as plans use it."""

import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from garboard.engine import PullImage
from garboard.errors import GarboardError

if TYPE_CHECKING:
    from garboard.cri import CriClient, Sandbox

_TRIES, _PAUSE_S = 5, 0.5


class NodeRuntime:
    """Pulls images and removes sandboxes; a connection is made for each, for most plans need none."""

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
        """Stop and remove every sandbox; one that does not go is tried again, and named if it stays."""
        from garboard.cri import CriClient

        with closing(CriClient(self.socket)) as runtime:
            for attempt in range(1, _TRIES + 1):
                failures = [each for each in map(partial(_remove, runtime), runtime.list_sandboxes()) if each]
                if not failures:
                    return
                if attempt < _TRIES:
                    time.sleep(_PAUSE_S)
        raise GarboardError(
            f"{len(failures)} pod sandboxes could not be removed: {'; '.join(failures)}",
            hint="look at the log of the container runtime, and try: crictl rmp -fa",
            error_class="runtime-failed",
        )


def _remove(runtime: "CriClient", sandbox: "Sandbox") -> str:
    """Stop and remove a sandbox; return what went wrong, or nothing."""
    from garboard.cri import RuntimeCallFailed

    try:
        runtime.stop_sandbox(sandbox.id)
        runtime.remove_sandbox(sandbox.id)
    except RuntimeCallFailed as error:
        of = sandbox.metadata
        return f"{f'{of.namespace}/{of.name}' if of else sandbox.id}: {error.message}"
    return ""


def _failed(image: str, error: GarboardError) -> GarboardError:
    return GarboardError(
        f"cannot pull {image}: {error.message}",
        hint=f"check the name and the registry: crictl pull {image}",
        error_class="image-pull",
    )
