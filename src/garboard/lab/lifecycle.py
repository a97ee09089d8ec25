"""Making and removing labs: the order of the steps, and the clearing away of whatever a crash left behind."""

import hashlib
import os
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from garboard.documents import Json
from garboard.errors import BadUsage, GarboardError
from garboard.lab.binaries import CLUSTER_PROGRAMS, Binaries
from garboard.lab.bootstrap import KubeadmBootstrap, measured
from garboard.lab.cgroups import LabGroups, parse_hierarchies
from garboard.lab.control import SupervisorGone, ask
from garboard.lab.entering import enter_command
from garboard.lab.imageset import ImageStore, pause_image, release_images
from garboard.lab.kubeadm import PATCHES, Documents, Needs
from garboard.lab.layout import LabFiles, images_folder
from garboard.lab.limits import Limits
from garboard.lab.machine import Machine
from garboard.lab.mounts import RootPlan, plan_root
from garboard.lab.preflight import Preflight, ProxyMode
from garboard.lab.provision import NodeContent, provision
from garboard.lab.record import ProcessId, Record, Records, Stage, myself
from garboard.lab.topology import Bootstrap, Lab, Node, Role

NODE_PROGRAMS = ("kubeadm", "kubelet", "kubectl", "crictl", "etcdctl")
SUPERVISOR_WITHIN_S = 15.0
GONE_WITHIN_S = 15.0
CAP_SYS_RESOURCE = 24


@dataclass(frozen=True, slots=True)
class Order:
    """What `lab up` was asked for."""

    lab: Lab
    yours: Documents = field(default_factory=dict)
    patches: Path | None = None


@dataclass(frozen=True, slots=True)
class Labs:
    """All labs of one home on this machine."""

    machine: Machine
    home: Path
    binaries: Binaries
    # `SUPERVISOR --home HOME --name NAME --forward FD` runs a supervisor; NODE becomes the first process of a node.
    supervisor_command: Sequence[str]
    python: str
    report: Callable[[str], None]

    @property
    def records(self) -> Records:
        return Records(self.machine, self.home)

    # --- up ---------------------------------------------------------------------------------------------------------

    def up(self, order: Order) -> Record:
        """Make the lab and return its record once the cluster is ready; a failure leaves nothing but the logs."""
        lab, timings = order.lab, {"began": time.time()}
        if lab.bootstrap is Bootstrap.GARBOARD:
            raise BadUsage(
                "`--by garboard` needs `garboard init` and `garboard join`, which this release does not have yet",
                hint="use --by kubeadm, or --by none for bare nodes",
            )
        running = sum(len(each.lab.nodes) for each in self._all_records() if not each.is_left_over)
        preflight = Preflight(self.machine, self.home, running + len(lab.nodes))
        preflight.require()
        with measured(timings, "programs and images"):
            content = self.node_content(lab)
        needs = self._needs(preflight, order)
        record = self._claim(lab)
        try:
            Limits(self.machine, self.home).raise_for(running + len(lab.nodes))
            record = self._start_supervisor(record)
            bootstrap = self.bootstrap(record, needs, order.yours)
            if lab.bootstrap is Bootstrap.KUBEADM:
                bootstrap.check()
            with measured(timings, "nodes"):
                self._start_nodes(record, content)
            self._place_patches(bootstrap, order)
            if lab.bootstrap is Bootstrap.KUBEADM:
                bootstrap.run(record.port, timings)
        except BaseException:
            self._clear_failed(lab.name)
            raise
        timings["total"] = round(time.time() - timings.pop("began"), 3)
        return self.records.update(record, stage=Stage.READY, timings=timings)

    def node_content(self, lab: Lab) -> NodeContent:
        """Find or make everything that goes into the nodes: programs and images, shared by all labs."""
        version = str(lab.version)
        found = self.binaries.get(self.binaries.pins.wanted(name, kubernetes=version) for name in CLUSTER_PROGRAMS)
        paths = {each.wanted.program.name: each.path for each in found}
        store = ImageStore(self.machine, images_folder(self.home), self.report)
        images = store.prepare(release_images(self.binaries, self.machine, version))
        return NodeContent(
            programs={name: paths[name] for name in NODE_PROGRAMS},
            cni_plugins=paths["cni-plugins"],
            image_store=images,
            pause_image=pause_image(self.binaries, version),
            may_lower_oom_score=has_capability(Path("/proc/self/status").read_text(), CAP_SYS_RESOURCE),
            python=self.python,
        )

    def _needs(self, preflight: Preflight, order: Order) -> Needs:
        mode = ProxyMode("nftables") if order.lab.bootstrap is Bootstrap.NONE else preflight.proxy_mode()
        if mode.lacks:
            self.report(f"kube-proxy uses {mode.mode}: {mode.lacks}")
        is_v1 = any(not each.is_v2 and "memory" in each.options for each in self.groups("").hierarchies)
        return Needs(is_v1, mode.mode, has_patches=order.patches is not None)

    def _claim(self, lab: Lab) -> Record:
        """Take the lab's name; what an earlier run left under it is cleared away, what is alive is not touched."""
        (self.home / "labs").mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)
        with self.machine.locked(self.home / ".lock"):
            if lab.name in self.records.names():
                earlier = self.records.read(lab.name)
                if earlier is not None and not earlier.is_left_over:
                    raise BadUsage(
                        f"lab {lab.name} exists already",
                        hint=f"remove it with `garboard lab down --name {lab.name}`, or choose another --name",
                        error_class="lab-exists",
                    )
                self.report(f"clearing away what is left of an earlier lab {lab.name}")
                self.remove(lab.name)
            self.records.files(lab.name).folder.mkdir(mode=0o700)
            return self.records.write(Record(lab, Stage.CREATING, myself()))

    def _start_supervisor(self, record: Record) -> Record:
        """Start the lab's one process; it inherits the loopback port, for it lives in another network."""
        files = self.records.files(record.lab.name)
        with socket.create_server(("127.0.0.1", 0)) as forward:
            port = forward.getsockname()[1]
            command: list[str | Path] = [
                "unshare", "--net", "--", *self.supervisor_command, "--home", self.home, "--name", record.lab.name,
                "--forward", str(forward.fileno()),
            ]  # fmt: skip
            pid = self.machine.start_detached(command, log=files.supervisor_log, keep=[forward.fileno()])
        record = self.records.update(record, supervisor=ProcessId.of(pid), port=port)
        deadline = time.monotonic() + SUPERVISOR_WITHIN_S
        while True:
            try:
                ask(files.control, {"do": "ping"})
            except SupervisorGone:
                if time.monotonic() > deadline or ProcessId.of(pid) is None:
                    said = self.machine.read_file(files.supervisor_log).decode("utf-8", "replace").strip()
                    raise GarboardError(
                        f"the lab's supervisor did not start:\n{said}", error_class="supervisor"
                    ) from None
                time.sleep(0.02)
            else:
                return record

    def _start_nodes(self, record: Record, content: NodeContent) -> None:
        root = self.root_plan()
        for node in record.lab.nodes:
            provision(self.records.files(record.lab.name).node(node.name), record.lab, node, root, content)
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(lambda node: self.start_node(record, node), record.lab.nodes):
                pass
        self.report(f"{len(record.lab.nodes)} nodes run")

    def start_node(self, record: Record, node: Node) -> None:
        files = self.records.files(record.lab.name)
        request: dict[str, Json] = {"do": "start-node", "lab": record.lab.as_json(), "node": node.name}
        ask(files.control, request)

    def _place_patches(self, bootstrap: KubeadmBootstrap, order: Order) -> None:
        if order.patches is None:
            return
        for node in order.lab.nodes:
            for path in sorted(order.patches.iterdir()):
                if path.is_file():
                    text = self.machine.read_file(path).decode("utf-8", "surrogateescape")
                    bootstrap.place(node, f"{PATCHES}/{path.name}", text)

    def _clear_failed(self, name: str) -> None:
        """Keep the logs of a lab that did not come up, and nothing else of it."""
        files, kept = self.records.files(name), self.home / "failed" / name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for node in sorted((files.folder / "nodes").glob("*")):
            shutil.copytree(files.node(node.name).var / "log", kept / node.name, symlinks=True, dirs_exist_ok=True)
        if files.supervisor_log.exists():
            shutil.copy2(files.supervisor_log, kept)
        self.report(f"the lab did not come up; its logs are in {kept}")
        self.remove(name)

    # --- down -------------------------------------------------------------------------------------------------------

    def down(self, name: str) -> None:
        """Remove a lab with everything it has in the kernel and on disk."""
        if name not in self.records.names():
            self.records.require(name)
        with self.machine.locked(self.home / ".lock"):
            record = self.records.read(name)
            if record is not None:
                self.records.update(record, stage=Stage.REMOVING, creator=myself())
            self.remove(name)

    def prune(self) -> list[str]:
        """Remove every lab that nobody runs any more; return their names."""
        if not self.home.is_dir():
            return []
        with self.machine.locked(self.home / ".lock"):
            dead = [name for name in self.records.names() if (r := self.records.read(name)) is None or r.is_left_over]
            for name in dead:
                self.remove(name)
            self._restore_limits()
        return dead

    def remove(self, name: str) -> None:
        """Kill the supervisor, with which every process of the lab dies, then remove groups and files."""
        record = self.records.read(name)
        if record and record.supervisor:
            self._end(record.supervisor)
        self._remove_groups(name)
        shutil.rmtree(self.records.files(name).folder)
        self._restore_limits()

    def _end(self, supervisor: ProcessId) -> None:
        deadline = time.monotonic() + GONE_WITHIN_S
        while supervisor.is_alive:
            os.kill(supervisor.pid, 9)
            if time.monotonic() > deadline:
                raise GarboardError(f"the supervisor (process {supervisor.pid}) cannot be killed")
            time.sleep(0.01)

    def _remove_groups(self, name: str) -> None:
        """Remove the lab's control groups once the last of its processes has gone, which takes the kernel a moment."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while left := self.groups(name).remove():
            if time.monotonic() > deadline:
                raise GarboardError(f"processes of lab {name} cannot be killed; see {left[0]}/cgroup.procs")
            self._kill_stragglers(left)
            time.sleep(0.02)

    def _kill_stragglers(self, groups: Sequence[Path]) -> None:
        for group in groups:
            for pid in (group / "cgroup.procs").read_text().split():
                try:
                    os.kill(int(pid), 9)
                except ProcessLookupError:
                    continue

    def _restore_limits(self) -> None:
        if not self.records.names():
            Limits(self.machine, self.home).restore()

    # --- what commands share ----------------------------------------------------------------------------------------

    def bootstrap(self, record: Record, needs: Needs, yours: Documents) -> KubeadmBootstrap:
        return KubeadmBootstrap(
            machine=self.machine,
            files=self.records.files(record.lab.name),
            lab=record.lab,
            enter=lambda node, command: self.enter(record.lab.name, node.name, command),
            kubectl=self.binaries.locate("kubectl", str(record.lab.version)),
            needs=needs,
            yours=yours,
            report=self.report,
        )

    def enter(self, lab: str, node: str, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` in a node."""
        status = self.status(lab)["nodes"]
        assert isinstance(status, dict)
        facts = status.get(node)
        if not isinstance(facts, dict):
            raise GarboardError(f"node {node} is not running", hint=f"start it with `garboard lab start {node}`")
        pid = facts["pid"]
        assert isinstance(pid, int)
        return enter_command(pid, self.groups(lab).entry_files(node), command)

    def status(self, lab: str) -> dict[str, Json]:
        return ask(self.records.files(lab).control, {"do": "status"})

    def groups(self, name: str) -> LabGroups:
        return LabGroups(parse_hierarchies(Path("/proc/self/mountinfo").read_text()), group_name(self.home, name))

    def root_plan(self) -> RootPlan:
        entries = sorted(Path("/").iterdir())
        described = [(e.name, str(e.readlink()) if e.is_symlink() else None, e.is_dir()) for e in entries]
        return plan_root(described, self.home)

    def _all_records(self) -> list[Record]:
        return [record for name in self.records.names() if (record := self.records.read(name)) is not None]


def group_name(home: Path, lab: str) -> str:
    """Name the control group of a lab so that labs of the same name under another home keep their own."""
    return f"{lab}.{hashlib.sha256(str(home).encode()).hexdigest()[:6]}"


def has_capability(status: str, number: int) -> bool:
    """Read from the text of /proc/self/status whether the process has the capability `number`."""
    line = next(each for each in status.splitlines() if each.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> number & 1)


def role_of(text: str) -> Role:
    return Role.CONTROL_PLANE if text == "control-plane" else Role.WORKER


__all__ = ["LabFiles", "Labs", "Order", "group_name", "has_capability", "role_of"]
