"""The container runtime of this machine, as plans use it."""

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from garboard.engine import PullImage
from garboard.errors import GarboardError

if TYPE_CHECKING:
    from garboard.cri import Sandbox

TRIES, PAUSE_S = 5, 0.5


class PullFailed(GarboardError):
    """A registry, or the runtime, did not give an image."""

    default_class = "image-pull"


class NodeRuntime:
    """Pulls images and removes sandboxes. A connection is made when one is needed, for most plans need none."""

    def __init__(self, socket: str, tell: Callable[[str], None], pause_s: float = PAUSE_S) -> None:
        self.socket = socket
        self._tell = tell
        self._pause_s = pause_s

    def pull(self, action: PullImage) -> None:
        """Pull the images side by side; every failure is told, and is one unless nobody needs the images."""
        from concurrent.futures import ThreadPoolExecutor

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
        """Stop and remove every sandbox; those that stay are named."""
        from garboard.cri import CriClient

        if not self.socket or not Path(self.socket.removeprefix("unix://")).exists():
            self._tell("warning: no container runtime is known here, so no pods are removed")
            return
        with closing(CriClient(self.socket)) as runtime:
            left = remove_all(runtime, self._pause_s)
        if left:
            raise GarboardError(
                f"{len(left)} pod sandboxes could not be removed: {'; '.join(left)}",
                hint="look at the log of the container runtime, and try: crictl rmp -fa",
                error_class="runtime-failed",
            )


class Sandboxes(Protocol):
    """What removing sandboxes asks of a runtime."""

    def list_sandboxes(self) -> "tuple[Sandbox, ...]": ...
    def stop_sandbox(self, sandbox_id: str) -> None: ...
    def remove_sandbox(self, sandbox_id: str) -> None: ...


def remove_all(runtime: Sandboxes, pause_s: float) -> list[str]:
    """Stop and remove sandboxes until none is listed; return those that stay, with what went wrong.

    A kubelet that was just stopped may have asked for a sandbox that the runtime lists only later.
    """
    failures: dict[str, str] = {}
    for _ in range(TRIES):
        if not (listed := runtime.list_sandboxes()):
            return []
        failures = {each.id: problem for each in listed if (problem := _remove(runtime, each))}
        if failures:
            time.sleep(pause_s)
    return [failures.get(each.id, _name(each)) for each in runtime.list_sandboxes()]


def _remove(runtime: Sandboxes, sandbox: "Sandbox") -> str:
    """Stop and remove a sandbox; return what went wrong, or nothing."""
    from garboard.cri import RuntimeCallFailed

    try:
        runtime.stop_sandbox(sandbox.id)
        runtime.remove_sandbox(sandbox.id)
    except RuntimeCallFailed as error:
        return f"{_name(sandbox)}: {error.message}"
    return ""


def _name(sandbox: "Sandbox") -> str:
    of = sandbox.metadata
    return f"{of.namespace}/{of.name}" if of else sandbox.id
