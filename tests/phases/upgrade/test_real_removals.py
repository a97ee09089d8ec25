"""What is named before an upgrade is what the real programs of 1.37 refuse, and those of 1.36 take."""

import subprocess

import pytest

from garboard.lab.binaries import Binaries
from garboard.phases.upgrade.removals import removed_flags, removed_kubelet_flags
from tests.support.phases.upgrades import FORMER, TARGET, upgrade_context

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
FIELDS = {"kube-apiserver": "apiServer", "kube-controller-manager": "controllerManager", "kube-scheduler": "scheduler"}


@pytest.mark.parametrize(
    ("component", "name", "value"),
    [
        ("kube-controller-manager", "concurrent-service-syncs", "2"),
        ("kube-apiserver", "feature-gates", "AnyVolumeDataSource=true"),
        ("kube-scheduler", "feature-gates", "SchedulerQueueingHints=true"),
        ("etcd", "experimental-corrupt-check-time", "1h"),
        ("etcd", "experimental-compact-hash-check-enabled", "true"),
        ("etcd", "discovery", "http://x.example"),
        ("kubelet", "containerd", "/run/containerd/containerd.sock"),
    ],
)
def test_named_flag_is_refused_by_the_target_and_taken_before(
    binaries: Binaries, component: str, name: str, value: str
) -> None:
    """A program reads all of its flags before it answers --version."""
    word = f"--{name}={value}"
    assert len(findings(component, name, value)) == 1
    done = {}
    for version in (FORMER, TARGET):
        locate = binaries.locate_for if component == "etcd" else binaries.locate
        command = [str(locate(component, version)), word, "--version"]
        done[version] = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done[FORMER].returncode == 0, done[FORMER].stderr
    assert done[TARGET].returncode != 0, done[TARGET].stdout
    refused = value.partition("=")[0] if name == "feature-gates" else name
    assert refused in done[TARGET].stderr + done[TARGET].stdout


def findings(component: str, name: str, value: str) -> list[tuple[str, bool]]:
    if component == "kubelet":
        flags = {"/var/lib/kubelet/kubeadm-flags.env": f'KUBELET_KUBEADM_ARGS="--{name}={value}"\n'}
        return [*removed_kubelet_flags(upgrade_context(files=flags))]
    args = f"{{extraArgs: [{{name: {name}, value: '{value}'}}]}}"
    of_etcd = f"etcd: {{local: {args}}}\n"
    return [*removed_flags(upgrade_context(of_etcd if component == "etcd" else f"{FIELDS[component]}: {args}\n"))]
