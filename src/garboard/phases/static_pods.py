"""Replacing the static pods of a control-plane node in one outage that is as short as the kubelet allows.

The kubelet puts a changed pod back by 10 s and more while the former one of the same name is ending, and starts one at
once that appears when the former one has gone. So manifests are taken away, and put in place again after that. The API
server goes first, while its etcd still answers: it closes its listener at once then, and needs not be waited for
longer than open requests need. An API server without its etcd would make the kubelet wait for it instead, so that etcd
is never taken away under an API server that runs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from garboard.documents import Json, read_yaml
from garboard.engine import AwaitGate, Precondition, PullImage, QuorumChange, RemoveFile, Step, StopContainer, WriteFile
from garboard.engine.pre_image import digest_of
from garboard.errors import InvalidValue
from garboard.model.duration import Duration
from garboard.model.paths import manifest_path
from garboard.phases.gates import (
    API_SERVER,
    ApiServerReady,
    ClusterVersionRaised,
    ComponentsSettled,
    EtcdSparesMember,
    ListenerClosed,
    MemberCaughtUp,
    NodeReady,
    PodsEnded,
)
from garboard.phases.gates.control_plane import component_flags, listener_of
from garboard.values import dataclass

ETCD = "etcd"
UNIT = "static-pods"
# What is taken away first stands first. Manifests are put in place in the reverse order, so that also a swap that is
# killed in between leaves no API server without its etcd.
ORDER = (API_SERVER, "kube-controller-manager", "kube-scheduler", ETCD)
_MANIFEST_MODE = 0o600
_CLOSING_S = 60.0  # a listener, beyond --shutdown-delay-duration
_ENDING_S = 90.0  # a pod has a grace period of 30 s
_SPARED_WITHIN_S = 60.0  # another member may just be starting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedPod:
    """A static pod of this node: its manifest as it is, and as it shall be, which may be the same."""

    component: str
    former: bytes
    manifest: bytes
    restart_cause: str = ""  # why it is replaced even if its manifest stays the same

    @property
    def path(self) -> str:
        return manifest_path(self.component)

    @property
    def is_changed(self) -> bool:
        return self.former != self.manifest

    @property
    def is_due(self) -> bool:
        return self.is_changed or bool(self.restart_cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapSettings:
    """How long a swap waits: for requests that the API server is answering, and for the new pods."""

    requests_s: float = 1.0
    member_url: str = ""  # the peer URL of this node's member of etcd; empty if etcd is elsewhere
    voters: int = 0  # the voting members of etcd, if that is known
    has_kubelet: bool = False  # the kubelet is changed as well, so that the Node has to be Ready in the end
    settled_within_s: float = 240.0
    former_etcd: str = ""  # the minor of etcd, if it changes: a member goes back only while all of etcd has it


def swapped(pods: Iterable[ReplacedPod]) -> tuple[ReplacedPod, ...]:
    """Return the pods that have to be replaced: those that change or restart, and the API server with its etcd."""
    known = sorted(pods, key=lambda pod: ORDER.index(pod.component))
    due = {pod.component for pod in known if pod.is_due}
    if ETCD in due:
        due.add(API_SERVER)
    return tuple(pod for pod in known if pod.component in due)


def plan_swap(
    pods: Iterable[ReplacedPod],
    node_name: str,
    cause: str,
    settings: SwapSettings | None = None,
) -> tuple[Step, ...]:
    """Return the steps that replace static pods, as one unit; none if no manifest changes and no pod restarts.

    The unit does not begin if etcd has no quorum without the member of this node.
    """
    known = tuple(pods)
    chosen, of = swapped(known), settings or SwapSettings()
    if not chosen:
        return ()
    has_api_server = any(pod.component == API_SERVER for pod in known)
    steps = (*_swap(chosen, node_name, cause, of), *_node_gates(node_name, of, has_api_server=has_api_server))
    return (*_guarded(chosen, of), *(replace(step, unit=UNIT) for step in steps))


def _guarded(pods: Iterable[ReplacedPod], settings: SwapSettings) -> Iterator[Step]:
    if settings.member_url and any(pod.component == ETCD for pod in pods):
        gate = EtcdSparesMember(peer_url=settings.member_url, timeout_s=_SPARED_WITHIN_S)
        yield Step(AwaitGate(gate=gate), "a second member that is away would stop the cluster")


def plan_pulls(pods: Iterable[ReplacedPod], has_image: Callable[[str], bool]) -> Iterator[Step]:
    """Yield how the images of the swapped pods are pulled that the container runtime does not have.

    That comes before the swap: the pods that run do not have to wait for a registry.
    """
    images = dict.fromkeys(image for pod in swapped(pods) for image in _images(pod))
    first, *others = [image for image in images if not has_image(image)] or [""]
    if first:
        yield Step(PullImage(image=first, beside=tuple(others)), "the outage shall not last until they have come")


def _images(pod: ReplacedPod) -> Iterator[str]:
    spec = _document(pod.path, pod.manifest).get("spec")
    for key in ("initContainers", "containers"):
        containers = spec.get(key) if isinstance(spec, dict) else None
        for each in containers if isinstance(containers, list) else ():
            if isinstance(each, dict) and isinstance(each.get("image"), str):
                yield str(each["image"])


def _swap(pods: Sequence[ReplacedPod], node_name: str, cause: str, settings: SwapSettings) -> Iterator[Step]:
    components = tuple(pod.component for pod in pods)
    if API_SERVER in components:
        yield from _api_server_stopped(pods[0], cause, settings)
    for pod in pods:
        if pod.component != API_SERVER:
            yield _taken_away(pod, cause, settings)
    names = tuple(f"kube-system/{_name(pod)}-{node_name}" for pod in pods)
    yield Step(
        AwaitGate(gate=PodsEnded(components=components, pods=names, timeout_s=_ENDING_S)),
        "a pod of the same name starts at once only after the former one has gone",
    )
    for pod in reversed(pods):
        raised = ClusterVersionRaised(above=settings.former_etcd)
        yield Step(
            WriteFile(path=pod.path, content=pod.manifest, mode=_MANIFEST_MODE),
            _cause(pod, cause),
            lasts_once=raised if pod.component == ETCD and pod.is_changed and settings.former_etcd else None,
        )
    yield Step(
        AwaitGate(gate=ComponentsSettled(components=components, timeout_s=settings.settled_within_s)),
        "what starts may end again",
        quorum_after=QuorumChange(voters_before=settings.voters) if ETCD in components else None,
    )
    if ETCD in components and settings.member_url:
        caught_up = MemberCaughtUp(peer_url=settings.member_url, timeout_s=settings.settled_within_s)
        yield Step(AwaitGate(gate=caught_up), "the next node may only follow when no member is behind")


def _node_gates(node_name: str, settings: SwapSettings, *, has_api_server: bool) -> Iterator[Step]:
    """Yield what has to be well on this node in the end, whichever of its pods were replaced."""
    if has_api_server:
        ready = ApiServerReady(timeout_s=settings.settled_within_s)
        yield Step(AwaitGate(gate=ready), "the load balancer sends it requests only then")
    if settings.has_kubelet:
        node = NodeReady(node_name=node_name, timeout_s=settings.settled_within_s)
        yield Step(AwaitGate(gate=node), "the kubelet was changed, too")


def _api_server_stopped(pod: ReplacedPod, cause: str, settings: SwapSettings) -> Iterator[Step]:
    former = _document(pod.path, pod.former)
    host, port = listener_of(pod.component, former)
    yield _taken_away(pod, cause, settings)
    closing_s = _CLOSING_S + _shutdown_delay_s(former)
    closed = ListenerClosed(component=pod.component, host=host, port=int(port), timeout_s=closing_s)
    yield Step(AwaitGate(gate=closed), "no new request may be lost")
    yield Step(
        StopContainer(container=pod.component, manifest=pod.path, after_s=settings.requests_s),
        "it would wait for watches until its grace period is over",
    )


def member_url_of(manifest: bytes) -> str:
    """Return the peer URL of a member of etcd as its manifest has it; empty if it has none."""
    told = component_flags(_document(manifest_path(ETCD), manifest), ETCD).get("initial-advertise-peer-urls", "")
    return told.partition(",")[0].strip()


def _shutdown_delay_s(pod: dict[str, Json]) -> float:
    """Return for how long an API server that is ending takes connections."""
    try:
        return Duration.parse(component_flags(pod, API_SERVER).get("shutdown-delay-duration", "0")).seconds
    except InvalidValue:  # with such a flag it never ran
        return 0.0


def _taken_away(pod: ReplacedPod, cause: str, settings: SwapSettings) -> Step:
    return Step(
        RemoveFile(path=pod.path),
        _cause(pod, cause),
        preconditions=(Precondition(pod.path, digest_of(pod.former)),),
        restarts=(pod.component,),
        quorum_after=QuorumChange(up=-1, voters_before=settings.voters) if pod.component == ETCD else None,
    )


def _cause(pod: ReplacedPod, cause: str) -> str:
    if pod.is_changed:
        return cause
    return pod.restart_cause or "the API server and its etcd are replaced together"


def _name(pod: ReplacedPod) -> str:
    metadata = _document(pod.path, pod.former).get("metadata")
    return str(metadata.get("name") if isinstance(metadata, dict) else pod.component)


def _document(path: str, manifest: bytes) -> dict[str, Json]:
    found = read_yaml(manifest, source=path)
    return found if isinstance(found, dict) else {}
