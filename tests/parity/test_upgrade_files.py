"""What an upgrade writes beside the real kubeadm's: files of a node and addons, from the same objects of a cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from garboard.documents import Json
from garboard.drift import DriftKind, leaves_of, show_leaf
from garboard.drift.leaves import same_meaning
from garboard.lab.binaries import Binaries
from garboard.manifests.objects import CONFIG_HASH_ANNOTATION
from garboard.phases.upgrade.differences import find_drift
from garboard.phases.upgrade.drift_choices import DriftChoices
from garboard.schema import load_schema
from tests.support.drift.subjects import NEWEST
from tests.support.parity.comparing import differences
from tests.support.parity.live import Programs, control_plane, make_node_files, when_ready
from tests.support.parity.node_run import PATCHES_PATH
from tests.support.parity.upgrading import UpgradedMachine, planned_addons, planned_files
from tools.harness.machine import Machine

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]
FORMER, TARGET = "v1.36.4", "v1.37.1"
INIT = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 'ADDRESS', bindPort: PORT}
PATCHES
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
encryptionAlgorithm: ECDSA-P256
"""
UPGRADE = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
apply:
  kubernetesVersion: VERSION
  dryRun: true
  forceUpgrade: true
  ignorePreflightErrors: [all]
  PATCHES
TIMEOUTS
"""
ARGUMENTS = """\
controlPlaneEndpoint: control-plane.example:6443
networking: {podSubnet: 10.244.0.0/16, dnsDomain: example.local}
apiServer:
  certSANs: [api.example.com]
  extraArgs: [{name: event-ttl, value: 2h}, {name: authorization-mode, value: RBAC}, {name: profiling, value: 'false'}]
  extraVolumes: [{name: audit, hostPath: /var/log/audit, mountPath: /audit, pathType: DirectoryOrCreate}]
controllerManager:
  extraArgs: [{name: bind-address, value: 0.0.0.0}, {name: node-cidr-mask-size-ipv4, value: '25'}]
  extraEnvs: [{name: TZ, value: UTC}]
scheduler: {extraArgs: [{name: v, value: '2'}]}
etcd:
  local:
    dataDir: /data/etcd
    extraArgs:
    - {name: quota-backend-bytes, value: '8589934592'}
    - {name: listen-metrics-urls, value: 'http://127.0.0.1:3381'}
    serverCertSANs: [etcd.example.com]
"""
EXTERNAL = """\
etcd:
  external:
    endpoints: ['https://10.0.0.1:2379', 'https://10.0.0.2:2379']
    caFile: /srv/etcd/ca.crt
    certFile: /srv/etcd/client.crt
    keyFile: /srv/etcd/client.key
"""
COMPONENTS = """\
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 60
evictionHard: {memory.available: 200Mi}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
"""
SIX = "networking: {serviceSubnet: 'fd00:10::/112', podSubnet: 'fd00:20::/64'}\n"
NO_ADDONS = "dns: {disabled: true}\nproxy: {disabled: true}\n"
DUAL = """\
networking: {serviceSubnet: '10.96.0.0/12,fd00:10::/112', podSubnet: '10.244.0.0/16,fd00:20::/64'}
certificatesDir: /etc/kubernetes/mine
certificateValidityPeriod: 4380h0m0s
"""
AGAIN = """\
apiServer:
  extraArgs: [{name: service-account-issuer, value: 'https://new.example'}, {name: v, value: '2'},
              {name: service-account-issuer, value: 'https://old.example'}]
  extraEnvs: [{name: GOGC, value: '50'}]
scheduler: {extraVolumes: [{name: config, hostPath: /etc/s.yaml, mountPath: /etc/s.yaml, readOnly: true}]}
"""
SOCKET_FLAG = "featureGates: {NodeLocalCRISocket: false}\n"
OWN_ETCD = """\
etcd: {local: {imageRepository: registry.example/etcd, imageTag: 3.6.9-0, peerCertSANs: [peer.example]}}
clusterName: other
"""
PROXY_PATCH = "spec: {template: {metadata: {annotations: {team: blue}}}}\n"
PATCHES = {
    "kube-apiserver.yaml": "spec: {containers: [{name: kube-apiserver, resources: {requests: {cpu: 300m}}}]}\n",
    "kube-scheduler+json.yaml": "- {op: add, path: /spec/containers/0/command/-, value: --v=4}\n",
    "etcd+merge.yaml": "metadata: {annotations: {team: blue}}\n",
    "kubeletconfiguration.yaml": "maxPods: 42\n",
    "corednsdeployment.yaml": "spec: {template: {spec: {priorityClassName: system-node-critical}}}\n",
}


@dataclass(frozen=True)
class UpgradeCase:
    """A configuration of the former version, and patches."""

    more: str = ""
    patches: dict[str, str] = field(default_factory=dict)
    address: str = "192.0.2.10"
    port: int = 6443
    timeouts: str = ""
    later: dict[str, str] = field(default_factory=dict)  # patches that only the upgrade has

    @property
    def configuration(self) -> str:
        init = INIT.replace("ADDRESS", self.address).replace("PORT", str(self.port))
        return init.replace("PATCHES", "patches: {directory: /patches}" if self.patches else "") + self.more

    @property
    def final(self) -> str:
        """The configuration of a node that is made with what the upgrade has."""
        timeouts = f"timeouts: {self.timeouts}\n" if self.timeouts else ""
        own = replace(self, patches=self.patches or self.later).configuration
        return own.replace("---\n", f"{timeouts}---\n", 1).replace(SOCKET_FLAG, "")  # a gate that has gone

    @property
    def upgrade(self) -> str:
        patches = "patches: {directory: /patches}" if self.patches or self.later else "etcdUpgrade: true"
        return UPGRADE.replace("PATCHES", patches).replace("TIMEOUTS", self.timeouts and f"timeouts: {self.timeouts}")


CASES = {
    "defaults": UpgradeCase(),
    "arguments and names": UpgradeCase(ARGUMENTS),
    "patches": UpgradeCase(patches=PATCHES),
    "external etcd": UpgradeCase(EXTERNAL),
    "another registry": UpgradeCase("imageRepository: registry.example/k8s\ndns: {imageTag: v1.14.6}\n"),
    "gates": UpgradeCase("featureGates: {RootlessControlPlane: false}\n"),
    "no addons": UpgradeCase(NO_ADDONS),
    "component configurations": UpgradeCase(COMPONENTS),
    "IPv6 and another port": UpgradeCase(SIX + NO_ADDONS, address="2001:db8::10", port=7443),
    "dual stack and certificates elsewhere": UpgradeCase(DUAL),
    "timeouts": UpgradeCase(timeouts="{controlPlaneComponentHealthCheck: 8m0s}"),
    "flags more than once": UpgradeCase(AGAIN),
    "patches of the upgrade alone": UpgradeCase(later={**PATCHES, "kubeproxydaemonset+merge.yaml": PROXY_PATCH}),
    "the runtime as a flag": UpgradeCase(SOCKET_FLAG),
    "etcd of one's own": UpgradeCase(OWN_ETCD),
}
# A dry run of kubeadm leaves out who the components run as.
FOUND = {**CASES, "rootless": UpgradeCase("featureGates: {RootlessControlPlane: true}\n")}


@pytest.fixture(scope="module")
def scratch(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpgradedMachine]:
    """A machine with an API server and an etcd of the former version."""
    programs = Programs.of(FORMER, binaries)
    machine = Machine.make(tmp_path_factory.mktemp("upgraded"))
    make_node_files(machine, FORMER)
    with control_plane(machine, programs) as cluster:
        yield UpgradedMachine(when_ready(cluster), TARGET)


@pytest.mark.parametrize("name", CASES)
def test_files_and_addons_are_those_of_kubeadm(scratch: UpgradedMachine, binaries: Binaries, name: str) -> None:
    case, kubeadm = CASES[name], binaries.locate("kubeadm", TARGET)
    scratch.make(case.configuration, case.patches)
    for file, text in case.later.items():
        scratch.machine.put(f"{PATCHES_PATH}/{file}", text)
    context = scratch.context(case.upgrade)
    files, addons = scratch.by_kubeadm(kubeadm, case.upgrade)
    if "external:" not in case.more:
        files["/etc/kubernetes/manifests/etcd.yaml"] = scratch.etcd_by_kubeadm(kubeadm, case.final)
    ours = planned_files(context)
    assert {"/etc/kubernetes/manifests/kube-apiserver.yaml", "/var/lib/kubelet/config.yaml"} <= set(files)
    known = {path: each for path, each in files.items() if path in ours or "instance-config" not in path}
    assert differences(ours, known) == ""
    assert _unlike(planned_addons(context), addons) == []
    assert bool(addons) is ("disabled" not in case.more)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FOUND)
def test_what_kubeadm_made_has_no_difference_but_its_patches(scratch: UpgradedMachine, name: str) -> None:
    case = FOUND[name]
    scratch.make(case.configuration, case.patches)
    found = find_drift(scratch.context(case.upgrade), DriftChoices()).drift.differences
    surroundings = {DriftKind.ENVIRONMENTAL} if case.timeouts else set[DriftKind]()
    assert {each.kind for each in found} == ({DriftKind.PATCH} if case.patches else surroundings)


def test_patches_that_are_not_given_again_are_differences(scratch: UpgradedMachine) -> None:
    scratch.make(CASES["patches"].configuration, PATCHES)
    found = find_drift(scratch.context(CASES["defaults"].upgrade), DriftChoices()).drift
    assert {each.component for each in found.differences} == {
        "kube-apiserver",
        "kube-scheduler",
        "etcd",
        "kubeletconfiguration",
        "corednsdeployment",
    }
    assert {each.component for each in found.stopping} == {each.component for each in found.differences} - {
        "corednsdeployment"
    }


def _unlike(ours: dict[str, Json], theirs: dict[str, Json]) -> list[str]:
    """Return the fields in which objects mean something else."""
    schema, found = load_schema(NEWEST), sorted({*ours} ^ {*theirs})
    for name in sorted({*ours} & {*theirs}):
        documents = [each for each in (ours[name], theirs[name]) if isinstance(each, dict)]
        shape = schema.type_of(str(documents[0]["apiVersion"]), str(documents[0]["kind"]))
        old, new = (leaves_of(each, shape) for each in documents)
        unlike = [show_leaf(path) for path in {*old, *new} if not same_meaning(old.get(path), new.get(path))]
        # What a dry run prints has not been signed.
        found += [f"{name}: {each}" for each in unlike if CONFIG_HASH_ANNOTATION not in each]
    return found
