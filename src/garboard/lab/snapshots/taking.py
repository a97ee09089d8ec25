"""Making a snapshot of a lab: the lab is stopped, its files are kept, and it is started again."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from garboard.errors import BadUsage, GarboardError
from garboard.lab.imageset import IMAGE_PROGRAMS
from garboard.lab.labs import Labs
from garboard.lab.layout import NodeFiles, SnapshotFiles
from garboard.lab.overview import inspect
from garboard.lab.provision import CNI_FOLDER, RELEASES_FOLDER
from garboard.lab.record import Record, Stage
from garboard.lab.snapshots.copying import copy_node
from garboard.lab.snapshots.manifest import ProgramFile, SnapshotManifest, take_inventory
from garboard.lab.snapshots.starting import wait_until_restarted
from garboard.lab.snapshots.stopping import StoppableCluster
from garboard.lab.snapshots.store import OWNER, Snapshots
from garboard.lab.topology import Lab


def take(labs: Labs, name: str, snapshot: str) -> SnapshotManifest:
    """Keep the lab `name` as `snapshot`; the lab is stopped meanwhile and runs again afterwards."""
    snapshots = Snapshots(labs.machine, labs.home)
    record = labs.records.require(name)
    with labs.machine.locked(labs.files(name).folder / "snapshot.lock", wait=False) as is_ours:
        if not is_ours:
            raise GarboardError(
                f"another snapshot of lab {name} is being made", hint="wait for it", error_class="snapshot-busy"
            )
        _require_whole(labs, record)
        incoming = snapshots.reserve(snapshot)
        try:
            with _stopped(labs, record):
                manifest = _keep(labs, record, incoming)
                snapshots.publish(incoming, manifest)
        finally:
            snapshots.abandon(incoming)
    return manifest


def _require_whole(labs: Labs, record: Record) -> None:
    """Refuse a lab of which not all runs: what is started from a snapshot is waited for until all of it does."""
    name = record.lab.name
    if labs.records.is_left_over(record):
        way = "remove what is left of it with `garboard lab prune`"
        raise GarboardError(f"nobody runs lab {name} any more", hint=way, error_class="lab-not-running")
    if record.stage is not Stage.READY:
        raise BadUsage(
            f"lab {name} is {record.stage.value}", hint="wait until it is ready", error_class="lab-not-whole"
        )
    found = inspect(labs, name)
    stopped = [node.name for node in found.nodes if node.state != "running"]
    if stopped:
        what, way = f"node {stopped[0]} is stopped", f"start it with `garboard lab start --name {name} {stopped[0]}`"
    elif found.partitions:
        what, way = f"{' and '.join(found.partitions[0])} are cut off from each other", "`garboard lab heal` first"
    elif found.missing:
        what, way = found.missing[0], f"look with `garboard lab status --name {name}`"
    else:
        return
    raise BadUsage(f"lab {name} is not whole: {what}", hint=way, error_class="lab-not-whole")


@contextlib.contextmanager
def _stopped(labs: Labs, record: Record) -> Iterator[None]:
    """Stop the lab's cluster while the block runs; however that ends, start it again and wait until it is ready."""
    cluster = StoppableCluster(labs, record.lab)
    labs.report(f"stopping {len(record.lab.nodes)} nodes")
    try:
        cluster.stop()
        yield
    finally:
        labs.report(f"starting lab {record.lab.name} again")
        since = datetime.now(UTC)
        cluster.start()
        wait_until_restarted(labs, record, since)


def _keep(labs: Labs, record: Record, incoming: SnapshotFiles) -> SnapshotManifest:
    """Copy the files of a stopped lab and write down what they are."""
    files, machine = labs.files(record.lab.name), labs.machine
    labs.report(f"keeping {len(record.lab.nodes)} nodes in {incoming.folder.parent}")
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda n: copy_node(machine, files.node(n.name), incoming.node(n.name)), record.lab.nodes))
    machine.copy_file(files.given, incoming.given, mode=0o600)
    machine.copy_tree(files.patches, incoming.patches, follows_links=False)
    _, needs = labs.records.read_given(files)
    return SnapshotManifest(
        lab=record.lab,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        is_cgroup_v1=needs.is_cgroup_v1,
        programs=_programs(labs, record.lab, [incoming.node(each.name) for each in record.lab.nodes]),
        inventory=take_inventory(incoming.folder, but=OWNER),
    )


def _programs(labs: Labs, lab: Lab, nodes: list[NodeFiles]) -> tuple[ProgramFile, ...]:
    """Describe the programs that nodes have links to, and those in their images."""
    folders = ("usr/bin", f"{RELEASES_FOLDER}/*", CNI_FOLDER.lstrip("/"))
    links = (link for node in nodes for folder in folders for link in node.upper.glob(f"{folder}/*"))
    paths = {link.readlink() for link in links if link.is_symlink()}
    versions = {str(lab.version), *map(str, lab.also), *(str(node.version) for node in lab.nodes)}
    for version in versions:
        wanted = (labs.binaries.pins.wanted(name, kubernetes=version) for name in IMAGE_PROGRAMS)
        paths |= {found.path for each in wanted if (found := labs.binaries.find(each))}
    described = (ProgramFile.at(path) for path in sorted(paths, key=str) if Path(path).is_absolute())
    return tuple(each for each in described if each)
