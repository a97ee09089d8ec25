"""Running the real kubeadm where it can do no harm: in a mount namespace whose /etc is a folder of the test."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from tools.harness.answers import Answers

# What programs read besides /etc/kubernetes: names of users and hosts.
_KEPT_IN_ETC = ("group", "hosts", "nsswitch.conf", "os-release", "passwd", "resolv.conf")
_ENTER = 'mount --bind "$1" /etc && shift && exec "$@"'


@dataclass(frozen=True)
class Kubeadm:
    """A kubeadm binary of one version."""

    program: Path
    version: str
    answers: Answers

    def help(self, *arguments: str) -> str:
        """Return what it tells about a command."""
        return self.answers.run(self.program, *arguments, "--help").stdout

    def run(self, etc: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it with `etc` mounted over /etc, in this process's view only."""
        for name in _KEPT_IN_ETC:
            if not (etc / name).exists() and Path("/etc", name).exists():
                shutil.copyfile(Path("/etc", name), etc / name)
        namespaces = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        command = [*namespaces, "sh", "-c", _ENTER, "sh", str(etc), str(self.program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, umask=0o022)

    def must_run(self, etc: Path, *arguments: str) -> str:
        done = self.run(etc, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write_config(self, etc: Path, init: dict[str, Json], cluster: dict[str, Json]) -> str:
        """Write a configuration into `etc` and return its path inside; both documents only need what differs."""
        head = {"apiVersion": "kubeadm.k8s.io/v1beta4"}
        documents = [
            {**head, "kind": "InitConfiguration", **init},
            {**head, "kind": "ClusterConfiguration", "kubernetesVersion": self.version, **cluster},
        ]
        (etc / "kubeadm.yaml").write_text("\n---\n".join(json.dumps(each) for each in documents))
        return "/etc/kubeadm.yaml"
