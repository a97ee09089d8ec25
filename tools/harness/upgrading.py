"""A cluster of a lab that goes up a minor, node by node, and what it looks like before and afterwards."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.harness.faults import ANSWERS_AND_ENDS, FOLDER, MOUNTED, PATH
from tools.harness.killing import KillPoint
from tools.harness.lab import LabUnderTest, put
from tools.harness.swapping import COMPONENTS

FORMER, TARGET = "v1.36.4", "v1.37.1"
RELEASES = ("--kubernetes-version", FORMER, "--also", TARGET)
SMALL = (*RELEASES, "--control-planes", "1", "--workers", "0")
# Where the lab keeps the patches of its nodes; with --patches there are more of them.
PATCHES = "/etc/garboard-lab/patches"
_FAULTY, _CONFIG = "/root/faulty", "/root/upgrade.yaml"
# On a busy machine an API server takes most of a minute to start; the gate that fails must be the one of the fault.
_SETTLED_WITHIN = "90s"
_MANIFESTS = "/etc/kubernetes/manifests"
_ETCD = "/etc/kubernetes/pki/etcd"
_DOCUMENT = f"""apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
apply:
  kubernetesVersion: {TARGET}
  ignorePreflightErrors: [all]
  patches: {{directory: {_FAULTY}}}
node:
  ignorePreflightErrors: [all]
  patches: {{directory: {_FAULTY}}}
timeouts: {{upgradeManifests: {_SETTLED_WITHIN}}}
"""
_CRICTL = "crictl -r unix:///run/containerd/containerd.sock"


@dataclass(frozen=True)
class Fault:
    """A patch with which a component starts and is not well, and what an error has to say about that."""

    name: str
    target: str
    operations: tuple[Mapping[str, object], ...]
    cause: str
    script: str = ""

    @property
    def file(self) -> str:
        return f"{self.target}9+json.yaml"


def _argument(value: str) -> Mapping[str, object]:
    return {"op": "add", "path": "/spec/containers/0/command/-", "value": value}


CRASHING = Fault(
    "it ends at once, again and again",
    "kube-scheduler",
    (_argument("--no-such-flag=1"),),
    "unknown flag: --no-such-flag",
)
UNREADY = Fault(
    "the API server of this node alone is not ready",
    "kube-apiserver",
    (_argument("--etcd-readycheck-timeout=1ns"),),
    "this node's API server to be ready",
)
_CONTAINER = "/spec/containers/0"
EXITING = Fault(
    "it answers its probes and ends",
    "kube-scheduler",
    (
        {"op": "add", "path": f"{_CONTAINER}/env", "value": [{"name": "PATH", "value": PATH}]},
        *(
            {"op": "add", "path": f"{_CONTAINER}/volumeMounts/-", "value": {"name": f"f{number}", "mountPath": inside}}
            for number, inside in enumerate(MOUNTED.values())
        ),
        *(
            {"op": "add", "path": "/spec/volumes/-", "value": {"name": f"f{number}", "hostPath": {"path": path}}}
            for number, path in enumerate(MOUNTED)
        ),
    ),
    "to run steadily: kube-scheduler: ",
    script=ANSWERS_AND_ENDS,
)
FAULTS = (CRASHING, UNREADY, EXITING)


@dataclass(frozen=True)
class Upgrading:
    """The nodes of a lab; `garboard` is the command that runs it there."""

    lab: LabUnderTest
    garboard: tuple[str, ...]

    @property
    def kubeconfig(self) -> Path:
        return self.lab.files.kubeconfig

    def run(
        self, node: str, *words: str, killed_at: KillPoint | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        command = killed_at.of(self.garboard) if killed_at else self.garboard
        return self.lab.exec(node, *command, *words, check=check)

    def apply(self, node: str = "cp1", *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(node, "upgrade", "apply", TARGET, "--yes", "--patches", PATCHES, *words)

    def follow(self, *nodes: str) -> None:
        for node in nodes:
            self.run(node, "upgrade", "node", "--patches", PATCHES)

    def fail(self, node: str, fault: Fault, *words: str) -> subprocess.CompletedProcess[str]:
        """Upgrade a node with a fault among its patches."""
        patch = json.dumps([*fault.operations])
        self.lab.exec(node, "sh", "-c", f"rm -rf {_FAULTY} && cp -r {PATCHES} {_FAULTY} && mkdir -p {FOLDER}")
        put(self.lab, node, f"{_FAULTY}/{fault.file}", f"{patch}\n")
        put(self.lab, node, f"{FOLDER}/kube-scheduler", fault.script or "#!/bin/sh\n")
        self.lab.exec(node, "chmod", "755", f"{FOLDER}/kube-scheduler")
        put(self.lab, node, _CONFIG, _DOCUMENT)
        return self.run(node, "upgrade", *words, "--config", _CONFIG, check=False)

    def tags(self, node: str) -> dict[str, str]:
        """Return the tags of the images of which the static pods of a node run, by component."""
        running = json.loads(self.lab.exec(node, "sh", "-c", f"{_CRICTL} ps -o json").stdout)["containers"]
        known = json.loads(self.lab.exec(node, "sh", "-c", f"{_CRICTL} images -o json").stdout)["images"]
        names = {each["id"]: [*each["repoTags"], ""][0] for each in known}
        images = {each["metadata"]["name"]: names.get(each["imageRef"], each["image"]["image"]) for each in running}
        return {name: images[name].rpartition(":")[2] for name in COMPONENTS if name in images}

    def files(self, node: str) -> dict[str, str]:
        """Return the digests of what an upgrade changes on a node, by path."""
        places = f"{_MANIFESTS} /etc/kubernetes/*.conf /var/lib/kubelet/config.yaml /etc/kubernetes/pki"
        listed = self.lab.exec(node, "sh", "-c", f"find {places} -type f -exec sha256sum {{}} +").stdout
        return {path: digest for digest, path in map(str.split, listed.splitlines())}

    def objects(self) -> dict[str, str]:
        """Return what the objects say that an upgrade changes, by kind and name."""
        kinds = "configmaps,daemonsets.apps,deployments.apps"
        listed = json.loads(self.lab.kubectl("get", kinds, "-n", "kube-system", "-o", "json"))["items"]
        said = {(each["kind"], each["metadata"]["name"]): each.get("data") or each.get("spec") for each in listed}
        return {f"{kind}/{name}": json.dumps(content, sort_keys=True) for (kind, name), content in said.items()}

    def server_of_kubelet(self, node: str) -> str:
        shown = self.lab.exec(node, "grep", "server:", "/etc/kubernetes/kubelet.conf").stdout
        return shown.split()[1]

    def cluster_version(self, node: str) -> str:
        """Return etcd's cluster version as the member of a node tells it."""
        files = f"--cacert {_ETCD}/ca.crt --cert {_ETCD}/server.crt --key {_ETCD}/server.key"
        shown = self.lab.exec(node, "sh", "-c", f"curl -s {files} https://127.0.0.1:2379/version").stdout
        return str(json.loads(shown)["etcdcluster"])

    def is_ready(self, node: str) -> bool:
        """Say whether the API server of a node is ready."""
        script = (
            "kubectl --kubeconfig /etc/kubernetes/admin.conf --server "
            f"https://{self.address(node)}:6443 get --raw /readyz"
        )
        return self.lab.exec(node, "sh", "-c", script, check=False).stdout == "ok"

    def address(self, node: str) -> str:
        return str(next(each["address"] for each in self.lab.status()["nodes"] if each["name"] == node))

    def manifest(self, node: str, component: str) -> str:
        return self.lab.exec(node, "cat", f"{_MANIFESTS}/{component}.yaml").stdout

    def kubelet_limit(self, node: str) -> str:
        return self.lab.exec(node, "grep", "maxPods", "/var/lib/kubelet/config.yaml").stdout.strip()
