"""The container runtime of this machine: images pulled, containers stopped, pod sandboxes removed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from garboard.engine import Interpreters, PullImage, RemoveSandboxes, StepContext, StopContainer, StopPods
from garboard.errors import GarboardError
from garboard.host.facts import socket_address
from garboard.lazy import lazy_module
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.node.interpreters.files import FileWriter
from garboard.retry import CLOCK, Clock, try_times
from garboard.values import dataclass

if TYPE_CHECKING:
    from concurrent import futures

    from garboard import cri
else:
    futures = lazy_module("concurrent.futures")
    cri = lazy_module("garboard.cri")

TRIES, PAUSE_S = 5, 0.5
_TIMEOUT_S = 10.0


class PullFailed(GarboardError):
    """An image could not be pulled."""

    default_class = "image-pull"


class RuntimeControl(Protocol):
    """The container runtime."""

    def pull(self, action: PullImage) -> None: ...

    def remove_sandboxes(self, keeps: tuple[str, ...]) -> None: ...

    def stop_containers(self, name: str) -> None: ...

    def stop_pods(self, namespace: str, selector: Mapping[str, str], grace_s: int) -> Sequence[str]:
        """Stop the containers of the pods that the labels select; return the names of these pods."""
        ...


@dataclass(frozen=True, slots=True)
class RuntimeInterpreter:
    runtime: RuntimeControl
    files: FileWriter
    clock: Clock = CLOCK

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(PullImage, self.pull).add(RemoveSandboxes, self.remove_sandboxes)
        interpreters.add(StopContainer, self.stop_container).add(StopPods, self.stop_pods)

    def pull(self, action: PullImage, _run: StepContext) -> None:
        self.runtime.pull(action)

    def remove_sandboxes(self, action: RemoveSandboxes, _run: StepContext) -> None:
        self.runtime.remove_sandboxes(action.keeps)

    def stop_container(self, action: StopContainer, _run: StepContext) -> None:
        if self.files.read(action.manifest) is None:
            self.clock.sleep(action.after_s)
            self.runtime.stop_containers(action.container)

    def stop_pods(self, action: StopPods, run: StepContext) -> None:
        if not self.runtime.stop_pods(action.namespace, dict(action.selector), action.grace_s):
            run.report("no such pod runs on this node")


def runtime_at(socket: str, report: Callable[[str], None]) -> "NodeRuntime":
    """Return the container runtime at a socket of the machine whose root is in use."""
    return NodeRuntime(socket_address(socket), report)


class NodeRuntime:
    """Pulls images, stops containers, removes sandboxes; connected when first needed: most plans need no runtime."""

    def __init__(
        self, socket: str, report: Callable[[str], None], pause_s: float = PAUSE_S, clock: Clock = CLOCK
    ) -> None:
        self.socket = socket
        self._report = report
        self._pause_s = pause_s
        self._clock = clock

    def pull(self, action: PullImage) -> None:
        """Pull the images in parallel; all failures are reported together, as an error if the images are needed."""
        images = (action.image, *action.beside)
        pool = futures.ThreadPoolExecutor(len(images))
        try:
            failed = [each for each in pool.map(partial(self._pull, is_always=action.is_always), images) if each]
        finally:
            # Where a signal ends the wait, nobody waits for a registry that hangs.
            pool.shutdown(wait=False, cancel_futures=True)
        if not failed:
            return
        problems = "; ".join(failed)
        if action.is_needed:
            hint = "check the name and the registry, or pass --ignore-preflight-errors=ImagePull"
            raise PullFailed(problems, hint=hint)
        self._report(f"warning: [ImagePull] {problems}")

    def pull_each(self, images: Sequence[str]) -> Iterator[str]:
        """Pull images one after the other and yield each that has come; failures are raised together at the end."""
        with closing(cri.CriClient(self.socket, timeout_s=_TIMEOUT_S)) as runtime:
            runtime.version()  # to try each image again and again would tell nothing if nobody is there
        failed = []
        for image in images:
            problem = self._pull(image, is_always=True)
            if problem is None:
                yield image
            else:
                failed.append(problem)
        if failed:
            raise PullFailed("; ".join(failed), hint="check the name, the registry and the container runtime")

    def _pull(self, image: str, *, is_always: bool) -> str | None:
        """Pull an image unless it is there, with a few retries, as kubeadm does; return why it failed."""
        with closing(cri.CriClient(self.socket)) as runtime:

            def attempt() -> str | None:
                try:
                    if is_always or runtime.image_status(image) is None:
                        runtime.pull_image(image)
                except GarboardError as error:
                    return f"cannot pull {image}: {error.message}"
                return None

            return try_times(attempt, tries=TRIES, pause_s=self._pause_s, clock=self._clock)

    def sandboxes(self) -> tuple[str, ...] | None:
        """Return the ids of all sandboxes; None if no runtime is known, or it does not answer."""
        if not self._has_socket():
            return None
        try:
            with closing(cri.CriClient(self.socket, timeout_s=_TIMEOUT_S)) as runtime:
                return tuple(each.id for each in runtime.list_sandboxes())
        except GarboardError:
            return None

    def _has_socket(self) -> bool:
        return bool(self.socket) and Path(self.socket.removeprefix("unix://")).exists()

    def remove_sandboxes(self, keeps: tuple[str, ...] = ()) -> None:
        """Stop and remove every sandbox that is not to be kept; the error names those that remain."""
        if not self._has_socket():
            self._report("warning: no container runtime is known here, so no pods are removed")
            return
        with closing(cri.CriClient(self.socket)) as runtime:
            left = remove_all(runtime, self._pause_s, keeps, self._clock)
        if left:
            raise GarboardError(
                f"{len(left)} pod sandboxes could not be removed: {'; '.join(left)}",
                hint="look at the log of the container runtime, and try: crictl rmp -fa",
                error_class="runtime-failed",
            )

    def stop_containers(self, name: str) -> None:
        """Stop the running containers of that name in static pods of the control plane, at once."""
        own = {cri.NAMESPACE_LABEL: KUBE_SYSTEM}
        with closing(cri.CriClient(self.socket)) as runtime:
            static = {each.id for each in runtime.list_sandboxes(labels=own) if each.is_static}
            labels = {cri.CONTAINER_LABEL: name, **own}
            for each in runtime.list_containers(state=cri.ContainerState.RUNNING, labels=labels):
                if each.sandbox_id in static:
                    runtime.stop_container(each.id, grace_s=0)

    def stop_pods(self, namespace: str, selector: Mapping[str, str], grace_s: int) -> Sequence[str]:
        """Stop the containers of pods, all of them at the same time; return the names of the pods.

        Only a sandbox has the labels of its pod; its containers have none but those of the kubelet.
        """
        labels = {**selector, cri.NAMESPACE_LABEL: namespace}
        with closing(cri.CriClient(self.socket)) as runtime:
            pods = runtime.list_sandboxes(state=cri.SandboxState.READY, labels=labels)
            running = [
                each.id
                for pod in pods
                for each in runtime.list_containers(sandbox_id=pod.id, state=cri.ContainerState.RUNNING)
            ]
        if running:
            with futures.ThreadPoolExecutor(len(running)) as pool:
                list(pool.map(partial(self._stop, grace_s=grace_s), running))
        return [_name(pod) for pod in pods]

    def _stop(self, container_id: str, *, grace_s: int) -> None:
        with closing(cri.CriClient(self.socket)) as runtime:
            runtime.stop_container(container_id, grace_s=grace_s)


class Sandboxes(Protocol):
    """What removing sandboxes needs of a runtime."""

    def list_sandboxes(self) -> "tuple[cri.Sandbox, ...]": ...
    def stop_sandbox(self, sandbox_id: str) -> None: ...
    def remove_sandbox(self, sandbox_id: str) -> None: ...


def remove_all(runtime: Sandboxes, pause_s: float, keeps: Collection[str] = (), clock: Clock = CLOCK) -> list[str]:
    """Stop and remove sandboxes until only those of `keeps` are listed; return others that remain, with the reasons.

    A kubelet that was just stopped may have asked for a sandbox that the runtime lists only later. A pause
    follows only where a removal failed.
    """
    failures: dict[str, str] = {}
    for _ in range(TRIES):
        if not (listed := [each for each in runtime.list_sandboxes() if each.id not in keeps]):
            return []
        failures = {each.id: problem for each in listed if (problem := _remove(runtime, each))}
        if failures:
            clock.sleep(pause_s)
    return [failures.get(each.id, _name(each)) for each in runtime.list_sandboxes() if each.id not in keeps]


def _remove(runtime: Sandboxes, sandbox: "cri.Sandbox") -> str:
    """Stop and remove a sandbox; return what went wrong, or nothing."""
    try:
        runtime.stop_sandbox(sandbox.id)
        runtime.remove_sandbox(sandbox.id)
    except cri.RuntimeCallFailed as error:
        return f"{_name(sandbox)}: {error.message}"
    return ""


def _name(sandbox: "cri.Sandbox") -> str:
    of = sandbox.metadata
    return f"{of.namespace}/{of.name}" if of else sandbox.id
