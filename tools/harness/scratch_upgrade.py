"""An upgrade of a control-plane node on a scratch machine: files, objects and journal are real, nothing runs.

The node is one that `init` made of the former minor, and its cluster is a file of objects behind the real client. Its
kubelet, its etcd and the container runtime are those of `scratch_swap`.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from garboard.cli.main import run
from garboard.engine import Plan
from garboard.host.node_machine import NodeMachine
from garboard.kube import exchange
from garboard.kube.exchange import ApiAnswer
from garboard.kube.requests import ApiRequest
from garboard.node import transaction, upgrade
from garboard.node.interpreters import ProbingWaiter
from garboard.node.interpreters.files import FileInterpreter
from garboard.node.interpreters.leases import LeaseInterpreter
from garboard.node.interpreters.machine import GateInterpreter
from garboard.node.interpreters.maintenance import MaintenanceInterpreter
from garboard.node.interpreters.runtime import RuntimeInterpreter
from garboard.node.wiring import Wiring, wired_for
from tools.harness.scratch_swap import EveryImage, FileKubelet, FreeLeases

FORMER, TARGET, NODE = "v1.36.4", "v1.37.1", "node-1"
# Part of what is compared: an object that was taken back is as it was.
OBJECTS = Path("/run/objects.json")
UPGRADE = ("upgrade", "apply", TARGET, "--yes", "--skip-phases", "preflight")
_TEMPLATE = Path("/template")
_PLACES = ("etc/kubernetes", "var/lib/kubelet", "var/lib/etcd", "run/objects.json", "run/kubelet.state")
_CONFIG = "/upgraded.yaml"
_SNAPSHOT = b"what etcd holds"
_CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}
_PODS = "/api/v1/namespaces/kube-system/pods"


def stand_in() -> None:
    """Have every run of this process, and of its children, find the cluster in the file."""
    stand_ins = (
        (exchange.ApiConnection, "exchange", _exchanged),
        (upgrade, "NodeInspector", EveryImage),
        (transaction, "wired_for", _wired),
    )
    for holder, name, found in stand_ins:
        setattr(holder, name, found)


def leave_node(configuration: str) -> None:
    """Make the node of before, and the objects of its cluster; made once, and copied from then on."""
    if not _TEMPLATE.exists():
        _make_node(configuration.replace(TARGET, FORMER))
        for place in _PLACES:
            (_TEMPLATE / place).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["/bin/cp", "-a", f"/{place}", _TEMPLATE / place], check=True)
    for place in _PLACES:
        found = Path("/", place)
        shutil.rmtree(found) if found.is_dir() else found.unlink(missing_ok=True)
    subprocess.run(["/bin/cp", "-a", f"{_TEMPLATE}/.", "/"], check=True)


def _make_node(configuration: str) -> None:
    stand_in()
    Path(_CONFIG).write_text(configuration)
    OBJECTS.write_text(json.dumps(_observed_objects()))
    live = "preflight,wait-control-plane,mark-control-plane,kubelet-finalize,show-join-command"
    assert run(["init", "--config", _CONFIG, "--skip-phases", live]) == 0
    shutil.rmtree("/var/lib/garboard")


def _observed_objects() -> dict[str, Any]:
    """Return what a cluster shows of its nodes by itself."""
    pods: dict[str, Any] = {
        component: {
            "kind": "Pod",
            "metadata": {"name": f"{component}-{NODE}", "namespace": "kube-system", "labels": {"component": component}},
            "spec": {"nodeName": NODE, "containers": [{"image": f"registry.k8s.io/{component}:{FORMER}"}]},
        }
        for component in ("kube-apiserver", "etcd")
    }
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": FORMER}}
    node = {"kind": "Node", "metadata": {"name": NODE, "labels": _CONTROL_PLANE}, "status": status}
    return {f"/api/v1/nodes/{NODE}": node, **{f"{_PODS}/{each['metadata']['name']}": each for each in pods.values()}}


def _exchanged(_connection: object, request: ApiRequest) -> ApiAnswer:
    """Answer as an API server does that keeps its objects in the file."""
    objects: dict[str, Any] = json.loads(OBJECTS.read_text())
    method, path = request.method, unquote(request.path)
    if method == "GET":
        return _read(objects, path, request.query)
    if method == "POST":
        content: Any = request.content
        path = f"{path}/{content['metadata']['name']}"
        if path in objects:
            return _answer(409, {"kind": "Status", "reason": "AlreadyExists"})
    elif path not in objects:
        return _answer(404, {"kind": "Status", "reason": "NotFound"})
    if method == "DELETE":
        del objects[path]
    else:
        objects[path] = _merged(objects[path], request.content) if method == "PATCH" else request.content
        objects[path].get("metadata", {}).pop("resourceVersion", None)
        objects[path].pop("status", None)  # which only the controllers of a cluster write
    OBJECTS.write_text(json.dumps(objects, sort_keys=True))
    return _answer(200, _versioned(objects[path]) if path in objects else {"kind": "Status"})


def _read(objects: Mapping[str, Any], path: str, query: Mapping[str, str]) -> ApiAnswer:
    if path in objects:
        return _answer(200, _versioned(objects[path]))
    group, _, kind = path.rpartition("/")
    below = [each for name, each in objects.items() if _is_below(name, group, kind)]
    selector = parse_qs("&".join(query.get("labelSelector", "").split(",")))
    items = [
        each for each in below
        if all(each["metadata"].get("labels", {}).get(name) in values for name, values in selector.items())
    ]  # fmt: skip
    known = below or path.endswith(("/pods", "/nodes"))
    return _answer(200, {"items": items}) if known else _answer(404, {"kind": "Status", "reason": "NotFound"})


def _is_below(name: str, group: str, kind: str) -> bool:
    folder = name.rpartition("/")[0]
    return folder == f"{group}/{kind}" or (folder.startswith(f"{group}/namespaces/") and folder.endswith(f"/{kind}"))


def _versioned(content: dict[str, Any]) -> dict[str, Any]:
    version = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    return {**content, "metadata": {**content.get("metadata", {}), "resourceVersion": version}}


def _merged(held: dict[str, Any], patch: Any) -> dict[str, Any]:
    new = {
        key: _merged(held[key], value) if isinstance(value, dict) and isinstance(held.get(key), dict) else value
        for key, value in patch.items()
    }
    return {key: value for key, value in {**held, **new}.items() if value is not None}


def _answer(status: int, content: object) -> ApiAnswer:
    return ApiAnswer(status, json.dumps(content).encode(), "", None)


class _Etcd:
    def save_snapshot(self, _client_url: str, write: Callable[[bytes], object]) -> str:
        write(_SNAPSHOT)
        return sha256(_SNAPSHOT).hexdigest()

    def move_leader(self, peer_url: str, timeout_s: float) -> None:
        raise AssertionError(peer_url)


@contextmanager
def _wired(plan: Plan, machine: NodeMachine, *others: Any) -> Iterator[Wiring]:
    """Wire everything as on a node, but for what needs something that runs."""
    with wired_for(plan, machine, *others) as wiring:
        kubelet: Any = FileKubelet(machine)
        waiter = ProbingWaiter(kubelet, kubelet.clock)
        for each in (
            FileInterpreter(machine, waiter.is_open),
            GateInterpreter(waiter),
            RuntimeInterpreter(kubelet, machine, kubelet.clock),
            LeaseInterpreter(FreeLeases()),
            MaintenanceInterpreter(_Etcd(), machine),
        ):
            each.add_to(wiring.interpreters)
        yield wiring
