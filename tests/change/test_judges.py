"""Verdicts that depend on values, or on the cluster."""

import msgspec
import pytest

from garboard.change.configuration import read_configuration
from garboard.change.plan import PlannedAttribute
from garboard.change.rendering import ClusterRendering
from garboard.change.snapshot import CertificateFacts, ClusterSnapshot, SnapshotService
from garboard.errors import BadDocument
from garboard.model import SUPPORTED_VERSIONS
from garboard.phases.issuing import SignedRequest
from garboard.values import Json
from tests.support.change.requests import codes, new_version, patch, planned, restarts, sets, unsets
from tests.support.change.snapshots import MadeUpCluster, f1, f2, f3


def first(snapshot: ClusterSnapshot, edit: str) -> PlannedAttribute:
    return planned(snapshot, edit).attributes[0]


@pytest.mark.parametrize(
    ("edit", "verdict", "code"),
    [
        ("networking.podSubnet=10.245.0.0/16", "blocked", "pod-network"),
        ("networking.podSubnet=10.244.0.0/17", "blocked", "pod-network"),
        ("networking.podSubnet=10.0.0.0/8", "blocked", "cidr-overlap"),
        ("networking.dnsDomain=corp.example", "blocked", "dns-domain"),
        ("certificatesDir=/srv/pki", "blocked", "certificates-dir"),
        ("clusterName=blue", "blocked", "cluster-name"),
        ("encryptionAlgorithm=ECDSA-P256", "advice", "certificate-later"),
        ("certificateValidityPeriod=4000h", "advice", "certificate-later"),
        ("dns.imageTag=v1.13.0", "advice", "dns-rollout"),
        ("dns.disabled=true", "advice", "addon-handover"),
        ("etcd.local.imageTag=3.7.1-0", "advice", "etcd-restart"),
        ("etcd.local.imageTag=3.6.8-0", "blocked", "etcd-version"),
        ("etcd.local.imageTag=3.9.0-0", "blocked", "etcd-version"),
        ("etcd.local.imageTag=latest", "blocked", "etcd-version"),
        ("etcd.local.dataDir=/srv/etcd", "blocked", "etcd-data-dir"),
        ("etcd.external.endpoints=[https://198.51.100.1:2379]", "blocked", "etcd-move"),
        ("apiServer.extraArgs[anonymous-auth]=false", "blocked", "anonymous-auth"),
        ("apiServer.extraArgs[secure-port]=7443", "blocked", "owned-flag"),
        ("apiServer.extraArgs[enable-admission-plugins]=PodNodeSelector", "blocked", "admission-weakened"),
        (
            "apiServer.extraArgs[enable-admission-plugins]=NodeRestriction,PodNodeSelector",
            "advice",
            "admission-plugins",
        ),
        ("apiServer.extraArgs[authorization-mode]=AlwaysAllow", "blocked", "authorization-weakened"),
        ("apiServer.extraArgs[service-account-issuer]=https://new.example.com", "blocked", "critical-flag-changed"),
        ("apiServer.extraArgs[event-ttl]=soon", "blocked", "bad-flag-value"),
        ("apiServer.extraArgs[feature-gates]=NoSuchGate=true", "blocked", "unknown-feature-gate"),
        ("apiServer.extraArgs[egress-selector-config-file]=/srv/egress.yaml", "blocked", "unmounted-file"),
        ("controllerManager.extraArgs[controllers]=*", "blocked", "controller-removed"),
        ("controllerManager.extraArgs[cluster-cidr]=10.0.0.0/8", "blocked", "owned-flag"),
        ("KubeletConfiguration:cgroupDriver=cgroupfs", "blocked", "cgroup-driver"),
        ("KubeletConfiguration:staticPodPath=/srv", "blocked", "static-pods-off"),
        ("KubeletConfiguration:containerRuntimeEndpoint=unix:///x.sock", "blocked", "node-setting"),
        ("KubeletConfiguration:evictionHard[memory.available]=5%", "advice", "evicts-pods"),
        ("KubeletConfiguration:topologyManagerPolicy=best-effort", "advice", "drain-needed"),
        ("KubeletConfiguration:maxPods=-4", "blocked", "out-of-range"),
        ("KubeletConfiguration:featureGates[NoSuchGate]=true", "blocked", "unknown-feature-gate"),
        ("KubeletConfiguration:clusterDNS=[10.96.0.11]", "advice", "cluster-network-mismatch"),
        ("KubeletConfiguration:readOnlyPort=10255", "blocked", "authentication-weakened"),
        ("KubeletConfiguration:registerWithTaints=[{key: a, effect: NoSchedule}]", "advice", "registration-only"),
        ("KubeProxyConfiguration:hostnameOverride=x", "blocked", "node-setting"),
        ("KubeProxyConfiguration:featureGates[NoSuchGate]=true", "blocked", "unknown-feature-gate"),
        ("KubeProxyConfiguration:clusterCIDR=10.0.0.0/16", "advice", "cluster-network-mismatch"),
        ("KubeProxyConfiguration:conntrack.min=1000", "advice", "proxy-kernel"),
        ("KubeProxyConfiguration:mode=bogus", "blocked", "unsupported-value"),
        ("KubeProxyConfiguration:mode=ipvs", "advice", "proxy-mode"),
        ("KubeProxyConfiguration:clusterCIDR=nonsense", "blocked", "bad-address"),
        ("KubeProxyConfiguration:oomScoreAdj=5000", "blocked", "out-of-range"),
        ("KubeProxyConfiguration:conntrack.min=-1", "blocked", "out-of-range"),
        ("KubeletConfiguration:kubeReserved[bogus]=1", "blocked", "unknown-resource"),
        # kubeadm's probes go along with these.
        ("controllerManager.extraArgs[bind-address]=0.0.0.0", "allowed", ""),
        ("scheduler.extraArgs[bind-address]=0.0.0.0", "allowed", ""),
        ("etcd.local.extraArgs[listen-metrics-urls]=http://0.0.0.0:2381", "advice", "etcd-restart"),
        ("apiServer.extraArgs[bind-address]=::", "allowed", ""),
        ("controllerManager.extraArgs[secure-port]=10300", "blocked", "probe-mismatch"),
        ("InitConfiguration:localAPIEndpoint.advertiseAddress=192.0.2.9", "blocked", "node-identity"),
        ("InitConfiguration:nodeRegistration.name=other", "blocked", "node-identity"),
        ("JoinConfiguration:patches.directory=/srv", "blocked", "use-patches"),
    ],
)
def test_an_edit_has_its_verdict(edit: str, verdict: str, code: str) -> None:
    found = first(f1(), edit)
    assert (found.verdict, found.code) == (verdict, code)
    assert found.reason


def test_a_larger_range_of_pods_takes_the_source_of_kube_proxy_along() -> None:
    alone = planned(f1(), "networking.podSubnet=10.244.0.0/15")
    assert (alone.verdict, alone.unconfirmed) == ("advice", ("pod-range-grows", "cluster-network-mismatch"))
    assert "--set 'KubeProxyConfiguration:clusterCIDR=10.244.0.0/15'" in alone.attributes[0].reason
    both = planned(f1(), sets("networking.podSubnet=10.244.0.0/15", "KubeProxyConfiguration:clusterCIDR=10.244.0.0/15"))
    assert both.unconfirmed == ("pod-range-grows",)
    assert restarts(both) == {
        "cp1": ["kube-controller-manager", "kube-proxy"],
        "w1": ["kube-proxy"],
        "w2": ["kube-proxy"],
    }


def test_growing_is_allowed_and_shrinking_where_all_fits_is_a_note() -> None:
    snapshot = f1(kubelet={"maxPods": 200})
    assert first(snapshot, "KubeletConfiguration:maxPods=250").verdict == "allowed"
    assert first(snapshot, "KubeletConfiguration:maxPods=100").code == "capacity"


def test_what_is_reserved_is_compared_with_what_pods_request() -> None:
    assert first(f1(), "KubeletConfiguration:kubeReserved[memory]=1Gi").code == "capacity"
    found = first(f1(), "KubeletConfiguration:systemReserved[memory]=15Gi")
    assert found.code == "shrinks-capacity"
    assert "request 1Gi of memory" in found.reason


def test_a_policy_drains_every_node_and_removes_the_state_file() -> None:
    plan = planned(f1(), "KubeletConfiguration:topologyManagerPolicy=best-effort", "drain-needed")
    assert [[step.phase for step in each.steps] for each in plan.nodes] == [
        ["drain", "kubelet-config", "gates", "drain"]
    ] * 3
    assert [file.path for file in plan.nodes[0].steps[1].files] == [
        "/var/lib/kubelet/config.yaml",
        "/var/lib/kubelet/cpu_manager_state",
    ]


def test_issuers_may_grow() -> None:
    default = "https://kubernetes.default.svc.cluster.local"
    plan = planned(
        f1(),
        sets(
            f"apiServer.extraArgs[service-account-issuer]={default}",
            "apiServer.extraArgs[service-account-issuer]+=https://new.example.com",
        ),
    )
    assert (plan.verdict, codes(plan)) == ("advice", ["service-account-issuer"])
    assert plan.attributes[0].after == [default, "https://new.example.com"]


def test_services_outside_of_a_new_port_range_are_listed() -> None:
    services = [SnapshotService(namespace="shop", name="web", node_ports=[30080, 32000])]
    snapshot = msgspec.structs.replace(f1(), services=services)
    found = first(snapshot, "apiServer.extraArgs[service-node-port-range]=30000-31000")
    assert (found.code, "shop/web (32000)" in found.reason, "30080" in found.reason) == ("node-ports", True, False)


def test_the_section_of_another_proxy_mode_restarts_nothing() -> None:
    plan = planned(f1(), "KubeProxyConfiguration:ipvs.scheduler=rr")
    assert (codes(plan), restarts(plan), [each.name for each in plan.objects]) == (["no-effect"], {}, ["kube-proxy"])
    plan = planned(f1(), "KubeProxyConfiguration:iptables.masqueradeAll=true")
    assert (plan.verdict, [*restarts(plan)]) == ("allowed", ["cp1", "w1", "w2"])


@pytest.mark.parametrize(
    ("key", "name", "phase"),
    [
        ("ca.key", "apiServer.certSANs", "certs/apiserver"),
        ("etcd/ca.key", "etcd.local.serverCertSANs", "certs/etcd-server"),
        ("etcd/ca.key", "etcd.local.peerCertSANs", "certs/etcd-peer"),
    ],
)
def test_what_an_external_authority_signs_is_not_issued_here(key: str, name: str, phase: str) -> None:
    snapshot = f1(is_seen=True)
    nodes = [
        msgspec.structs.replace(each, host_paths={f"/etc/kubernetes/pki/{key}": "absent"}) for each in snapshot.nodes
    ]
    plan = planned(msgspec.structs.replace(snapshot, nodes=nodes), f"{name}+=api.example.com")
    (found,) = plan.attributes
    assert (found.verdict, found.code, "cp1" in found.reason) == ("advice", "external-ca", True)
    (step,) = (step for each in plan.nodes for step in each.steps if step.phase == phase)
    assert [type(each.request) for each in step.issues] == [SignedRequest]
    assert step.title.startswith("put the signed /etc/kubernetes/pki/")
    # The other authority issues as ever.
    other = planned(msgspec.structs.replace(snapshot, nodes=nodes), _OTHER[name])
    assert "external-ca" not in codes(other)


_OTHER = {
    "apiServer.certSANs": "etcd.local.peerCertSANs+=a.example.com",
    "etcd.local.serverCertSANs": "apiServer.certSANs+=a.example.com",
    "etcd.local.peerCertSANs": "apiServer.certSANs+=a.example.com",
}


@pytest.mark.parametrize(
    ("more", "edit", "is_issued"),
    [
        pytest.param([], "certSANs+=api.example.com", True, id="a name that it does not have"),
        pytest.param(["api.example.com"], "certSANs+=api.example.com", False, id="a name that it has"),
        pytest.param(["api.example.com", "b"], "certSANs+=api.example.com", False, id="others beside it"),
        pytest.param(["old.example.com"], "certSANs-=old.example.com", True, id="a name that goes"),
        pytest.param([], "certSANs-=old.example.com", False, id="a name that has gone"),
    ],
)
def test_a_certificate_that_is_as_it_has_to_be_is_not_issued_again(
    more: list[str], edit: str, *, is_issued: bool
) -> None:
    """A node may be asked twice, as the one where a change begins is once all others are done."""
    snapshot = f1(is_seen=True, cluster={"apiServer": {"certSANs": ["old.example.com"]}} if "-=" in edit else {})
    rendering = ClusterRendering(read_configuration(f1()), snapshot, {})
    names = [text.partition(":")[2] for text in rendering.certificates(snapshot.nodes[0])["certs/apiserver"]]
    facts = CertificateFacts(path="apiserver.crt", sans=[*names, *more])
    nodes = [msgspec.structs.replace(each, certificates=[facts]) for each in snapshot.nodes]
    plan = planned(msgspec.structs.replace(snapshot, nodes=nodes), f"apiServer.{edit}")
    assert bool(plan.nodes) is is_issued
    assert [each.name for each in plan.objects] == ["kubeadm-config"]


def test_a_flag_of_the_kubelet_that_stands_above_its_configuration_is_told() -> None:
    snapshot = f1()
    nodes = [
        msgspec.structs.replace(each, kubelet_flags='KUBELET_KUBEADM_ARGS="--max-pods=50"\n') for each in snapshot.nodes
    ]
    found = first(msgspec.structs.replace(snapshot, nodes=nodes), "KubeletConfiguration:maxPods=250")
    assert (found.code, "cp1, w1, w2" in found.reason) == ("shadowed-by-flag", True)


def test_a_learner_and_members_that_nobody_asked_are_told() -> None:
    snapshot, edit = f2(), "etcd.local.extraArgs[snapshot-count]=20000"
    assert snapshot.members is not None
    learning = [msgspec.structs.replace(each, is_learner=each.name == "cp3") for each in snapshot.members]
    assert first(msgspec.structs.replace(snapshot, members=learning), edit).code == "no-quorum"
    unasked = first(msgspec.structs.replace(snapshot, members=None), edit)
    assert (unasked.code, "not-looked-at" in unasked.reason) == ("etcd-restart", True)


def test_one_member_alone_may_restart() -> None:
    assert planned(f1(), "etcd.local.extraArgs[snapshot-count]=20000").verdict == "advice"


def test_a_heavier_verdict_wins_and_names_the_others() -> None:
    found = first(f1(), "apiServer.extraArgs[enable-admission-plugins]=PodNodeSelector")
    assert "admission-plugins: " in found.reason
    assert found.accepts == ("admission-weakened",)


def test_a_cluster_without_kube_proxy_has_none_to_change() -> None:
    snapshot = f1()
    maps = {name: each for name, each in snapshot.config_maps.items() if name != "kube-proxy"}
    without = msgspec.structs.replace(snapshot, config_maps=maps)
    assert planned(without, "apiServer.extraArgs[profiling]=false").verdict == "allowed"


def test_a_new_version_of_v1beta3_is_converted_first() -> None:
    snapshot = MadeUpCluster(version=SUPPORTED_VERSIONS[0]).snapshot()
    old: Json = {
        "apiVersion": "kubeadm.k8s.io/v1beta3",
        "kind": "ClusterConfiguration",
        "apiServer": {"extraArgs": {"event-ttl": "2h"}},
        "controlPlaneEndpoint": "k8s.example.com:6443",
        "networking": {"podSubnet": "10.244.0.0/16"},
        "kubernetesVersion": str(SUPPORTED_VERSIONS[0]),
    }
    plan = planned(snapshot, new_version(old))
    assert [each.label for each in plan.attributes] == ["apiServer.extraArgs[event-ttl]"]


def test_what_an_external_etcd_is_reached_by_can_be_changed_with_advice() -> None:
    plan = planned(f3(), "etcd.external.endpoints=[https://198.51.100.1:2379, https://198.51.100.3:2379]")
    assert (plan.verdict, codes(plan)) == ("advice", ["external-etcd"])
    assert restarts(plan) == {name: ["kube-apiserver"] for name in ("cp1", "cp2", "cp3")}


def test_unknown_keys_of_a_config_map_stay() -> None:
    snapshot = f1()
    stored = snapshot.config_maps["kubeadm-config"]
    extra = msgspec.structs.replace(stored, data={**stored.data, "Mine": "x"})
    maps = {**snapshot.config_maps, "kubeadm-config": extra}
    plan = planned(msgspec.structs.replace(snapshot, config_maps=maps), "apiServer.extraArgs[profiling]=false")
    assert [key for key, _ in plan.objects[0].data] == ["ClusterConfiguration"]
    assert plan.objects[0].resource_version == "100"


def test_probe_that_a_patch_has_moved_is_told_where_the_configuration_moves_it_too() -> None:
    patch_text = "spec: {containers: [{name: kube-scheduler, livenessProbe: {httpGet: {path: /other}}}]}\n"
    snapshot = f1()
    nodes = [msgspec.structs.replace(each, patch_set="f" * 64) for each in snapshot.nodes]
    patched = msgspec.structs.replace(snapshot, nodes=nodes, patch_sets={"f" * 64: {"kube-scheduler.yaml": patch_text}})
    plan = planned(patched, "scheduler.extraArgs[bind-address]=0.0.0.0")
    assert (plan.verdict, codes(plan)) == ("blocked", ["probe-changed"])
    assert planned(patched, "scheduler.extraArgs[v]=4").verdict == "allowed"


def test_what_kube_proxy_refuses_already_is_no_finding_about_another_field() -> None:
    snapshot = f1()
    stored = snapshot.config_maps["kube-proxy"]
    text = stored.data["config.conf"].replace("mode: iptables", "mode: bogus")
    assert "mode: bogus" in text
    maps = {
        **snapshot.config_maps,
        "kube-proxy": msgspec.structs.replace(stored, data={**stored.data, "config.conf": text}),
    }
    broken = msgspec.structs.replace(snapshot, config_maps=maps)
    assert first(broken, "KubeProxyConfiguration:oomScoreAdj=-998").verdict == "allowed"
    assert first(broken, "KubeProxyConfiguration:mode=nftables").code == "proxy-mode"


@pytest.mark.parametrize("api_version", ["kubeadm.k8s.io/v1beta5", "kubeadm.k8s.io/v1beta2", "v1", ""])
def test_api_version_that_no_minor_reads_is_refused(api_version: str) -> None:
    document: Json = {"apiVersion": api_version, "kind": "ClusterConfiguration", "clusterName": "blue"}
    for request in (new_version(document), patch(str(document))):
        with pytest.raises(BadDocument, match="has the apiVersion"):
            planned(f1(), request)


def test_two_of_one_kind_and_an_unknown_kind_are_refused() -> None:
    with pytest.raises(Exception, match="second KubeletConfiguration"):
        planned(f1(), new_version({"kind": "KubeletConfiguration"}, {"kind": "KubeletConfiguration"}))
    with pytest.raises(Exception, match="no configuration that a cluster stores"):
        planned(f1(), patch("{kind: ResetConfiguration}"))


def test_a_new_version_that_names_no_version_is_for_the_one_that_runs() -> None:
    snapshot = MadeUpCluster(version=SUPPORTED_VERSIONS[0]).snapshot()
    document: Json = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "controlPlaneEndpoint": "k8s.example.com:6443",
        "networking": {"podSubnet": "10.244.0.0/16"},
    }
    assert planned(snapshot, new_version(document)).verdict == "none"


def test_a_flag_of_etcd_that_shows_in_the_api_server_is_the_cause_of_both() -> None:
    edit = "etcd.local.extraArgs[advertise-client-urls]=https://192.0.2.1:2379,https://etcd.example.com:2379"
    plan = planned(f1(), edit, "critical-flag-changed")
    causes = {step.cause for each in plan.nodes for step in each.steps if step.restarts}
    assert [step.restarts for each in plan.nodes for step in each.steps if step.restarts] == [
        ("kube-apiserver",),
        ("etcd",),
    ]
    assert causes == {"etcd.local.extraArgs[advertise-client-urls] changed"}


def test_a_control_plane_whose_address_nobody_knows_is_told() -> None:
    snapshot = f2()
    nodes = [msgspec.structs.replace(each, endpoint=None) if each.name == "cp2" else each for each in snapshot.nodes]
    found = planned(msgspec.structs.replace(snapshot, nodes=nodes), "apiServer.extraArgs[profiling]=false")
    assert (found.verdict, found.attributes[0].code) == ("advice", "not-looked-at")
    assert "cp2" in found.attributes[0].reason
    assert [*restarts(found)] == ["cp1", "cp3"]


def test_a_patch_above_a_field_keeps_that_node_out_of_the_plan() -> None:
    patches = {"f" * 64: {"kubeletconfiguration.yaml": "maxPods: 50\n"}}
    snapshot = f1()
    nodes = [
        msgspec.structs.replace(each, patch_set="f" * 64) if each.name == "w1" else each for each in snapshot.nodes
    ]
    plan = planned(
        msgspec.structs.replace(snapshot, nodes=nodes, patch_sets=patches), "KubeletConfiguration:maxPods=250"
    )
    assert [*restarts(plan)] == ["cp1", "w2"]


def test_a_flag_of_ones_own_can_be_taken_out_again() -> None:
    """What kubeadm renders by itself stays: a flag that is overridden goes back to its default."""
    for flag, value in (("v", "1"), ("leader-elect", "false")):
        snapshot = MadeUpCluster(cluster={"scheduler": {"extraArgs": [{"name": flag, "value": value}]}}).snapshot()
        plan = planned(snapshot, unsets(f"scheduler.extraArgs[{flag}]"))
        assert (plan.verdict, codes(plan)) == ("allowed", [])
