"""A scratch machine that kubeadm made, upgraded by kubeadm's dry run and planned by us, from the same objects."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from garboard.config import ResolvedVersion, resolve_version
from garboard.config.load import ConfigFile
from garboard.config.reading import ReadOptions
from garboard.documents import Json, read_yaml
from garboard.engine import PutObject, Step, WriteFile
from garboard.host import list_tree
from garboard.manifests import NodeHost
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.model import KubernetesVersion
from garboard.model.lifecycle import UpgradeApply, UpgradeConfiguration
from garboard.model.node import NodeRegistration
from garboard.model.paths import manifest_path
from garboard.patches import PatchFile
from garboard.phases.patching import NodePatches
from garboard.phases.upgrade.cluster import read_upgraded
from garboard.phases.upgrade.context import UpgradeContext, UpgradeOptions, observe_this_node, observe_upgrade
from garboard.phases.upgrade.control_plane import render_pods
from garboard.phases.upgrade.tree import plan_dns, plan_kubelet_files, plan_proxy
from tests.support.parity.live import SUPER_ADMIN, LiveCluster, succeeded
from tests.support.parity.node_run import CONFIG_PATH, PATCHES_PATH
from tests.support.parity.rendering import FACTS
from tests.support.phases.machines import NOW, MemoryMachine
from tools.harness.machine import HOSTNAME, FileState, Machine

FOLDER, UPGRADE_PATH = "/dry-run", "/upgrade.yaml"
SOCKET = "unix:///var/run/containerd/containerd.sock"
# The files of /etc and the kubelet first, then the objects.
MADE = ("etcd local", "control-plane all", "kubelet-start")
USERS = ("/etc/passwd", "/etc/group", "/etc/login.defs")
PUT = ("upload-config all", "addon all")
_FILE = re.compile(
    r'\[dryrun\] Would write file "([^"]+)" with content:\n(.*?)(?=^\[|\[dryrun\])', re.DOTALL | re.MULTILINE
)
_PODS = {"apiVersion": "v1", "kind": "List"}


@dataclass
class SavedObjects:
    """The objects of a cluster as they were, for planning."""

    items: list[Any]

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        of_kind: list[Any] = [*self.list_all(kind)]
        found = (each for each in of_kind if each["metadata"].get("namespace", "") == namespace)
        return next((each for each in found if each["metadata"]["name"] == name), None)

    def labelled(self, kind: str, namespace: str, selector: str) -> Sequence[dict[str, Json]]:
        label, _, value = selector.partition("=")
        of_kind: list[Any] = [*self.list_all(kind)]
        return [each for each in of_kind if each["metadata"].get("labels", {}).get(label) == value]

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]:
        return [each for each in self.items if each["kind"] == kind]


@dataclass(frozen=True)
class UpgradedMachine:
    """A machine with the control plane of one configuration, and its cluster."""

    cluster: LiveCluster
    target: str

    @property
    def machine(self) -> Machine:
        return self.cluster.machine

    def make(self, configuration: str, patches: dict[str, str]) -> None:
        """Make files and objects anew with kubeadm of the former version."""
        for folder in ("etc/kubernetes/manifests", "var/lib/kubelet", FOLDER.lstrip("/"), PATCHES_PATH.lstrip("/")):
            shutil.rmtree(self.machine.root / folder, ignore_errors=True)
            (self.machine.root / folder).mkdir(parents=True)
        for name, text in patches.items():
            self.machine.put(f"{PATCHES_PATH}/{name}", text)
        self.machine.put(CONFIG_PATH, configuration.replace("VERSION", self.cluster.programs.version))
        self.cluster.kubectl("delete", "deployments,daemonsets,pods,nodes", "--all", "-n", "kube-system", "--force",
                             "--ignore-not-found")  # fmt: skip
        external = "external:" in configuration
        for phase in MADE[external:]:
            self._kubeadm("init", "phase", *phase.split(), "--config", CONFIG_PATH)
        for phase in PUT[: 1 if "disabled" in configuration else None]:  # the phase alone does not look at that
            self._kubeadm("init", "phase", *phase.split(), "--config", CONFIG_PATH, "--kubeconfig", SUPER_ADMIN)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": HOSTNAME}}
        items = [node, *(self._mirror(path) for path in sorted(self._manifests()))]
        self.machine.put("/objects.json", json.dumps({**_PODS, "items": items}))
        self.cluster.kubectl("create", "-f", "/objects.json")

    def _kubeadm(self, *words: str) -> None:
        succeeded(self.machine.run(self.cluster.programs.kubeadm, *words))

    def _manifests(self) -> list[str]:
        return [name for name in self.machine.files("/etc/kubernetes/manifests") if name.endswith(".yaml")]

    def _mirror(self, path: str) -> Any:
        """Return a static Pod as its kubelet would show it to the cluster."""
        pod: Any = read_yaml(self.machine.text(path), source=path)
        pod["metadata"]["name"] += f"-{HOSTNAME}"
        marks = {"kubernetes.io/config.mirror": "0", "kubernetes.io/config.hash": "0"}
        pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), **marks}
        pod["spec"]["nodeName"] = HOSTNAME
        pod.pop("status", None)
        return pod

    def by_kubeadm(self, kubeadm: Any, upgrade: str) -> tuple[dict[str, FileState], dict[str, Json]]:
        """Return the files and the objects of addons that the dry run of the newer kubeadm shows."""
        self.machine.put(UPGRADE_PATH, upgrade.replace("VERSION", self.target))
        done = self.machine.run(
            kubeadm,
            *("upgrade", "apply", "--config", UPGRADE_PATH, "--kubeconfig", SUPER_ADMIN),
            environment={"KUBEADM_UPGRADE_DRYRUN_DIR": FOLDER},
        )
        succeeded(done)
        files = {path: FileState(0, text.encode()) for path, text in _FILE.findall(done.stdout)}
        return files, _documents(done.stdout)

    def etcd_by_kubeadm(self, kubeadm: Any, configuration: str) -> FileState:
        """Return the manifest of etcd, which the dry run of an upgrade leaves out, as the newer kubeadm makes it."""
        text = configuration.replace("VERSION", self.target)
        self.machine.put(CONFIG_PATH, text)
        path = manifest_path("etcd")
        former = self.machine.text(path)
        succeeded(self.machine.run(kubeadm, "init", "phase", "etcd", "local", "--config", CONFIG_PATH))
        made = self.machine.text(path)
        self.machine.put(path, former)
        return FileState(0, made.encode())

    def context(self, upgrade: str) -> UpgradeContext:
        """Return what we plan the same upgrade from."""
        return _Planning(self, upgrade.replace("VERSION", self.target)).context


@dataclass(frozen=True)
class _Planning:
    of: UpgradedMachine
    upgrade: str

    @cached_property
    def document(self) -> UpgradeConfiguration:
        options, version = ReadOptions(detects_cri=False), KubernetesVersion.parse(self.of.target)
        file = ConfigFile.read(self.upgrade, file="upgrade.yaml", host=FACTS, options=options, version=version)
        return file.upgrade().config

    @property
    def settings(self) -> UpgradeApply:
        return self.document.apply

    @property
    def context(self) -> UpgradeContext:
        files = self.of.machine.files("/etc/kubernetes", "/var/lib/kubelet")
        memory = MemoryMachine({path: each.content for path, each in files.items()} | self._users())
        this = observe_this_node(memory, (SOCKET,))
        kinds = "configmaps,deployments,daemonsets,services,pods"
        listed = json.loads(self.of.cluster.kubectl("get", kinds, "-n", "kube-system", "-o", "json"))["items"]
        nodes = json.loads(self.of.cluster.kubectl("get", "nodes", "-o", "json"))["items"]
        objects = SavedObjects([*listed, *nodes])
        version: ResolvedVersion = resolve_version(self.settings.kubernetes_version)
        return observe_upgrade(
            this,
            read_upgraded(objects, FACTS, version, this.endpoint, is_worker=False),
            UpgradeOptions(is_first=True, upgrades_etcd=self.settings.etcd_upgrade),
            host=NodeHost(
                hostname=HOSTNAME,
                ca_directories=frozenset(path for path in EXTRA_CA_DIRECTORIES if self.of.machine.has(path)),
            ),
            machine=memory,
            patches=self._patches(),
            now=NOW,
            objects=objects,
            timeouts=self.document.timeouts,
            registration=NodeRegistration(name=this.name, cri_socket=SOCKET),
        )

    def _users(self) -> dict[str, bytes]:
        """Return the files that users are looked for in."""
        machine = self.of.machine
        return {path: machine.text(path).encode() for path in USERS if machine.has(path)}

    def _patches(self) -> NodePatches:
        directory = self.settings.patches_directory
        if not directory:
            return NodePatches(node_name=HOSTNAME, role="control-plane")
        root = self.of.machine.root / directory.lstrip("/")
        files = [PatchFile(path, path, (root / path).read_bytes) for path in list_tree(root)]
        return NodePatches(lambda: files, node_name=HOSTNAME, role="control-plane")


def planned_files(context: UpgradeContext) -> dict[str, FileState]:
    """Return the files that an upgrade writes, and those that it leaves as they are."""
    found = {manifest_path(pod.component): pod.manifest for pod in render_pods(context)[1]}
    found |= {path: context.machine.read(path) or b"" for path in ("/var/lib/kubelet/config.yaml",)}
    for step in plan_kubelet_files(context):
        if isinstance(step, Step) and isinstance(step.action, WriteFile):
            found[step.action.path] = step.action.content
    return {path: FileState(0, content) for path, content in found.items()}


def planned_addons(context: UpgradeContext) -> dict[str, Json]:
    """Return the objects of addons that an upgrade puts, by kind and name."""
    steps = (*plan_dns(context), *plan_proxy(context))
    actions = (each.action for each in steps if isinstance(each, Step))
    return {_named(each.content): each.content for each in actions if isinstance(each, PutObject)}


def _documents(output: str) -> dict[str, Json]:
    """Return the manifests of addons that a dry run prints, by kind and name."""
    start = output.index("[dryrun] Would configure bootstrap token")
    lines = (line for line in output[start:].splitlines(keepends=True) if not line.startswith("[patches]"))
    # A patched document follows its separator without a line break.
    chunks = re.split(r"^---\n?", "".join(lines), flags=re.MULTILINE)[1:]
    documents = [read_yaml(re.split(r"^\[", chunk, flags=re.MULTILINE)[0], source="dry run") for chunk in chunks]
    return {_named(each): each for each in documents if isinstance(each, dict) and "metadata" in each}


def _named(content: Any) -> str:
    return f"{content['kind']} {content['metadata']['name']}"
