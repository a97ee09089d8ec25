"""Why a gate stays closed: facts in the order in which a person would look for them, and the command to go on with."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from garboard.documents import Json
from garboard.engine import Evidence, Gate
from garboard.errors import GarboardError
from garboard.manifests.paths import manifest_path
from garboard.model.addresses import parse_ip
from garboard.phases.waiting.gates import (
    API_SERVER,
    ApiServerReady,
    ComponentHealthy,
    KubeletBootstrapped,
    KubeletHealthy,
    NodeGate,
    NodeRegistered,
)
from garboard.phases.waiting.looking import component_server, kubelet_url
from garboard.phases.waiting.world import ContainerSeen, World

LOG_LINES = 8
_TOLERATED_SKEW_S = 30.0
_ETCD, _KUBELET = "etcd", "kubelet"
_KUBELET_LOG = "journalctl -xeu kubelet"


def gather(gate: Gate, world: World, *, endpoint: str = "") -> Evidence:
    """Find out what can be found out; what fails on the way becomes a line. `endpoint` is the cluster's shared one."""
    assert isinstance(gate, NodeGate), "phases wait for nothing else"
    lines = tuple(line for collect in _collectors(gate, world, endpoint) for line in _collected(collect))
    return Evidence(lines, _next_command(gate, world))


def _collectors(gate: NodeGate, world: World, endpoint: str) -> Iterator[Callable[[], Iterator[str]]]:
    yield lambda: kubelet_lines(world)
    match gate:
        case KubeletHealthy():
            pass
        case ComponentHealthy():
            yield lambda: container_lines(gate.component, world)
            if gate.component == API_SERVER:
                yield lambda: container_lines(_ETCD, world)
                yield lambda: clock_lines(component_server(gate, world), world)
        case ApiServerReady():
            yield lambda: control_plane_lines(world)
            yield lambda: dns_lines(gate.server, world)
            yield lambda: clock_lines(gate.server, world)
        case NodeRegistered():
            yield lambda: control_plane_lines(world)
            yield lambda: request_lines(gate.node_name, world)
        case KubeletBootstrapped():
            yield lambda: control_plane_lines(world)
            yield lambda: request_lines(gate.node_name, world)
            if gate.server:
                yield lambda: dns_lines(gate.server, world)
                yield lambda: clock_lines(gate.server, world)
    if endpoint:
        yield lambda: endpoint_lines(endpoint, world)


def gather_component(component: str, world: World) -> tuple[str, ...]:
    """Find out how the kubelet and one of its static pods fare, for who waits for that in another way."""
    collectors = (lambda: kubelet_lines(world), lambda: container_lines(component, world))
    return tuple(line for collect in collectors for line in _collected(collect))


def _collected(collect: Callable[[], Iterator[str]]) -> tuple[str, ...]:
    try:
        return tuple(collect())
    except GarboardError as error:
        return (error.message,)


def _next_command(gate: NodeGate, world: World) -> str:
    match gate:
        case ComponentHealthy():
            found = _first(_of(gate.component, _containers(world)))
            return f"crictl logs {found.id[:13]}" if found else _KUBELET_LOG
        case KubeletBootstrapped() | NodeRegistered():
            return "kubectl --kubeconfig /etc/kubernetes/admin.conf get csr,nodes, on a control-plane node"
        case ApiServerReady():
            return f"curl -k {gate.server}/readyz?verbose"
        case KubeletHealthy():
            return _KUBELET_LOG


def kubelet_lines(world: World) -> Iterator[str]:
    """Say whether the kubelet runs and what it thinks of itself; if it does not run, what it said last."""
    state = world.service_state(_KUBELET)
    health = _kubelet_health(world)
    yield f"kubelet: its service is {state}, its health: {health}"
    if health != "ok":
        yield from _log_lines("kubelet", world.service_log(_KUBELET, LOG_LINES))


def _kubelet_health(world: World) -> str:
    try:
        url = kubelet_url(KubeletHealthy(timeout_s=0), world)
        if url is None:
            return "not told (healthzPort is 0)"
        answer = world.get(url)
    except GarboardError as error:
        return error.message
    return "ok" if answer.status == 200 else f"{url} answers {answer.status}"


def container_lines(component: str, world: World) -> Iterator[str]:
    """Say how the newest container of a static pod fares, and how its log ends."""
    found = _first(_of(component, world.containers()))
    if found is None:
        yield f"{component}: there is no container of it; the kubelet has not started its static pod"
        return
    attempt = f" (attempt {found.attempt + 1})" if found.attempt else ""
    if found.is_running:
        yield f"{component}: container {found.id[:13]} is running{attempt}"
    else:
        why = ", ".join(part for part in (found.reason, found.message) if part)
        yield f"{component}: container {found.id[:13]} exited with status {found.exit_code}{attempt}" + (
            f": {why}" if why else ""
        )
    yield from _log_lines(component, [log_text(line) for line in world.tail(found.log_path, LOG_LINES)])


def control_plane_lines(world: World) -> Iterator[str]:
    """Say how the API server of this machine and its etcd fare, where it has them: the kubelet depends on them."""
    for component in (API_SERVER, _ETCD):
        if world.read(manifest_path(component)) is not None:
            yield from container_lines(component, world)


def log_text(line: str) -> str:
    """Return what a container wrote, out of a line of its log file: time, stream, tag, text."""
    parts = line.split(" ", 3)
    return parts[3] if len(parts) == 4 and parts[1] in ("stdout", "stderr") else line


def _log_lines(name: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{name}: its log ends:"
        yield from (f"  | {line}" for line in lines)


def request_lines(node_name: str, world: World) -> Iterator[str]:
    """Say what became of the node's certificate signing requests."""
    wanted = f"system:node:{node_name}"
    bootstrap = "system:bootstrap:"
    found = [each for each in world.list_all("CertificateSigningRequest") if _asks_for(each, wanted, bootstrap)]
    if not found:
        yield f"certificate signing requests: none of {node_name}; its kubelet has not reached the API server"
    for each in found:
        yield f"certificate signing request {_text(_member(each, 'metadata'), 'name')}: {_request_state(each)}"


def _asks_for(request: dict[str, Json], node_user: str, bootstrap: str) -> bool:
    user = _text(_member(request, "spec"), "username")
    return user == node_user or user.startswith(bootstrap)


def _request_state(request: dict[str, Json]) -> str:
    status = _member(request, "status")
    conditions = status.get("conditions")
    words = (
        [_text(each, "type") for each in conditions if isinstance(each, dict)] if isinstance(conditions, list) else []
    )
    if "Approved" in words:
        return "approved and issued" if status.get("certificate") else "approved, not issued yet"
    return ", ".join(words) or "pending: nobody has approved it"


def clock_lines(server: str, world: World) -> Iterator[str]:
    """Say how far the server's clock is from ours, if that is too far."""
    told = world.get(f"{server}/version").date
    if not told:
        return
    skew_s = (_moment(told) - world.now()).total_seconds()
    if abs(skew_s) > _TOLERATED_SKEW_S:
        direction = "behind" if skew_s > 0 else "ahead of"
        yield f"clock: this machine is {abs(skew_s):.0f} s {direction} {server}: certificates may not be valid here"


def _moment(text: str) -> datetime:
    found = parsedate_to_datetime(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def dns_lines(server: str, world: World) -> Iterator[str]:
    """Say what the name of a server stands for, or that it stands for nothing."""
    host = urlsplit(server if "://" in server else f"https://{server}").hostname or ""
    if not host or parse_ip(host) is not None:
        return
    try:
        yield f"DNS: {host} is {', '.join(world.resolve(host))}"
    except GarboardError as error:
        yield f"DNS: {host} does not resolve: {error.message}"


def endpoint_lines(endpoint: str, world: World) -> Iterator[str]:
    """Say what the name of the cluster's shared endpoint stands for, and if nobody answers there, why."""
    server = f"https://{endpoint}"
    yield from dns_lines(server, world)
    try:
        world.get(f"{server}/version")
    except GarboardError as error:
        yield f"endpoint: nobody answers at {endpoint}: {error.message}"


def _containers(world: World) -> Sequence[ContainerSeen]:
    try:
        return world.containers()
    except GarboardError:
        return ()


def _of(component: str, containers: Sequence[ContainerSeen]) -> Sequence[ContainerSeen]:
    return [each for each in containers if each.name == component]


def _first(containers: Sequence[ContainerSeen]) -> ContainerSeen | None:
    return next(iter(containers), None)


def _member(document: dict[str, Json], key: str) -> dict[str, Json]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _text(document: dict[str, Json], key: str) -> str:
    found = document.get(key)
    return found if isinstance(found, str) else ""
