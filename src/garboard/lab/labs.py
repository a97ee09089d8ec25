"""The labs of this machine: where each is, how to reach its nodes and what goes into them."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.lab.binaries import CLUSTER_PROGRAMS, Binaries
from garboard.lab.bootstrap import ClusterBootstrap
from garboard.lab.cgroups import LabGroups, parse_hierarchies
from garboard.lab.control import ask
from garboard.lab.entering import enter_command
from garboard.lab.images import Image
from garboard.lab.imageset import ImageStore, pause_image, release_images, release_key
from garboard.lab.kubeadm import Documents, Needs
from garboard.lab.layout import LabFiles, images_folder
from garboard.lab.machine import Machine
from garboard.lab.mounts import RootPlan, plan_root
from garboard.lab.provision import NodeContent
from garboard.lab.record import Record, Records
from garboard.lab.topology import Lab, Node
from garboard.model import KubernetesVersion

NODE_PROGRAMS = ("kubeadm", "kubelet", "kubectl", "crictl", "etcdctl")
CAP_SYS_RESOURCE = 24


@dataclass(frozen=True, slots=True)
class Labs:
    """All labs of one home on this machine."""

    machine: Machine
    home: Path
    binaries: Binaries
    # This, with `--home HOME --name NAME --forward FD`, is the supervisor of a lab.
    supervisor_command: Sequence[str]
    python: str
    report: Callable[[str], None]

    @property
    def records(self) -> Records:
        return Records(self.machine, self.home)

    def files(self, name: str) -> LabFiles:
        return LabFiles(self.home, name)

    def running(self) -> list[Record]:
        """The records of all labs that are alive."""
        found = (self.records.read(name) for name in self.records.names())
        return [record for record in found if record is not None and not record.is_left_over]

    def ask(self, lab: str, request: dict[str, Json]) -> dict[str, Json]:
        """Ask the supervisor of a lab."""
        self.records.require(lab)
        return ask(self.files(lab).control, request)

    def node_pids(self, lab: str) -> dict[str, int]:
        """The first process of each running node."""
        nodes = self.ask(lab, {"do": "status"})["nodes"]
        assert isinstance(nodes, dict)
        return {name: int(str(facts["pid"])) for name, facts in nodes.items() if isinstance(facts, dict)}

    def start_node(self, lab: Lab, node: Node) -> None:
        """Have the supervisor start a node whose files are there."""
        ask(self.files(lab.name).control, {"do": "start-node", "lab": lab.as_json(), "node": node.name})

    def enter(self, lab: str, node: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
        """Return the command that runs `command` in a node."""
        self.records.require(lab).lab.node(node)
        pid = self.node_pids(lab).get(node)
        if pid is None:
            raise GarboardError(
                f"node {node} is not running",
                hint=f"start it with `garboard lab start {node}`",
                error_class="node-stopped",
            )
        return enter_command(pid, self.groups(lab).entry_files(node), command, env=env)

    def node_content(self, lab: Lab, kubernetes: KubernetesVersion) -> NodeContent:
        """Find or make everything that goes into a node of release `kubernetes`: programs and images."""
        version = str(kubernetes)
        versions = sorted({version, str(lab.version), *map(str, lab.also)})
        found = self.binaries.get(self.binaries.pins.wanted(name, kubernetes=version) for name in CLUSTER_PROGRAMS)
        paths = {each.wanted.program.name: each.path for each in found}
        store = ImageStore(self.machine, images_folder(self.home), self.report)
        self.binaries.get(self.binaries.pins.wanted(name, kubernetes=v) for v in versions for name in CLUSTER_PROGRAMS)
        key = release_key(self.binaries, self.machine, versions)
        images = store.prepare(key, lambda: self._images(versions))
        return NodeContent(
            programs={name: paths[name] for name in NODE_PROGRAMS},
            releases={
                each: {name: self.binaries.locate_for(name, each) for name in NODE_PROGRAMS} for each in versions
            },
            cni_plugins=paths["cni-plugins"],
            image_store=images,
            pause_image=pause_image(self.binaries, version),
            may_lower_oom_score=has_capability(Path("/proc/self/status").read_text(), CAP_SYS_RESOURCE),
            python=self.python,
        )

    def _images(self, versions: Sequence[str]) -> list[Image]:
        """The images of some releases, those that they share once."""
        found = (image for version in versions for image in release_images(self.binaries, self.machine, version))
        return list({image.name: image for image in found}.values())

    def bootstrap(self, record: Record, needs: Needs, yours: Documents) -> ClusterBootstrap:
        return ClusterBootstrap(
            machine=self.machine,
            files=self.files(record.lab.name),
            lab=record.lab,
            enter=lambda node, command: self.enter(record.lab.name, node.name, command),
            kubectl=self.binaries.locate("kubectl", str(record.lab.version)),
            needs=needs,
            yours=yours,
            report=self.report,
        )

    def groups(self, name: str) -> LabGroups:
        """The control groups of a lab; labs of the same name under another home have others."""
        tag = hashlib.sha256(str(self.home).encode()).hexdigest()[:6]
        return LabGroups(parse_hierarchies(Path("/proc/self/mountinfo").read_text()), f"{name}.{tag}")

    def root_plan(self) -> RootPlan:
        """What every node sees of this machine's folders."""
        entries = sorted(Path("/").iterdir())
        described = [(e.name, str(e.readlink()) if e.is_symlink() else None, e.is_dir()) for e in entries]
        return plan_root(described, self.home)


def has_capability(status: str, number: int) -> bool:
    """Read from the text of /proc/self/status whether the process has the capability `number`."""
    line = next(each for each in status.splitlines() if each.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> number & 1)
