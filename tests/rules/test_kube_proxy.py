"""KubeProxyConfiguration: what kube-proxy refuses when it starts, beside the program itself."""

import subprocess
from pathlib import Path

import pytest

from garboard.documents import Json, read_yaml, write_yaml
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.rules import RuleKind, check_kube_proxy

V1_36, V1_37 = SUPPORTED_VERSIONS[:2]
BASE: dict[str, Json] = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
ACCEPTED = (
    "",
    "mode: nftables",
    "mode: ipvs\nipvs: {scheduler: rr, syncPeriod: 10s, excludeCIDRs: [10.0.0.0/8]}",
    "bindAddress: '::'\nhealthzBindAddress: 127.0.0.1\nmetricsBindAddress: '[::1]:10249'",
    "clusterCIDR: 10.244.0.0/16,fd00::/56",
    "detectLocalMode: NodeCIDR\nclusterCIDR: nonsense",
    "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}",
    "nodePortAddresses: [10.0.0.0/8, 192.0.2.0/24]",
    "nodePortAddresses: [primary]",
    "mode: iptables\nnftables: {masqueradeBit: 99, syncPeriod: -1s}",
    "mode: iptables\nipvs: {tcpTimeout: -1s, excludeCIDRs: [x]}",
    "iptables: {syncPeriod: 10s, minSyncPeriod: 10s}",
    "conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s}",
    "oomScoreAdj: -1000",
    "configSyncPeriod: 0s",
    "portRange: a-b",
)
REFUSED = (
    ("mode: bogus", "unsupported-value", "mode"),
    ("mode: IPTables", "unsupported-value", "mode"),
    ("clusterCIDR: nonsense", "bad-address", "clusterCIDR"),
    ("clusterCIDR: 10.0.0.0/8,10.1.0.0/16", "bad-address", "clusterCIDR"),
    ("clusterCIDR: '10.0.0.0/8,fd00::/56,10.2.0.0/16'", "bad-address", "clusterCIDR"),
    ("bindAddress: bogus", "bad-address", "bindAddress"),
    ("healthzBindAddress: localhost:10256", "bad-address", "healthzBindAddress"),
    ("metricsBindAddress: 192.0.2.1:99999", "bad-address", "metricsBindAddress"),
    ("metricsBindAddress: '192.0.2.1:0'", "bad-address", "metricsBindAddress"),
    ("nodePortAddresses: [10.0.0.1]", "bad-address", "nodePortAddresses.0"),
    ("detectLocalMode: bogus", "unsupported-value", "detectLocalMode"),
    ("detectLocalMode: InterfaceNamePrefix", "required-field", "detectLocal.interfaceNamePrefix"),
    ("oomScoreAdj: 1001", "out-of-range", "oomScoreAdj"),
    ("configSyncPeriod: -1s", "out-of-range", "configSyncPeriod"),
    ("iptables: {masqueradeBit: 32}", "out-of-range", "iptables.masqueradeBit"),
    ("mode: nftables\nnftables: {masqueradeBit: -1}", "out-of-range", "nftables.masqueradeBit"),
    ("iptables: {syncPeriod: -1s}", "out-of-range", "iptables.syncPeriod"),
    ("iptables: {minSyncPeriod: 1m}", "out-of-range", "iptables.minSyncPeriod"),
    ("mode: ipvs\nipvs: {minSyncPeriod: -1s}", "out-of-range", "ipvs.minSyncPeriod"),
    ("mode: ipvs\nipvs: {udpTimeout: -1s}", "out-of-range", "ipvs.udpTimeout"),
    ("mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.1]}", "bad-address", "ipvs.excludeCIDRs.0"),
    ("conntrack: {min: -1}", "out-of-range", "conntrack.min"),
    ("conntrack: {tcpCloseWaitTimeout: -1s}", "out-of-range", "conntrack.tcpCloseWaitTimeout"),
    ("clientConnection: {burst: -1}", "out-of-range", "clientConnection.burst"),
    ("featureGates: {NoSuchGate: true}", "unknown-feature-gate", "featureGates.NoSuchGate"),
    ("showHiddenMetricsForVersion: '1.2'", "unsupported-value", "showHiddenMetricsForVersion"),
    ("logging: {format: xml}", "unsupported-value", "logging.format"),
)
# What the two minors judge differently, with whether each refuses it.
DIFFERENT = (
    ("nodePortAddresses: [primary, 10.0.0.0/8]", True, False),
    ("nodePortAddresses: [primary, primary]", True, True),
    ("nodePortAddresses: [localhost, all]", True, False),
    ("mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}", True, True),
)


def document(text: str) -> dict[str, Json]:
    given = read_yaml(text, source="test") or {}
    assert isinstance(given, dict)
    return {**BASE, **given}


def told(text: str, version: KubernetesVersion) -> list[tuple[str, str]]:
    found = check_kube_proxy(document(text), version)
    assert all(each.rule.kind is RuleKind.VALIDITY for each in found)
    return [(each.code, ".".join(map(str, each.path))) for each in found]


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize("text", ACCEPTED)
def test_configuration_that_works_has_no_findings(text: str, version: KubernetesVersion) -> None:
    assert told(text, version) == []


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize(("text", "code", "path"), REFUSED)
def test_what_kube_proxy_refuses_is_found_at_its_place(
    text: str, code: str, path: str, version: KubernetesVersion
) -> None:
    assert told(text, version) == [(code, path)]


@pytest.mark.parametrize(("text", "in_1_36", "in_1_37"), DIFFERENT)
def test_minors_differ(text: str, in_1_36: bool, in_1_37: bool) -> None:
    assert (bool(told(text, V1_36)), bool(told(text, V1_37))) == (in_1_36, in_1_37)


@pytest.mark.real
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_kube_proxy_itself_says_the_same(binaries: Binaries, version: KubernetesVersion, tmp_path: Path) -> None:
    """Past its configuration it ends, because it finds no API server; its namespaces are its own."""
    program = binaries.locate("kube-proxy", str(version))
    texts = [*ACCEPTED, *(each[0] for each in (*REFUSED, *DIFFERENT))]
    different = []
    for text in texts:
        (tmp_path / "config.yaml").write_text(write_yaml(document(text)))
        done = subprocess.run(
            ["unshare", "--net", program, f"--config={tmp_path}/config.yaml"],
            capture_output=True, text=True, timeout=120, check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )  # fmt: skip
        is_past = "unable to load in-cluster configuration" in done.stderr
        if is_past == bool(told(text, version)):
            different.append(f"{text}\n  ours: {told(text, version)}\n  theirs: {done.stderr[-400:]}")
    assert different == []
