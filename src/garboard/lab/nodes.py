"""Nodes of a lab that exists: add one, stop one as a power cut would, start it again, cut two off from each other."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from garboard.documents import Json
from garboard.errors import BadUsage, GarboardError
from garboard.lab.creation import place_patches
from garboard.lab.labs import Labs
from garboard.lab.network import hosts_file
from garboard.lab.preflight import InotifyLimit, Preflight
from garboard.lab.provision import RELEASES_FOLDER, provision
from garboard.lab.record import Record
from garboard.lab.topology import Bootstrap, Lab, Node, Role
from garboard.model import KubernetesVersion


def add_node(labs: Labs, name: str, role: Role, version: KubernetesVersion | None = None) -> Node:
    """Add a node to a lab and, where the lab is a cluster, join it; return it once it is Ready."""
    record = labs.records.require(name)
    total = 1 + sum(len(each.lab.nodes) for each in labs.running())
    Preflight(labs.machine, labs.home, total).require()
    InotifyLimit(labs.machine, labs.home).raise_for(total)
    lab = record.lab.with_node(role, version)
    node = lab.nodes[-1]
    with labs.using_images():
        content = labs.node_content(lab, node.version)
        record = labs.records.update(record, lab=lab)
        with _forgotten_on_failure(labs, record, node):
            provision(labs.machine, labs.files(name).node(node.name), lab, node, labs.root_plan(), content)
    with _forgotten_on_failure(labs, record, node):
        labs.start_node(lab, node)
        labs.report(f"{node.name}: runs")
        _write_hosts(labs, lab)
        if lab.bootstrap is not Bootstrap.NONE:
            _join(labs, record, node)
    return node


@contextmanager
def _forgotten_on_failure(labs: Labs, record: Record, node: Node) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _forget(labs, record, node)
        raise


def _join(labs: Labs, record: Record, node: Node) -> None:
    yours, needs = labs.records.read_given(labs.files(record.lab.name))
    bootstrap = labs.bootstrap(record, needs, yours)
    place_patches(labs, bootstrap, node)
    bootstrap.join(node, bootstrap.fresh_secrets())
    bootstrap.wait_until_ready()


def _forget(labs: Labs, record: Record, node: Node) -> None:
    """Take back a node that could not be added; its files stay for a look at them until the lab goes."""
    if node.name in labs.node_pids(record.lab.name):
        labs.ask(record.lab.name, {"do": "stop-node", "node": node.name})
    labs.records.update(record, lab=record.lab.without_node(node.name))
    folder = labs.files(record.lab.name).node(node.name).folder
    labs.machine.rename(folder, folder.with_name(f".failed-{node.name}-{node.index}"))


def _write_hosts(labs: Labs, lab: Lab) -> None:
    """Write the names and addresses of all nodes into each that runs."""
    text = hosts_file(lab).encode()
    for name in labs.node_pids(lab.name):
        labs.machine.run(labs.enter(lab.name, name, ["sh", "-c", "cat >/etc/hosts"]), stdin=text)


def stop(labs: Labs, name: str, node: str) -> None:
    """Kill every process of a node at once, as a power cut would; its disk stays."""
    labs.records.require(name).lab.node(node)
    labs.ask(name, {"do": "stop-node", "node": node})


def start(labs: Labs, name: str, node: str | None) -> None:
    """Start a node that was stopped, or every one; its services find the disk as the cut left it."""
    lab = labs.records.require(name).lab
    running = labs.node_pids(name) if node is None else {}
    for each in [lab.node(node)] if node is not None else lab.nodes:
        if each.name not in running:
            labs.start_node(lab, each)
    _write_hosts(labs, lab)


def install_kubelet(labs: Labs, name: str, node: str, version: KubernetesVersion) -> None:
    """Replace kubelet and kubectl of a node by those of another release, as a package manager does; none restarts."""
    lab = labs.records.require(name).lab
    lab.node(node)
    known = {lab.version, *lab.also, *(each.version for each in lab.nodes)}
    if version not in known:
        raise BadUsage(
            f"lab {name} has no programs of {version}",
            hint=f"it has those of {', '.join(map(str, sorted(known)))}; name others to `garboard lab up --also`",
        )
    # In one step each: a kubelet that starts meanwhile is the former or the new one.
    one = f"ln -sf /{RELEASES_FOLDER}/{version}/$each /usr/bin/.$each && mv -fT /usr/bin/.$each /usr/bin/$each"
    labs.machine.run(labs.enter(name, node, ["sh", "-ec", f"for each in kubelet kubectl; do {one}; done"]))


def partition(labs: Labs, name: str, one: str, other: str) -> None:
    """Drop everything between two nodes; both still reach the endpoint and the rest."""
    lab = labs.records.require(name).lab
    if one == other:
        raise BadUsage("a node cannot be cut off from itself", hint="name two nodes")
    labs.ask(name, {"do": "partition", "a": lab.node(one).name, "b": lab.node(other).name})


def heal(labs: Labs, name: str, nodes: Sequence[str]) -> None:
    """Undo the partition between two nodes, or every one."""
    lab = labs.records.require(name).lab
    if len(nodes) not in {0, 2}:
        raise BadUsage("name two nodes, or none to heal every partition")
    pair: list[Json] = [lab.node(each).name for each in nodes]
    labs.ask(name, {"do": "heal", "between": pair})


def load_image(labs: Labs, name: str, archive: Path) -> list[str]:
    """Import an image archive into every running node; return their names."""
    loaded = []
    for node in sorted(labs.node_pids(name)):
        inside = labs.enter(name, node, ["ctr", "--namespace", "k8s.io", "images", "import", "-"])
        # The archive may be large: it is the shell that opens it, not us.
        labs.machine.run(["sh", "-c", 'archive=$1; shift; exec "$@" <"$archive"', "load", archive.absolute(), *inside])
        loaded.append(node)
    if not loaded:
        raise GarboardError(f"no node of lab {name} runs", hint="start one with `garboard lab start NODE`")
    return loaded
