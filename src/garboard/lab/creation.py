"""Making labs: the order of the steps from an order to a cluster that is ready."""

import shutil
import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from garboard.errors import BadUsage, GarboardError
from garboard.lab.bootstrap import ClusterBootstrap, measured
from garboard.lab.control import SupervisorGone, ask
from garboard.lab.kubeadm import PATCHES, Documents, Needs, check_documents
from garboard.lab.labs import Labs
from garboard.lab.limits import Limits
from garboard.lab.patches import merge_patches
from garboard.lab.preflight import Preflight
from garboard.lab.provision import NodeContent, provision
from garboard.lab.record import ProcessId, Record, Stage, myself
from garboard.lab.removal import remove
from garboard.lab.topology import Bootstrap, Lab, Node

SUPERVISOR_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True)
class Order:
    """What `lab up` was asked for."""

    lab: Lab
    yours: Documents = field(default_factory=dict)
    patches: Mapping[str, bytes] = field(default_factory=dict)


def up(labs: Labs, order: Order) -> Record:
    """Make the lab and return its record once the cluster is ready; a failure leaves nothing but the logs."""
    began, timings = time.monotonic(), dict[str, float]()
    nodes = len(order.lab.nodes) + sum(len(each.lab.nodes) for each in labs.running())
    preflight = Preflight(labs.machine, labs.home, nodes)
    with measured(timings, "preflight"):
        preflight.require()
        needs = find_needs(labs, preflight, order)
        check_documents(order.lab, needs, order.yours)
    with measured(timings, "programs and images"):
        content = labs.node_content(order.lab, order.lab.version)
    record = _claim(labs, order.lab)
    try:
        Limits(labs.machine, labs.home).raise_for(nodes)
        record = _raise(labs, order, record, content, needs, timings)
    except BaseException:
        _clear_failed(labs, order.lab.name)
        raise
    timings["total"] = round(time.monotonic() - began, 3)
    return labs.records.update(record, stage=Stage.READY, timings=timings)


def _raise(
    labs: Labs, order: Order, record: Record, content: NodeContent, needs: Needs, timings: dict[str, float]
) -> Record:
    """Start the supervisor and the nodes and make a cluster of them."""
    is_cluster = order.lab.bootstrap is not Bootstrap.NONE
    labs.report("starting the lab's supervisor")
    with measured(timings, "supervisor"):
        record = _start_supervisor(labs, record)
    bootstrap = labs.bootstrap(record, needs, order.yours)
    keep_order(labs, order, needs)
    labs.report(f"starting {len(order.lab.nodes)} nodes")
    with measured(timings, "nodes"):
        _start_nodes(labs, record.lab, content)
    for node in order.lab.nodes:
        place_patches(labs, bootstrap, node)
    if is_cluster:
        bootstrap.run(record.port, timings)
    return record


def find_needs(labs: Labs, preflight: Preflight, order: Order) -> Needs:
    """Find out what this machine asks of the cluster's configuration."""
    mode = preflight.proxy_mode()
    if mode.lacks and order.lab.bootstrap is not Bootstrap.NONE:
        labs.report(f"kube-proxy uses {mode.mode}: {mode.lacks}")
    is_v1 = any(not each.is_v2 and "memory" in each.options for each in labs.groups("").hierarchies)
    return Needs(is_v1, mode.mode)


def _claim(labs: Labs, lab: Lab) -> Record:
    """Take the lab's name; what an earlier run left under it is cleared away, what is alive is not touched."""
    (labs.home / "labs").mkdir(parents=True, exist_ok=True)
    labs.home.chmod(0o700)
    with labs.machine.locked(labs.home / ".lock"):
        if lab.name in labs.records.names():
            earlier = labs.records.read(lab.name)
            if earlier is not None and not earlier.is_left_over:
                raise BadUsage(
                    f"lab {lab.name} exists already",
                    hint=f"remove it with `garboard lab down --name {lab.name}`, or choose another --name",
                    error_class="lab-exists",
                )
            labs.report(f"clearing away what is left of an earlier lab {lab.name}")
            remove(labs, lab.name)
        labs.files(lab.name).folder.mkdir(mode=0o700)
        return labs.records.write(Record(lab, Stage.CREATING, myself()))


def _start_supervisor(labs: Labs, record: Record) -> Record:
    """Start the lab's one process; it inherits the loopback port, for it lives in another network."""
    files = labs.files(record.lab.name)
    with socket.create_server(("127.0.0.1", 0)) as forward:
        port = forward.getsockname()[1]
        command: list[str | Path] = [
            "unshare", "--net", "--", *labs.supervisor_command, "--home", labs.home, "--name", record.lab.name,
            "--forward", str(forward.fileno()),
        ]  # fmt: skip
        pid = labs.machine.start_detached(command, log=files.supervisor_log, keep=[forward.fileno()])
    record = labs.records.update(record, supervisor=ProcessId.of(pid), port=port)
    deadline = time.monotonic() + SUPERVISOR_WITHIN_S
    while True:
        try:
            ask(files.control, {"do": "ping"})
        except SupervisorGone:
            if time.monotonic() > deadline or ProcessId.of(pid) is None:
                said = labs.machine.read_file(files.supervisor_log).decode("utf-8", "replace").strip()
                raise GarboardError(f"the lab's supervisor did not start:\n{said}", error_class="supervisor") from None
            time.sleep(0.02)
        else:
            return record


def _start_nodes(labs: Labs, lab: Lab, content: NodeContent) -> None:
    root = labs.root_plan()

    def start(node: Node) -> None:
        provision(labs.files(lab.name).node(node.name), lab, node, root, content)
        labs.start_node(lab, node)
        labs.report(f"{node.name}: runs")

    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(start, lab.nodes))


def place_patches(labs: Labs, bootstrap: ClusterBootstrap, node: Node) -> None:
    """Copy the lab's patches into a node."""
    for path in sorted(bootstrap.files.patches.iterdir()):
        bootstrap.place(node, f"{PATCHES}/{path.name}", labs.machine.read_file(path))


def keep_order(labs: Labs, order: Order, needs: Needs) -> None:
    """Keep what the user gave with the lab, for nodes that are added later."""
    files = labs.files(order.lab.name)
    labs.records.write_given(files, order.yours, needs)
    files.patches.mkdir()
    for name, data in merge_patches(order.patches).items():
        labs.machine.write_file(files.patches / name, data)


def _clear_failed(labs: Labs, name: str) -> None:
    """Keep the logs of a lab that did not come up, and nothing else of it."""
    files, kept = labs.files(name), labs.home / "failed" / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for node in sorted((files.folder / "nodes").glob("*")):
        shutil.copytree(files.node(node.name).var / "log", kept / node.name, symlinks=True, dirs_exist_ok=True)
    if files.supervisor_log.exists():
        shutil.copy2(files.supervisor_log, kept)
    labs.report(f"the lab did not come up; its logs are in {kept}")
    remove(labs, name)
