"""The kubelet's files of a node that joins, from `kubeadm join --dry-run`, which makes a cluster up for itself."""

from pathlib import Path

import pytest

from garboard.config.load import ConfigFile
from garboard.manifests import NodeHost
from garboard.manifests.kubelet import flags_file, instance_config_file, kubelet_arguments
from garboard.model import KubernetesVersion
from garboard.model.cluster import ClusterConfiguration
from tests.support.parity.comparing import differences
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.rendering import FACTS
from tools.harness.machine import HOSTNAME, FileState, Machine

pytestmark = pytest.mark.real

FOLDER = "/dry-run"
JOIN = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    token: abcdef.abcdef0123456789
    apiServerEndpoint: 192.0.2.10:6443
    unsafeSkipCAVerification: true
nodeRegistration:
"""
REGISTRATIONS = {
    "nothing": "  ignorePreflightErrors: []\n",
    "taints": "  taints: [{key: a, value: b, effect: NoExecute}, {key: c, effect: NoSchedule}, {key: d, effect: X}]\n",
    "name and arguments": "  name: Other\n  criSocket: unix:///run/crio/crio.sock\n"
    "  kubeletExtraArgs: [{name: v, value: '5'}, {name: register-with-taints, value: 'x=y:z'}, {name: v, value: '6'}]\n"
    "  taints: [{key: a, effect: NoExecute}]\n",
}


@pytest.mark.parametrize("registration", REGISTRATIONS.values(), ids=REGISTRATIONS.keys())
def test_the_kubelet_files_of_a_worker_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, registration: str) -> None:
    machine = Machine.make(tmp_path, directories=[FOLDER])
    machine.put("/join.yaml", JOIN + registration)
    done = machine.run(
        kubeadm.program,
        *("join", "--dry-run", "--skip-phases", "preflight", "--config", "/join.yaml"),
        environment={"KUBEADM_JOIN_DRYRUN_DIR": FOLDER},
    )
    assert done.returncode == 0, done.stderr
    names = ("kubeadm-flags.env", "instance-config.yaml")
    theirs = {f"/var/lib/kubelet/{name}": machine.files(FOLDER)[f"{FOLDER}/{name}"] for name in names}
    version = KubernetesVersion.parse(kubeadm.version)
    join = ConfigFile.read(JOIN + registration, file="join.yaml", host=FACTS, version=version).join().config
    arguments = kubelet_arguments(
        ClusterConfiguration(kubernetes_version=kubeadm.version),
        join.node_registration,
        NodeHost(hostname=HOSTNAME),
        kind="JoinConfiguration",
        registers_taints=join.control_plane is None,
    )
    files = (flags_file(arguments), instance_config_file(join.node_registration))
    ours = {file.path: FileState(file.mode, file.content) for file in files}
    assert differences(ours, theirs) == ""
