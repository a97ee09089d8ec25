"""What gates have in common: how the parts of a node are probed, and the lines of evidence about each part.

Evidence stands in the order in which a person would look for it.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from garboard.documents import Json, read_yaml
from garboard.engine import Evidence, Probe
from garboard.errors import GarboardError, NotReady
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.addresses import join_host_port, parse_ip
from garboard.model.paths import manifest_path
from garboard.phases.gates.view import Answer, NodeView, ObservedContainer

API_SERVER, CONTROLLER_MANAGER, SCHEDULER = "kube-apiserver", "kube-controller-manager", "kube-scheduler"
LOG_LINES = 8
KUBELET_LOG = "journalctl -xeu kubelet"
_TOLERATED_SKEW_S = 30.0
_ETCD, _KUBELET = "etcd", "kubelet"
_KUBELET_HOST, _KUBELET_PORT = "127.0.0.1", 10248


def gather_evidence(view: NodeView, next_command: str, *collectors: Callable[[], Iterator[str]]) -> Evidence:
    """Return the lines about the kubelet, those of the collectors, and those about the cluster's shared endpoint."""
    endpoint = (lambda: endpoint_lines(view.endpoint, view),) if view.endpoint else ()
    return Evidence(evidence_lines((lambda: kubelet_lines(view)), *collectors, *endpoint), next_command)


def component_evidence(component: str, view: NodeView) -> tuple[str, ...]:
    """Find out how the kubelet and one of its static pods fare."""
    return evidence_lines(lambda: kubelet_lines(view), lambda: container_lines(component, view))


def evidence_lines(*collectors: Callable[[], Iterator[str]]) -> tuple[str, ...]:
    """Return the lines of the collectors; what one of them cannot find out is a line as well."""
    return tuple(line for collect in collectors for line in _collected(collect))


def _collected(collect: Callable[[], Iterator[str]]) -> tuple[str, ...]:
    """Return the lines that were found; a failure on the way is a line as well."""
    try:
        return tuple(collect())
    except GarboardError as error:
        return (error.message,)


def document(path: str, view: NodeView) -> dict[str, Json]:
    """Return a YAML file of the node; one that is not there is refused."""
    data = view.read(path)
    if data is None:
        raise NotReady(f"there is no {path}", hint="run the phases that write it first")
    found = read_yaml(data, source=path)
    return found if isinstance(found, dict) else {}


def probe_safely(probe: Probe) -> str | None:
    """Return what a probe finds; a node that cannot be asked is one more thing in the way."""
    try:
        return probe()
    except GarboardError as error:
        return error.message


def health_problem(answer: Answer, url: str) -> str | None:
    """Return None if a health endpoint answers well, else what it answers."""
    if answer.status == 200:
        return None
    # A health endpoint lists its checks, those that failed with [-]; a Status or a page says nothing better.
    failed = [line for line in answer.text.splitlines() if line.startswith("[-]")]
    return f"{url} answers {answer.status}" + (f": {'; '.join(failed)}" if failed else "")


def kubelet_url(config_path: str, view: NodeView) -> str | None:
    """Return where the kubelet serves its health; None if its configuration has turned that off."""
    config = document(config_path, view)
    port = config.get("healthzPort", _KUBELET_PORT)
    if port == 0:
        return None
    host = config.get("healthzBindAddress") or _KUBELET_HOST
    return f"http://{join_host_port(str(host), str(port))}/healthz"


def kubelet_lines(view: NodeView) -> Iterator[str]:
    """Say whether the kubelet runs and what it thinks of itself; if it does not run, what it said last."""
    state = view.service_state(_KUBELET)
    health = _kubelet_health(view)
    yield f"kubelet: its service is {state}, its health: {health}"
    if health != "ok":
        yield from log_lines("kubelet", view.service_log(_KUBELET, LOG_LINES))


def _kubelet_health(view: NodeView) -> str:
    try:
        url = kubelet_url(CONFIG_FILE, view)
        if url is None:
            return "not told (healthzPort is 0)"
        answer = view.get(url)
    except GarboardError as error:
        return error.message
    return "ok" if answer.status == 200 else f"{url} answers {answer.status}"


def container_lines(component: str, view: NodeView) -> Iterator[str]:
    """Say how the newest container of a static pod fares, and how its log ends; and of the one before, if that failed.

    The kubelet starts a container again that has failed, and the new one may have nothing to tell yet.
    """
    containers = of_component(component, view.containers())
    found = newest(containers)
    if found is None:
        yield f"{component}: there is no container of it; the kubelet has not started its static pod"
        return
    log = view.tail(found.log_path, LOG_LINES)
    yield from _fate(component, found, log)
    if found.is_running or not log:
        for before in [each for each in containers if each.exit_code and each.id != found.id][:1]:
            yield from _fate(component, before, view.tail(before.log_path, LOG_LINES))


def _fate(component: str, container: ObservedContainer, log: Sequence[str]) -> Iterator[str]:
    attempt = f" (attempt {container.attempt + 1})" if container.attempt else ""
    if container.is_running:
        yield f"{component}: container {container.id[:13]} is running{attempt}"
    else:
        why = ", ".join(part for part in (container.reason, container.message) if part)
        yield f"{component}: container {container.id[:13]} exited with status {container.exit_code}{attempt}" + (
            f": {why}" if why else ""
        )
    yield from log_lines(component, [log_text(line) for line in log])


def control_plane_lines(view: NodeView) -> Iterator[str]:
    """Say how the API server of this machine and its etcd fare, where it has them: the kubelet depends on them."""
    for component in (API_SERVER, _ETCD):
        if view.read(manifest_path(component)) is not None:
            yield from container_lines(component, view)


def log_text(line: str) -> str:
    """Return what a container wrote, out of a line of its log file: time, stream, tag, text."""
    parts = line.split(" ", 3)
    return parts[3] if len(parts) == 4 and parts[1] in ("stdout", "stderr") else line


def log_lines(name: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield the end of a log, and whose it is."""
    if lines:
        yield f"{name}: its log ends:"
        yield from (f"  | {line}" for line in lines)


def request_lines(node_name: str, view: NodeView) -> Iterator[str]:
    """Say what became of the node's certificate signing requests."""
    wanted = f"system:node:{node_name}"
    bootstrap = "system:bootstrap:"
    found = [each for each in view.list_all("CertificateSigningRequest") if _asks_for(each, wanted, bootstrap)]
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


def clock_lines(server: str, view: NodeView) -> Iterator[str]:
    """Say how far the server's clock is from ours, if that is too far."""
    told = view.get(f"{server}/version").date
    if not told:
        return
    skew_s = (_moment(told) - view.now()).total_seconds()
    if abs(skew_s) > _TOLERATED_SKEW_S:
        direction = "behind" if skew_s > 0 else "ahead of"
        yield f"clock: this machine is {abs(skew_s):.0f} s {direction} {server}: certificates may not be valid here"


def _moment(text: str) -> datetime:
    found = parsedate_to_datetime(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def dns_lines(server: str, view: NodeView) -> Iterator[str]:
    """Say what the name of a server stands for, or that it stands for nothing."""
    host = urlsplit(server if "://" in server else f"https://{server}").hostname or ""
    if not host or parse_ip(host) is not None:
        return
    try:
        yield f"DNS: {host} is {', '.join(view.resolve(host))}"
    except GarboardError as error:
        yield f"DNS: {host} does not resolve: {error.message}"


def endpoint_lines(endpoint: str, view: NodeView) -> Iterator[str]:
    """Say what the name of the cluster's shared endpoint stands for, and if nobody answers there, why."""
    server = f"https://{endpoint}"
    yield from dns_lines(server, view)
    try:
        view.get(f"{server}/version")
    except GarboardError as error:
        yield f"endpoint: nobody answers at {endpoint}: {error.message}"


def containers_of(view: NodeView) -> Sequence[ObservedContainer]:
    try:
        return view.containers()
    except GarboardError:
        return ()


def of_component(component: str, containers: Sequence[ObservedContainer]) -> Sequence[ObservedContainer]:
    """Return the containers of a static pod; other pods may have containers of the same name."""
    return [each for each in containers if each.is_static and each.name == component]


def newest(containers: Sequence[ObservedContainer]) -> ObservedContainer | None:
    return next(iter(containers), None)


def _member(document: dict[str, Json], key: str) -> dict[str, Json]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _text(document: dict[str, Json], key: str) -> str:
    found = document.get(key)
    return found if isinstance(found, str) else ""
