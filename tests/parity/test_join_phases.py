"""The files of a node that joins, by kubeadm's phases and by ours, from one live API server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.parity.comparing import differences
from tests.support.parity.credentials import without_chance
from tests.support.parity.live import (
    SUPER_ADMIN,
    LiveCluster,
    Programs,
    control_plane,
    make_node_files,
    succeeded,
    when_ready,
)
from tests.support.parity.node_run import CONFIGURATIONS, PATCHES_PATH, Configuration, with_quick_keys
from tools.harness.machine import ADDRESS, FileState, Machine

pytestmark = pytest.mark.real
TOKEN, KEY = "abcdef.0123456789abcdef", "ab" * 32
JOIN_PATH, DISCOVERY_PATH = "/join.yaml", "/discovery.conf"
JOIN = f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  file: {{kubeConfigPath: {DISCOVERY_PATH}}}
  tlsBootstrapToken: {TOKEN}
"""
WORKER = """\
nodeRegistration:
  name: Other
  taints: [{key: a, value: b, effect: NoExecute}]
  kubeletExtraArgs: [{name: v, value: "5"}]
"""
CONTROL_PLANE = f"""\
controlPlane:
  certificateKey: {KEY}
  localAPIEndpoint: {{advertiseAddress: {ADDRESS}, bindPort: 7443}}
"""
PREPARE = tuple(f"control-plane-prepare {name}" for name in ("download-certs", "certs", "kubeconfig", "control-plane"))
NAMES = (
    "component-configurations", "defaults", "dual-stack", "ecdsa-and-validity", "extra-args", "images", "patches-json",
    "patches-merge", "patches-strategic", "systemd-resolved", "volumes-and-envs",
)  # fmt: skip
CASES = [with_quick_keys(CONFIGURATIONS / f"{name}.yaml") for name in NAMES]
# One by one as sub-commands here; the others with a single one for all of them.
BY_SUB_COMMAND = ("defaults", "patches-strategic")
NAMED = Configuration(CONFIGURATIONS / "defaults.yaml", added="clusterName: mine\n")


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def cluster(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveCluster]:
    programs = Programs.of(str(request.param), binaries)
    machine = Machine.make(tmp_path_factory.mktemp("first"))
    make_node_files(machine, programs.version)
    with control_plane(machine, programs) as started:
        live = when_ready(started)
        succeeded(live.machine.run_garboard("token", "create", TOKEN, "--kubeconfig", SUPER_ADMIN))
        live.configure(NAMED)
        live.put_by_garboard(("upload-config all", "bootstrap-token"))
        upload = (
            "init",
            "phase",
            "upload-certs",
            "--upload-certs",
            "--certificate-key",
            KEY,
            "--kubeconfig",
            SUPER_ADMIN,
        )
        succeeded(live.machine.run(programs.kubeadm, *upload))
        yield live


def joiner(cluster: LiveCluster, configuration: Configuration, root: Path, document: str) -> Machine:
    """Return a machine beside the cluster, with what its join needs."""
    root.mkdir()
    made = configuration.machine(root, cluster.programs.version)
    patches = f"patches: {{directory: {PATCHES_PATH}}}\n" if configuration.patches else ""
    made.put(JOIN_PATH, document + patches)
    admin = cluster.machine.text("/etc/kubernetes/admin.conf").partition("users:")[0]
    made.put(DISCOVERY_PATH, f"{admin}users: [{{name: kubernetes-admin, user: {{}}}}]\n")
    return replace(made, network=cluster.machine.network)


def files_after(
    cluster: LiveCluster, configuration: Configuration, root: Path, document: str, phases: tuple[str, ...], tool: str
) -> dict[str, FileState]:
    machine = joiner(cluster, configuration, root / tool, document)
    for phase in phases:
        line = ("join", "phase", *phase.split(), "--config", JOIN_PATH)
        if tool == "kubeadm":
            done = machine.run(cluster.programs.kubeadm, *line, environment=configuration.environment)
        else:
            done = machine.run_garboard(*line, environment=configuration.environment)
        succeeded(done)
    return without_chance(machine.files("/etc/kubernetes", "/var/lib/kubelet"))


def compare(
    cluster: LiveCluster, configuration: Configuration, root: Path, document: str, phases: tuple[str, ...]
) -> dict[str, FileState]:
    cluster.configure(configuration)
    cluster.put_by_garboard(("upload-config all",))
    theirs, ours = (
        files_after(cluster, configuration, root, document, phases, tool) for tool in ("kubeadm", "garboard")
    )
    assert differences(ours, theirs) == ""
    return ours


@pytest.mark.sampled(3)
@pytest.mark.parametrize("configuration", CASES, ids=lambda each: each.name)
def test_control_plane_of_both_is_equal(cluster: LiveCluster, configuration: Configuration, tmp_path: Path) -> None:
    prepare = PREPARE if configuration.name in BY_SUB_COMMAND else ("control-plane-prepare all",)
    found = compare(cluster, configuration, tmp_path, JOIN + CONTROL_PLANE, (*prepare, "kubelet-start"))
    assert len(found) >= 29
    assert f"https://{ADDRESS}:7443" in found["/etc/kubernetes/bootstrap-kubelet.conf"].content.decode()


@pytest.mark.parametrize(
    "configuration", [NAMED, CASES[0], CASES[8]], ids=["cluster name", CASES[0].name, CASES[8].name]
)
def test_worker_of_both_is_equal(cluster: LiveCluster, configuration: Configuration, tmp_path: Path) -> None:
    found = compare(cluster, configuration, tmp_path, JOIN + WORKER, ("kubelet-start",))
    assert set(found) == {
        "/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml",
        "/var/lib/kubelet/instance-config.yaml", "/var/lib/kubelet/kubeadm-flags.env",
    }  # fmt: skip
