"""Everything on the disk of a lab's node, and what a plan says of it."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from garboard.cli.lab.wiring import labs
from tools.harness.lab import LabUnderTest
from tools.harness.trees import Entry, Tree, entry_of

Plan = Mapping[str, Any]
_OWN = ("var", "run", "tmp")
# The images and snapshots of the container runtime: large, and written by the runtime alone.
_RUNTIME = "/var/lib/containerd"
# What changes on a node while a run works, and is not the run's: who writes it.
OTHERS = {
    "/var/lib/garboard": "the journal of the run itself, and the lock of the node",
    "/var/log/kubelet.log": "what the lab keeps of the kubelet's words, as journald would",
    "/var/log/containerd.log": "what the lab keeps of the runtime's words",
    "/var/log/konnectivity-agent.log": "what the lab keeps of the words of the tunnel's agent",
    "/run/containerd": "the runtime: its sandboxes and containers",
    "/usr/libexec/kubernetes": "the kubelet: volume plugins, which kube-controller-manager mounts",
    "/run/mount": "mount(8), which the kubelet calls for volumes",
    "/run/xtables.lock": "kube-proxy: its lock of the firewall",
    "/usr/lib/modules": "the runtime: kube-proxy mounts it, and where it is missing it is made",
    "/run/cni-addresses": "network plugins of the runtime: the addresses of pods",
    "/run/netns": "the runtime: the networks of pods",
    "/var/lib/cni": "network plugins of the runtime: the addresses of pods",
}


def node_tree(lab: LabUnderTest, node: str) -> Tree:
    """Return all that a node has of its own by path: what it changed in the machine's folders, and /var, /run, /tmp."""
    upper = lab.files.node(node).upper
    inside = Path(f"/proc/{labs().node_pids(lab.name)[node]}/root")
    roots = [(inside, inside / name) for name in _OWN] + [(upper, each) for each in upper.iterdir()]
    found = {path: entry for root, folder in roots for path, entry in _walk(root, folder)}
    return {path: entry for path, entry in found.items() if not _is_the_machines(path, entry)}


def _is_the_machines(path: str, entry: Entry) -> bool:
    """Whether a node shows what the machine has there: an overlay copies the folders above a file as well."""
    is_own = path.split("/")[1] in _OWN
    return not is_own and os.path.lexists(path) and entry.is_like(entry_of(Path(path)))


def _walk(root: Path, top: Path) -> Iterator[tuple[str, Entry]]:
    """Yield what is there; the node is alive, and what goes while we look is not there."""
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if f"{folder}/{name}" != f"{root}{_RUNTIME}"]
        for path in (Path(folder, name) for name in (*folders, *files)):
            with suppress(OSError):
                yield str(path).removeprefix(str(root)), entry_of(path)


def differing(before: Tree, after: Tree) -> list[str]:
    """Return the paths that came, went, or changed their kind, mode, owner or content."""
    return sorted(path for path in before.keys() | after.keys() if not _is_like(before, after, path))


def _is_like(before: Tree, after: Tree, path: str) -> bool:
    return path in before and before[path].is_like(after.get(path))


def unexplained(before: Tree, after: Tree, folders: Iterable[str] = ()) -> list[str]:
    """Return what changed on the disk, but for what others write, into those folders or their own."""
    return [path for path in differing(before, after) if not is_below(path, (*OTHERS, *folders))]


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def named(plan: Plan) -> set[str]:
    """Return the paths of a plan, with the folders above them: those are made where they are missing."""
    found = {path for step in plan["steps"] for path in _paths(step["action"])}
    return found | {str(parent) for path in found for parent in Path(path).parents}


def filled(plan: Plan) -> list[str]:
    """Return what services that the plan starts will write to, by its own words."""
    actions = [step["action"] for step in plan["steps"]]
    return [path for each in actions for path in (*each.get("fills", ()), *each.get("writes", ()))]


def _paths(action: Mapping[str, Any]) -> Iterator[str]:
    if "path" in action:
        yield action["path"]
    yield from (file["path"] for file in action.get("files", []))


def journaled(lab: LabUnderTest, node: str) -> Plan:
    """Return the plan in the journal of the newest run."""
    newest = sorted((lab.files.node(node).var / "lib/garboard/runs").iterdir())[-1]
    found: Plan = json.loads((newest / "journal.jsonl").read_text().splitlines()[0])["plan"]
    return found
