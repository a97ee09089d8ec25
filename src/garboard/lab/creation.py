"""Making labs: the steps from what `lab up` was asked for to a cluster that is ready."""

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from garboard.errors import BadUsage, GarboardError
from garboard.lab.bootstrap import ClusterBootstrap, measured
from garboard.lab.control import SupervisorGone, ask
from garboard.lab.kubeadm import PATCHES, Needs, check_documents
from garboard.lab.labs import Labs
from garboard.lab.layout import failed_folder
from garboard.lab.order import Order, merge_patches
from garboard.lab.preflight import InotifyLimit, Preflight
from garboard.lab.provision import NodeContent, provision
from garboard.lab.record import Record, Stage
from garboard.lab.removal import remove
from garboard.lab.topology import Bootstrap, Lab, Node
from garboard.retry import Pauses, retry

SUPERVISOR_WITHIN_S = 60.0  # on a machine that others keep busy; one that has ended is not waited for
FAILED_KEPT = 10  # labs of tests have a new name each time


def up(labs: Labs, order: Order) -> Record:
    """Make the lab and return its record once the cluster is ready; a failure leaves nothing but the logs."""
    began, timings = time.monotonic(), dict[str, float]()
    nodes = len(order.lab.nodes) + sum(len(each.lab.nodes) for each in labs.running())
    preflight = Preflight(labs.machine, labs.home, nodes)
    with measured(timings, "preflight"):
        preflight.require()
        needs = find_needs(labs, preflight, order)
        check_documents(order.lab, needs, order.yours)
    with contextlib.ExitStack() as images:
        images.enter_context(labs.using_images())
        with measured(timings, "programs and images"):
            content = labs.node_content(order.lab, order.lab.version)
        record = claim(labs, order.lab)
        try:
            InotifyLimit(labs.machine, labs.home).raise_for(nodes)
            record = _start_bare(labs, order, record, content, needs, timings)
            images.close()
            _bootstrap(labs, order, record, needs, timings)
        except BaseException:
            clear_failed(labs, order.lab.name)
            raise
    timings["total"] = round(time.monotonic() - began, 3)
    return labs.records.update(record, stage=Stage.READY, timings=timings)


def _start_bare(
    labs: Labs, order: Order, record: Record, content: NodeContent, needs: Needs, timings: dict[str, float]
) -> Record:
    """Start the supervisor and the nodes."""
    labs.report("starting the lab's supervisor")
    with measured(timings, "supervisor"):
        record = start_supervisor(labs, record)
    keep_order(labs, order, needs)
    labs.report(f"starting {len(order.lab.nodes)} nodes")
    with measured(timings, "nodes"):
        _start_nodes(labs, record.lab, content)
    return record


def _bootstrap(labs: Labs, order: Order, record: Record, needs: Needs, timings: dict[str, float]) -> None:
    """Make a cluster of the nodes, unless they are to stay bare."""
    bootstrap = labs.bootstrap(record, needs, order.yours)
    for node in order.lab.nodes:
        place_patches(labs, bootstrap, node)
    if order.lab.bootstrap is not Bootstrap.NONE:
        bootstrap.run(record.port, timings)


def find_needs(labs: Labs, preflight: Preflight, order: Order) -> Needs:
    """Find out what this machine asks of the cluster's configuration."""
    mode = preflight.proxy_mode()
    if mode.lacks and order.lab.bootstrap is not Bootstrap.NONE:
        labs.report(f"kube-proxy uses {mode.mode}: {mode.lacks}")
    return Needs(labs.has_cgroup_v1(), mode.mode)


def claim(labs: Labs, lab: Lab) -> Record:
    """Take the lab's name; what an earlier run left under it is cleared away, what is alive is not touched."""
    labs.machine.make_folder(labs.home / "labs")
    labs.machine.change_mode(labs.home, 0o700)
    with labs.machine.locked(labs.home / ".lock"):
        if lab.name in labs.records.names():
            earlier = labs.records.read(lab.name)
            if earlier is not None and not labs.records.is_left_over(earlier):
                raise BadUsage(
                    f"lab {lab.name} exists already",
                    hint=f"remove it with `garboard lab down --name {lab.name}`, or choose another --name",
                    error_class="lab-exists",
                )
            labs.report(f"clearing away what is left of an earlier lab {lab.name}")
            remove(labs, lab.name)
        labs.machine.make_folder(labs.files(lab.name).folder, mode=0o700)
        return labs.records.write(Record(lab, Stage.CREATING, labs.records.processes.myself()))


def start_supervisor(labs: Labs, record: Record) -> Record:
    """Start the supervisor; it inherits the port on the loopback address, which its own network does not have."""
    files, processes = labs.files(record.lab.name), labs.records.processes
    with socket.create_server(("127.0.0.1", 0)) as forward:
        port = forward.getsockname()[1]
        command: list[str | Path] = [
            "unshare", "--net", "--", *labs.supervisor_command, "--home", labs.home, "--name", record.lab.name,
            "--forward", str(forward.fileno()),
        ]  # fmt: skip
        pid = labs.machine.start_detached(command, log=files.supervisor_log, keep=[forward.fileno()])
    record = labs.records.update(record, supervisor=processes.identify(pid), port=port)
    try:
        retry(
            lambda: ask(files.control, {"do": "ping"}), timeout_s=SUPERVISOR_WITHIN_S, pauses=Pauses.every(0.02),
            is_passing=lambda error: isinstance(error, SupervisorGone) and processes.identify(pid) is not None,
        )  # fmt: skip
    except SupervisorGone:
        said = labs.machine.read_file(files.supervisor_log).decode("utf-8", "replace").strip()
        is_alive = processes.identify(pid) is not None
        said = said or (
            f"it does not answer after {SUPERVISOR_WITHIN_S:.0f} s" if is_alive else "it has ended silently"
        )
        raise GarboardError(f"the lab's supervisor did not start:\n{said}", error_class="supervisor") from None
    return record


def _start_nodes(labs: Labs, lab: Lab, content: NodeContent) -> None:
    root = labs.root_plan()

    def start(node: Node) -> None:
        provision(labs.machine, labs.files(lab.name).node(node.name), lab, node, root, content)
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
    labs.machine.make_folder(files.patches)
    for name, data in merge_patches(order.patches).items():
        labs.machine.write_file(files.patches / name, data)


def drop_old_logs(labs: Labs, kept: int = FAILED_KEPT) -> None:
    """Make room for the logs of one more lab: of those that did not come up, the last few are kept."""
    found = sorted(failed_folder(labs.home).glob("*"), key=lambda each: each.stat().st_mtime, reverse=True)
    for each in found[kept - 1 :]:
        labs.machine.remove_tree(each, ignore_errors=True)


def clear_failed(labs: Labs, name: str) -> None:
    """Keep the logs of a lab that did not come up, and nothing else of it."""
    files, kept = labs.files(name), failed_folder(labs.home) / name
    labs.machine.remove_tree(kept, ignore_errors=True)
    drop_old_logs(labs)
    labs.machine.make_folder(kept)
    for node in sorted((files.folder / "nodes").glob("*")):
        logs = files.node(node.name).var / "log"
        if logs.is_dir():  # it may have failed before that
            labs.machine.copy_tree(logs, kept / node.name, follows_links=False)
    if files.supervisor_log.exists():
        labs.machine.copy_file(files.supervisor_log, kept / files.supervisor_log.name)
    labs.report(f"the lab did not come up; its logs are in {kept}")
    remove(labs, name)
