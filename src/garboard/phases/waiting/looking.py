"""How a gate is looked at; addresses are read from the files of the node, once, before the first look."""

from garboard.documents import Json, read_yaml
from garboard.engine import Gate, Look
from garboard.errors import GarboardError, NotReady
from garboard.model.addresses import join_host_port
from garboard.phases.waiting.gates import (
    API_SERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    ApiServerReady,
    ComponentHealthy,
    KubeletBootstrapped,
    KubeletHealthy,
    NodeGate,
    NodeRegistered,
)
from garboard.phases.waiting.world import Answer, World
from garboard.pki.kubeconfig import read_kubeconfig

_HOSTNAME_LABEL = "kubernetes.io/hostname"
_KUBELET_HOST, _KUBELET_PORT = "127.0.0.1", 10248
# Where a component listens if its manifest does not say it: the flag for the address, the address, the port.
_LISTENS = {
    API_SERVER: ("advertise-address", "127.0.0.1", "6443"),
    CONTROLLER_MANAGER: ("bind-address", "127.0.0.1", "10257"),
    SCHEDULER: ("bind-address", "127.0.0.1", "10259"),
}


def look_at(gate: Gate, world: World) -> Look:
    """Return the look that is repeated until the gate is open."""
    assert isinstance(gate, NodeGate), "phases wait for nothing else"
    match gate:
        case KubeletHealthy():
            url = kubelet_url(gate, world)
            return (lambda: _try(lambda: _closed(world.get(url), url))) if url else _is_open
        case ComponentHealthy():
            return _component_look(gate, world)
        case ApiServerReady():
            return lambda: _try(lambda: _closed(world.ask_api_server(gate.server, "/readyz"), gate.server))
        case NodeRegistered():
            return lambda: _try(lambda: _unregistered(world.find("Node", "", gate.node_name)))
        case KubeletBootstrapped():
            return lambda: _without_certificate(gate, world)


def kubelet_url(gate: KubeletHealthy, world: World) -> str | None:
    """Return where the kubelet tells its health; None if its configuration has turned that off."""
    config = _document(gate.config, world)
    port = config.get("healthzPort", _KUBELET_PORT)
    if port == 0:
        return None
    host = config.get("healthzBindAddress") or _KUBELET_HOST
    return f"http://{join_host_port(str(host), str(port))}/healthz"


def component_server(gate: ComponentHealthy, world: World) -> str:
    """Return where a component listens, by its manifest."""
    flag, host, port = _LISTENS[gate.component]
    flags = component_flags(_document(gate.manifest, world), gate.component)
    return f"https://{join_host_port(flags.get(flag, host), flags.get('secure-port', port))}"


def component_flags(pod: dict[str, Json], component: str) -> dict[str, str]:
    """Return the flags of the container that runs the component; of one given twice the last counts."""
    spec = pod.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else ():
        command = container.get("command") if isinstance(container, dict) else None
        if isinstance(command, list) and command[:1] == [component]:
            args = container.get("args") if isinstance(container, dict) else None
            words = [*command[1:], *(args if isinstance(args, list) else ())]
            split = (str(word).removeprefix("--").partition("=") for word in words)
            return {name: value for name, _, value in split}
    return {}


def _component_look(gate: ComponentHealthy, world: World) -> Look:
    server = component_server(gate, world)
    url = f"{server}{gate.path}"
    if gate.component == API_SERVER:
        return lambda: _try(lambda: _closed(world.ask_api_server(server, gate.path), url))
    return lambda: _try(lambda: _closed(world.get(url), url))


def _is_open() -> None:
    return None


def _try(look: Look) -> str | None:
    try:
        return look()
    except GarboardError as error:
        return error.message


def _closed(answer: Answer, url: str) -> str | None:
    if answer.status == 200:
        return None
    # A health endpoint lists its checks, those that failed with [-]; a Status or a page says nothing better.
    failed = [line for line in answer.text.splitlines() if line.startswith("[-]")]
    return f"{url} answers {answer.status}" + (f": {'; '.join(failed)}" if failed else "")


def _unregistered(node: dict[str, Json] | None) -> str | None:
    if node is None:
        return "there is no such Node"
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    has_label = isinstance(labels, dict) and _HOSTNAME_LABEL in labels
    return None if has_label else f"the Node has no label {_HOSTNAME_LABEL} yet"


def _without_certificate(gate: KubeletBootstrapped, world: World) -> str | None:
    data = world.read(gate.kubeconfig)
    if data is None:
        return f"there is no {gate.kubeconfig}"
    try:
        current = read_kubeconfig(data, gate.kubeconfig)
        has_certificate = bool(current.content(current.user or {}, "client-certificate", world.read))
    except GarboardError as error:
        return error.message
    return None if has_certificate else f"{gate.kubeconfig} holds no certificate"


def _document(path: str, world: World) -> dict[str, Json]:
    data = world.read(path)
    if data is None:
        raise NotReady(f"there is no {path}", hint="run the phases that write it first")
    document = read_yaml(data, source=path)
    return document if isinstance(document, dict) else {}
