"""Making a lab of a snapshot: its files are copied under the lab's own name, and its nodes are started.

Addresses, names of nodes and certificates are those of the snapshot: each lab has a network of its own.
"""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from garboard.errors import GarboardError
from garboard.lab.bootstrap import measured
from garboard.lab.creation import claim, clear_failed, start_supervisor
from garboard.lab.labs import Labs
from garboard.lab.preflight import InotifyLimit, Preflight
from garboard.lab.provision import lay_out
from garboard.lab.record import Record, Stage
from garboard.lab.snapshots.copying import copy_node
from garboard.lab.snapshots.manifest import SnapshotManifest
from garboard.lab.snapshots.stopping import StoppableCluster
from garboard.lab.snapshots.store import Snapshots
from garboard.lab.topology import Bootstrap, Lab, Node, check_name


def up_from_snapshot(labs: Labs, name: str, snapshot: str) -> Record:
    """Make the lab `name` of `snapshot`; return its record once the cluster is ready. A failure leaves the logs."""
    check_name(name)
    began, timings = time.monotonic(), dict[str, float]()
    snapshots = Snapshots(labs.machine, labs.home)
    # Nobody removes the snapshot between this look at it and the copy.
    with snapshots.locked(shared=True):
        with measured(timings, "preflight"):
            manifest = snapshots.require(snapshot)
            nodes = len(manifest.lab.nodes) + sum(len(each.lab.nodes) for each in labs.running())
            Preflight(labs.machine, labs.home, nodes).require()
            _require_same_groups(labs, snapshot, manifest)
        record = claim(labs, replace(manifest.lab, name=name))
        try:
            InotifyLimit(labs.machine, labs.home).raise_for(nodes)
            with measured(timings, "files and supervisor"):
                record = _restore(labs, snapshots, snapshot, record)
        except BaseException:
            clear_failed(labs, name)
            raise
    try:
        _start(labs, record, timings)
    except BaseException:
        clear_failed(labs, name)
        raise
    timings["total"] = round(time.monotonic() - began, 3)
    return labs.records.update(record, stage=Stage.READY, timings=timings)


def _require_same_groups(labs: Labs, snapshot: str, manifest: SnapshotManifest) -> None:
    if labs.has_cgroup_v1() != manifest.is_cgroup_v1:
        raise GarboardError(
            f"snapshot {snapshot} was made on a machine with cgroup {'v1' if manifest.is_cgroup_v1 else 'v2'}",
            hint="make it again on this one",
            error_class="snapshot-unusable",
        )


def _restore(labs: Labs, snapshots: Snapshots, snapshot: str, record: Record) -> Record:
    """Copy the files of the snapshot and start the lab's supervisor meanwhile."""
    source, files, machine = snapshots.files(snapshot), labs.files(record.lab.name), labs.machine
    root, nodes = labs.root_plan(), record.lab.nodes

    def restore(node: Node) -> None:
        target = files.node(node.name)
        copy_node(machine, source.node(node.name), target)
        lay_out(machine, target, root)

    labs.report(f"copying {len(nodes)} nodes of snapshot {snapshot}")
    with ThreadPoolExecutor(max_workers=4) as pool:
        copies = [pool.submit(restore, node) for node in nodes]
        machine.copy_file(source.given, files.given, mode=0o600)
        machine.copy_tree(source.patches, files.patches, follows_links=False)
        record = start_supervisor(labs, record)
        for each in copies:
            each.result()
    labs.program().install(machine, [files.node(node.name) for node in nodes])
    return record


def _start(labs: Labs, record: Record, timings: dict[str, float]) -> None:
    since = datetime.now(UTC)
    labs.report(f"starting {len(record.lab.nodes)} nodes")
    with measured(timings, "nodes"):
        StoppableCluster(labs, record.lab).start()
    if record.lab.bootstrap is Bootstrap.NONE:
        return
    yours, needs = labs.records.read_given(labs.files(record.lab.name))
    labs.bootstrap(record, needs, yours).write_kubeconfig(record.lab.control_planes[0], record.port)
    with measured(timings, "wait until ready"):
        wait_until_restarted(labs, record, since)


def wait_until_restarted(labs: Labs, record: Record, since: datetime) -> None:
    """Wait until the cluster of a lab whose nodes were started at `since` is ready; bare nodes are not waited for."""
    if record.lab.bootstrap is Bootstrap.NONE:
        return
    yours, needs = labs.records.read_given(labs.files(record.lab.name))
    bootstrap = labs.bootstrap(record, needs, yours)
    moment = since.replace(microsecond=0)  # times in objects are whole seconds

    def missing() -> list[str]:
        waiting = list(_unready_servers(record.lab, labs.ready_servers(record.lab.name)))
        return waiting or bootstrap.missing_for_ready(moment)

    bootstrap.wait_for(missing)


def _unready_servers(lab: Lab, ready: Iterable[str]) -> Iterable[str]:
    found = set(ready)
    return (f"the API server of {node.name} is not ready" for node in lab.control_planes if node.address not in found)
