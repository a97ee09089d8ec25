"""One configuration on a machine: what the real kubeadm leaves there, phase by phase."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from tests.support.parity.kubeadm import Kubeadm
from tools.harness import machine as harness
from tools.harness.answers import program_digest, sources_digest
from tools.harness.machine import FileState, Machine

CONFIG_PATH, PATCHES_PATH = "/kubeadm.yaml", "/patches"
CONFIGURATIONS = Path(__file__).parents[2] / "parity" / "configurations"
FILE_PHASES = ("certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start")
FILE_FOLDERS = ("/etc", "/var", "/srv")
NODE_PHASES = ("etcd local", "control-plane all", "kubelet-start")
NODE_FOLDERS = ("/etc/kubernetes", "/var/lib/kubelet")
_ECDSA = "encryptionAlgorithm: ECDSA-P256\n"
_WITH_RSA = ("defaults", "custom-certificates-dir", "external-etcd", "ipv6", "v1beta3", "gate-off")
_HEADER = re.compile(r"# ([a-z-]+): (.*)")


@dataclass(frozen=True)
class Configuration:
    """A file of `configurations/`: its first lines say in comments what the machine is like.

    `# environment: NAME=value …`, `# directories: /path …`, `# systemd-resolved: active`. Those that must be refused
    are named refused-…, or say by which minors: `# refused: 1.37`. `VERSION` stands for the minor's reference release,
    and a folder NAME.patches is there as /patches.
    """

    path: Path
    added: str = ""  # more lines for the ClusterConfiguration

    @property
    def name(self) -> str:
        return self.path.stem

    def is_refused_by(self, version: str) -> bool:
        minor = version[1:].rpartition(".")[0]
        return self.name.startswith("refused-") or minor in self.headers.get("refused", "").split()

    @property
    def headers(self) -> Mapping[str, str]:
        lines = self.path.read_text().splitlines()
        found = (_HEADER.fullmatch(line) for line in lines if line.startswith("#"))
        return {each[1]: each[2] for each in found if each}

    @property
    def environment(self) -> dict[str, str]:
        pairs = (each.partition("=") for each in self.headers.get("environment", "").split())
        return {name: value for name, _, value in pairs}

    @property
    def patches(self) -> Path | None:
        folder = self.path.with_suffix(".patches")
        return folder if folder.is_dir() else None

    def text(self, version: str) -> str:
        line = "kubernetesVersion: VERSION\n"
        return self.path.read_text().replace(line, line + self.added).replace("VERSION", version)

    def machine(self, root: Path, version: str) -> Machine:
        machine = Machine.make(
            root,
            has_systemd_resolved="systemd-resolved" in self.headers,
            directories=self.headers.get("directories", "").split(),
        )
        machine.put(CONFIG_PATH, self.text(version))
        if self.patches:
            machine.put_tree(PATCHES_PATH, self.patches)
        return machine


def with_quick_keys(path: Path) -> Configuration:
    """Return the configuration, with keys that are made faster unless it or its name says otherwise."""
    says_otherwise = path.stem in _WITH_RSA or "encryptionAlgorithm" in path.read_text()
    return Configuration(path, "" if says_otherwise else _ECDSA)


@dataclass(frozen=True)
class Ran:
    """What became of each phase, and the files that are there after all of them."""

    machine: Machine
    failures: Mapping[str, str]  # phase to what it said; only those that failed
    files: Mapping[str, FileState] = field(repr=False)
    output: Mapping[str, str] = field(repr=False, default_factory=dict)


def all_configurations() -> list[Configuration]:
    """Return every configuration whose manifests can be written on an empty machine."""
    found = [Configuration(path) for path in sorted(CONFIGURATIONS.glob("*.yaml"))]
    return [each for each in found if "needs-certificates" not in each.headers]


def run_kubeadm(
    kubeadm: Kubeadm,
    machine: Machine,
    phases: Sequence[str] = NODE_PHASES,
    environment: Mapping[str, str] | None = None,
    folders: Sequence[str] = NODE_FOLDERS,
) -> Ran:
    """Run `kubeadm init phase …` for each phase; a phase that fails does not keep the others from running."""
    failures, output = {}, {}
    for phase in phases:
        arguments = ("init", "phase", *phase.split(), "--config", CONFIG_PATH)
        done = machine.run(kubeadm.program, *arguments, environment=environment)
        output[phase] = done.stdout
        if done.returncode:
            failures[phase] = done.stderr
    return Ran(machine, failures, machine.files(*folders), output)


def kept_node_files(kubeadm: Kubeadm, configuration: Configuration, root: Path) -> Ran:
    """Return what the phases of NODE_PHASES leave on an empty machine, from the cache if it is known.

    They write no keys and no dates, so it depends on nothing but the program, the configuration and the machine.
    """
    machine = configuration.machine(root, kubeadm.version)

    def ask() -> bytes:
        ran = run_kubeadm(kubeadm, machine, environment=configuration.environment)
        files = {path: (each.mode, base64.b64encode(each.content).decode()) for path, each in ran.files.items()}
        return json.dumps({"failures": ran.failures, "files": files}).encode()

    patches = sources_digest(configuration.patches, "*") if configuration.patches else ""
    question = (
        "node files", program_digest(kubeadm.program), kubeadm.version, Path(harness.__file__).read_text(),
        configuration.text(kubeadm.version), patches,
        *NODE_PHASES, *sorted(path for path in EXTRA_CA_DIRECTORIES if machine.has(path)),
    )  # fmt: skip
    found = json.loads(kubeadm.answers.get(question, ask))
    files = {path: FileState(mode, base64.b64decode(content)) for path, (mode, content) in found["files"].items()}
    return Ran(machine, found["failures"], files)
