"""The labs of this machine: where each is, how to reach its nodes and what goes into them."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.lab.binaries import CLUSTER_PROGRAMS, Binaries
from garboard.lab.bootstrap import ClusterBootstrap
from garboard.lab.cgroups import LabGroups, parse_hierarchies
from garboard.lab.control import ask
from garboard.lab.images import ImageDefinition
from garboard.lab.imageset import ImageStore, pause_image, release_images, release_key
from garboard.lab.kubeadm import Documents, Needs
from garboard.lab.layout import LabFiles, images_folder, program_folder
from garboard.lab.machine import LabMachine
from garboard.lab.namespaces import RootPlan, enter_command, plan_root
from garboard.lab.program import NodeGarboard, compiled_packages
from garboard.lab.provision import NodeContent
from garboard.lab.record import Record, Records
from garboard.lab.topology import Lab, Node
from garboard.model import KubernetesVersion

NODE_PROGRAMS = ("kubeadm", "kubelet", "kubectl", "crictl", "etcdctl")
CAP_SYS_RESOURCE = 24


@dataclass(frozen=True, slots=True)
class Labs:
    """All labs of one home on this machine."""

    machine: LabMachine
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
        return [record for record in found if record is not None and not self.records.is_left_over(record)]

    def ask(self, lab: str, request: dict[str, Json]) -> dict[str, Json]:
        """Ask the supervisor of a lab."""
        self.records.require(lab)
        return ask(self.files(lab).control, request)

    def node_pids(self, lab: str) -> dict[str, int]:
        """The first process of each running node."""
        nodes = self.ask(lab, {"do": "status"})["nodes"]
        assert isinstance(nodes, dict)
        return {name: int(str(facts["pid"])) for name, facts in nodes.items() if isinstance(facts, dict)}

    def ready_servers(self, lab: str) -> list[str]:
        """The addresses of the API servers that the load balancer has found ready."""
        endpoint = self.ask(lab, {"do": "status"})["endpoint"]
        assert isinstance(endpoint, dict)
        return [address for address, is_ready in endpoint.items() if is_ready]

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
            may_lower_oom_score=has_capability(self._read_proc("status"), CAP_SYS_RESOURCE),
            program=self.program(),
        )

    def program(self) -> NodeGarboard:
        """garboard, as it goes into nodes."""
        return NodeGarboard(program_folder(self.home), self.python, compiled_packages())

    @contextmanager
    def using_images(self) -> Iterator[None]:
        """Keep images from being removed between the moment they are found and the moment a node has links to them."""
        self.machine.make_folder(images_folder(self.home))
        with self.machine.locked(self._images_lock, shared=True):
            yield

    @contextmanager
    def images_locked(self) -> Iterator[bool]:
        """Keep images from being used while the block runs; it learns whether they are free."""
        self.machine.make_folder(images_folder(self.home))
        with self.machine.locked(self._images_lock, wait=False) as is_free:
            yield is_free

    @property
    def _images_lock(self) -> Path:
        return images_folder(self.home) / ".in-use"

    def _images(self, versions: Sequence[str]) -> list[ImageDefinition]:
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
        return LabGroups(self.machine, parse_hierarchies(self._read_proc("mountinfo")), f"{name}.{tag}")

    def has_cgroup_v1(self) -> bool:
        """Say whether kubelets here work with cgroup v1."""
        return any(not each.is_v2 and "memory" in each.options for each in self.groups("").hierarchies)

    def _read_proc(self, name: str) -> str:
        return self.machine.read_kernel_file(Path("/proc/self") / name)

    def root_plan(self) -> RootPlan:
        """What every node sees of this machine's folders."""
        entries = sorted(Path("/").iterdir())
        described = [(e.name, str(e.readlink()) if e.is_symlink() else None, e.is_dir()) for e in entries]
        return plan_root(described, self.home)


def has_capability(status: str, number: int) -> bool:
    """Read from the text of /proc/self/status whether the process has the capability `number`."""
    line = next(each for each in status.splitlines() if each.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> number & 1)
