"""The scenarios S01 to S20 of changes, as far as planning goes, on snapshots."""

import msgspec
import pytest

from garboard.change.attribute import CLUSTER, KUBELET
from garboard.change.document import digest_of
from garboard.change.request import NewVersion, PartialChange
from garboard.change.request_documents import given_documents
from garboard.change.snapshot import ClusterSnapshot, SnapshotService, StoredConfig
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.values import Json
from tests.support.change.requests import (
    attribute,
    codes,
    new_version,
    order,
    patch,
    phases,
    planned,
    restarts,
    sets,
    unsets,
)
from tests.support.change.snapshots import ENDPOINT, f1, f2, f3, f4

_AUDIT: Json = {
    "apiVersion": "kubeadm.k8s.io/v1beta4",
    "kind": CLUSTER,
    "apiServer": {
        "extraArgs": [
            {"name": "audit-policy-file", "value": "/etc/kubernetes/audit/policy.yaml"},
            {"name": "audit-log-path", "value": "/var/log/kubernetes/audit.log"},
            {"name": "audit-log-maxage", "value": "30"},
        ],
        "extraVolumes": [
            {
                "name": "audit-policy",
                "hostPath": "/etc/kubernetes/audit/policy.yaml",
                "mountPath": "/etc/kubernetes/audit/policy.yaml",
                "readOnly": True,
                "pathType": "File",
            },
            {
                "name": "audit-log",
                "hostPath": "/var/log/kubernetes",
                "mountPath": "/var/log/kubernetes",
                "pathType": "DirectoryOrCreate",
            },
        ],
    },
}


def changed(snapshot: ClusterSnapshot, name: str, **given: object) -> ClusterSnapshot:
    """Return a snapshot with one of its nodes as given."""
    nodes = [msgspec.structs.replace(each, **given) if each.name == name else each for each in snapshot.nodes]
    return msgspec.structs.replace(snapshot, nodes=nodes)


def test_s01_what_only_leaves_defaults_out_changes_nothing() -> None:
    request: Json = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": CLUSTER,
        "kubernetesVersion": "v1.37.1",
        "controlPlaneEndpoint": ENDPOINT,
        "networking": {"podSubnet": "10.244.0.0/16"},
    }
    kubelet: Json = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": KUBELET}
    plan = planned(f1(), new_version(request, kubelet))
    assert (plan.verdict, plan.attributes, plan.parts) == ("none", (), ())


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_s01_what_is_stored_given_back_changes_nothing(version: KubernetesVersion) -> None:
    snapshot = f1(
        version=version, kubelet={"maxPods": 200}, cluster={"apiServer": {"certSANs": ["b.example", "a.example"]}}
    )
    texts = [snapshot.stored_text(name) or "" for name in ("kubeadm-config", "kubelet-config", "kube-proxy")]
    documents = tuple(each for text in texts for each in given_documents(text, source="stored"))
    for request in (NewVersion(documents=documents), PartialChange(documents=documents)):
        assert planned(snapshot, request).verdict == "none"


def test_s02_a_flag_restarts_one_component_on_one_control_plane_after_the_other() -> None:
    plan = planned(f2(), "apiServer.extraArgs[profiling]=false")
    assert plan.verdict == "allowed"
    assert restarts(plan) == {name: ["kube-apiserver"] for name in ("cp1", "cp2", "cp3")}
    assert order(plan) == ["cp1", "kubeadm-config", "cp2", "cp3"]
    assert not any(phase.startswith("certs/") for phase in phases(plan, "cp1"))
    step = plan.nodes[0].steps[0]
    assert step.cause == "apiServer.extraArgs[profiling] changed"
    assert "+    - --profiling=false\n" in step.files[0].diff


def test_s03_a_file_that_a_node_does_not_have_blocks_and_is_named() -> None:
    paths = {"/etc/kubernetes/audit/policy.yaml": "file", "/var/log/kubernetes": "absent"}
    snapshot = f2()
    for name in ("cp1", "cp2"):
        snapshot = changed(snapshot, name, host_paths=paths)
    absent = changed(snapshot, "cp3", host_paths={**paths, "/etc/kubernetes/audit/policy.yaml": "absent"})
    plan = planned(absent, patch_of(_AUDIT))
    found = attribute(plan, "apiServer.extraVolumes[audit-policy]")
    assert (plan.verdict, found.verdict, found.code) == ("blocked", "blocked", "missing-host-path")
    assert "/etc/kubernetes/audit/policy.yaml is not there on cp3" in found.reason
    assert restarts(plan) == {}


def test_s03_with_the_file_there_every_api_server_restarts_and_the_room_is_told() -> None:
    paths = {"/etc/kubernetes/audit/policy.yaml": "file", "/var/log/kubernetes": "folder"}
    snapshot = f2()
    for name in ("cp1", "cp2", "cp3"):
        snapshot = changed(snapshot, name, host_paths=paths)
    plan = planned(snapshot, patch_of(_AUDIT))
    assert plan.verdict == "advice"
    assert restarts(plan) == {name: ["kube-apiserver"] for name in ("cp1", "cp2", "cp3")}
    assert "10.1 GB on each control plane" in attribute(plan, "apiServer.extraArgs[audit-log-path]").reason


def patch_of(document: Json) -> PartialChange:
    return patch(msgspec.json.encode(document).decode())


def test_s04_a_name_is_added_to_certificates_without_a_restart() -> None:
    plan = planned(f2(), "apiServer.certSANs+=api.example.com")
    assert (plan.verdict, codes(plan)) == ("advice", ["new-certificate"])
    assert restarts(plan) == {}
    assert [phases(plan, name) for name in ("cp1", "cp2", "cp3")] == [["certs/apiserver"]] * 3
    assert plan.nodes[0].steps[0].files[0].diff == "+DNS:api.example.com\n"


def test_s05_a_name_in_use_stays() -> None:
    snapshot = f2(cluster={"apiServer": {"certSANs": ["k8s.example.com"]}})
    plan = planned(snapshot, "apiServer.certSANs-=k8s.example.com")
    found = attribute(plan, "apiServer.certSANs[k8s.example.com]")
    assert (plan.verdict, found.code) == ("blocked", "san-in-use")
    assert "admin.conf" in found.reason
    assert "cluster-info" in found.reason
    assert "another name of the certificate" in found.route
    assert "--set controlPlaneEndpoint=NAME:PORT" in found.route
    assert order(plan) == []


def test_s05_on_a_node_each_kubeconfig_that_uses_the_name_is_told() -> None:
    snapshot = changed(
        f2(cluster={"apiServer": {"certSANs": ["b.example.com", "c.example.com"]}}),
        "w1",
        kubeconfigs={"/etc/kubernetes/kubelet.conf": "https://b.example.com:6443", "/other.conf": ""},
    )
    used = planned(snapshot, "apiServer.certSANs-=b.example.com").attributes[0]
    assert (used.code, "/etc/kubernetes/kubelet.conf on w1" in used.reason) == ("san-in-use", True)
    assert "controlPlaneEndpoint" not in used.route
    assert planned(snapshot, "apiServer.certSANs-=c.example.com").verdict == "advice"


def test_s06_two_components_restart_once_each() -> None:
    plan = planned(
        f1(), sets("controllerManager.extraArgs[node-monitor-period]=4s", "scheduler.extraArgs[profiling]=false")
    )
    assert restarts(plan) == {"cp1": ["kube-controller-manager", "kube-scheduler"]}
    assert plan.verdict == "allowed"


def test_s07_more_pods_restart_every_kubelet_and_drain_nothing() -> None:
    plan = planned(f2(), "KubeletConfiguration:maxPods=250")
    assert plan.verdict == "allowed"
    assert restarts(plan) == {name: ["kubelet"] for name in ("cp1", "cp2", "cp3", "w1", "w2", "w3")}
    assert order(plan) == ["cp1", "kubelet-config", "cp2", "cp3", "w1", "w2", "w3"]
    assert "drain" not in phases(plan, "w1")


def test_s08_fewer_pods_drain_the_node_that_runs_more_and_have_to_be_accepted() -> None:
    snapshot = f2(pods={"w1": 35})
    plan = planned(snapshot, "KubeletConfiguration:maxPods=20")
    found = attribute(plan, "KubeletConfiguration:maxPods")
    assert (plan.verdict, found.code, plan.unconfirmed) == ("advice", "shrinks-capacity", ("shrinks-capacity",))
    assert "w1 runs 35 pods, 15 too many" in found.reason
    assert "kubectl drain" in found.route
    assert "--accept shrinks-capacity" in found.route
    assert phases(plan, "w1") == ["drain", "kubelet-config", "gates", "drain"]
    assert "drain" not in phases(plan, "w2")
    assert planned(snapshot, "KubeletConfiguration:maxPods=20", "shrinks-capacity").unconfirmed == ()


def test_s09_another_proxy_mode_is_written_first_and_restarts_pods_node_by_node() -> None:
    services = [SnapshotService(namespace="shop", name="web", node_ports=[30080])]
    snapshot = msgspec.structs.replace(f1(), services=services)
    plan = planned(snapshot, "KubeProxyConfiguration:mode=nftables")
    assert (plan.verdict, codes(plan)) == ("advice", ["proxy-mode"])
    assert order(plan) == ["kube-proxy", "cp1", "w1", "w2"]
    assert restarts(plan) == {name: ["kube-proxy"] for name in ("cp1", "w1", "w2")}
    assert "shop/web" in plan.attributes[0].reason
    assert [each.kind for each in plan.objects] == ["ConfigMap"]


def test_s10_another_registry_replaces_all_pods_and_rolls_out_the_addons() -> None:
    plan = planned(f2(), "imageRepository=mirror.example.com/k8s")
    everything = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"]
    assert restarts(plan) == dict.fromkeys(("cp1", "cp2", "cp3"), everything)
    assert [(each.kind, each.name) for each in plan.objects] == [
        ("ConfigMap", "kubeadm-config"),
        ("DaemonSet", "kube-proxy"),
        ("Deployment", "coredns"),
    ]
    assert "path of coredns" in plan.attributes[0].route
    assert any("sandbox" in each for each in plan.follow_ups)


def test_s11_another_service_network_is_refused_with_the_object_that_extends_it() -> None:
    plan = planned(f1(), "networking.serviceSubnet=172.20.0.0/16")
    found = attribute(plan, "networking.serviceSubnet")
    assert (plan.verdict, found.code) == ("blocked", "service-network")
    assert "the address of kube-dns cannot be changed (10.96.0.10)" in found.reason
    assert "kubectl apply" in found.route
    assert "kind: ServiceCIDR\n" in found.route
    assert "  - 172.20.0.0/16" in found.route
    assert plan.parts == ()


@pytest.mark.parametrize("version", ["v1.37.2", "v1.38.0", "v1.36.4"])
def test_s12_versions_are_a_matter_of_upgrades(version: str) -> None:
    plan = planned(f1(), f"kubernetesVersion={version}")
    assert (plan.verdict, codes(plan)) == ("blocked", ["use-upgrade"])
    assert "garboard upgrade" in plan.attributes[0].route
    assert (plan.attributes[0].before, plan.attributes[0].after) == ("v1.37.1", version)


def test_s13_another_endpoint_is_refused_with_the_way_there() -> None:
    plan = planned(f2(), "controlPlaneEndpoint=new.example.com:6443")
    assert (plan.verdict, codes(plan)) == ("blocked", ["control-plane-endpoint"])
    found = plan.attributes[0]
    places = [found.route.index(f"({step}) ") for step in "abcdefgh"]
    assert places == sorted(places)
    assert "(b) add it to apiServer.certSANs (garboard change plan --set 'apiServer.certSANs+=new.example.com')" in (
        found.route
    )
    assert "(h) keep k8s.example.com alive" in found.route
    assert "k8s.example.com is used by controlPlaneEndpoint" in found.reason
    assert "cluster-info" in found.reason


def test_s13_the_first_endpoint_of_a_cluster_is_told_the_way_as_well() -> None:
    plan = planned(f1(cluster={"controlPlaneEndpoint": ""}), "controlPlaneEndpoint=new.example.com:6443")
    assert (plan.verdict, codes(plan)) == ("blocked", ["control-plane-endpoint"])
    assert "(h) keep the old name alive" in plan.attributes[0].route


def test_s14_etcd_restarts_with_its_api_server_one_member_at_a_time() -> None:
    plan = planned(f2(), "etcd.local.extraArgs[quota-backend-bytes]=8589934592")
    assert (plan.verdict, codes(plan)) == ("advice", ["etcd-restart"])
    assert restarts(plan) == {name: ["etcd", "kube-apiserver"] for name in ("cp1", "cp2", "cp3")}
    assert phases(plan, "cp1")[0] == "etcd-snapshot"
    assert "2 of 3 voting members up, 2 needed" in plan.nodes[0].steps[1].title
    assert [step.cause for step in plan.nodes[0].steps if step.phase == "static-pods/kube-apiserver"] == [
        "the API server and its etcd are replaced together"
    ]


def test_s14_with_a_member_down_the_quorum_would_be_lost() -> None:
    snapshot = f2()
    assert snapshot.members is not None
    members = [msgspec.structs.replace(each, is_healthy=each.name != "cp3") for each in snapshot.members]
    plan = planned(
        msgspec.structs.replace(snapshot, members=members), "etcd.local.extraArgs[quota-backend-bytes]=8589934592"
    )
    assert (plan.verdict, codes(plan)) == ("blocked", ["no-quorum"])
    assert "cp3 is down" in plan.attributes[0].reason


def test_s15_a_misspelt_flag_is_refused_unless_it_is_forced() -> None:
    plan = planned(f1(), "scheduler.extraArgs[profilng]=false")
    assert (plan.verdict, codes(plan)) == ("blocked", ["unknown-flag"])
    assert "--profiling" in plan.attributes[0].route
    forced = planned(f1(), "scheduler.extraArgs[profilng]=false", "unknown-flag")
    assert (forced.verdict, restarts(forced)) == ("advice", {"cp1": ["kube-scheduler"]})


@pytest.mark.parametrize("is_seen", [False, True], ids=["by the mirror pod", "by the manifest"])
def test_s16_an_edit_by_hand_blocks_and_is_kept_if_that_is_accepted(is_seen: bool) -> None:
    plan = planned(f4(is_seen=is_seen), "apiServer.extraArgs[event-ttl]=2h")
    found = attribute(plan, "kube-apiserver on cp1: --profiling")
    assert (plan.verdict, found.code, found.after) == ("blocked", "hand-edit", "false")
    assert "--set 'apiServer.extraArgs[profiling]=false'" in found.route
    kept = planned(f4(is_seen=is_seen), "apiServer.extraArgs[event-ttl]=2h", "hand-edit")
    file = kept.nodes[0].steps[0].files[0]
    assert file.content is not None
    assert b"--profiling=false" in file.content
    assert b"--event-ttl=2h" in file.content
    assert "profiling" not in kept.objects[0].diff


@pytest.mark.parametrize("is_seen", [False, True], ids=["by the mirror pod", "by the manifest"])
def test_s16_what_was_typed_in_by_hand_is_adopted_without_a_restart(is_seen: bool) -> None:
    plan = planned(f4(is_seen=is_seen), "apiServer.extraArgs[profiling]=false")
    assert (restarts(plan), order(plan)) == ({}, ["kubeadm-config"])


def test_s16_what_was_typed_in_by_hand_and_is_asked_for_differently_is_a_conflict() -> None:
    plan = planned(f4(), "apiServer.extraArgs[profiling]=true")
    assert plan.verdict == "blocked"
    found = attribute(plan, "kube-apiserver on cp1: --profiling")
    assert (found.code, found.after) == ("conflicting-edit", "false")


def test_s19_a_configuration_that_somebody_changes_makes_the_plan_stale() -> None:
    before = f1()
    found = before.config_maps["kubelet-config"]
    moved = StoredConfig(data={"kubelet": found.data["kubelet"].replace("maxPods: 110", "") + "maxPods: 42\n"})
    after = msgspec.structs.replace(before, config_maps={**before.config_maps, "kubelet-config": moved})
    one, other = (planned(each, "apiServer.extraArgs[profiling]=false") for each in (before, after))
    assert digest_of(one) != digest_of(other)
    differing = {new.name for new in other.observed} - {new.name for new in other.observed if new in one.observed}
    assert differing == {"ConfigMap kube-system/kubelet-config"}


def test_s19_pods_that_come_and_go_do_not_make_the_plan_stale() -> None:
    request = "apiServer.extraArgs[profiling]=false"
    assert digest_of(planned(f1(), request)) == digest_of(planned(f1(pods={"w1": 60}), request))


def test_s20_arguments_are_merged_by_name_deleted_and_repeated() -> None:
    args: Json = [{"name": "audit-log-maxage", "value": "1"}, {"name": "event-ttl", "value": "2h"}]
    snapshot = f1(cluster={"apiServer": {"extraArgs": args}})
    found = planned(
        snapshot, patch("{kind: ClusterConfiguration, apiServer: {extraArgs: [{name: event-ttl, value: 3h}]}}")
    )
    assert [(each.label, each.before, each.after) for each in found.attributes] == [
        ("apiServer.extraArgs[event-ttl]", "2h", "3h")
    ]
    deleted = planned(
        snapshot, patch("{kind: ClusterConfiguration, apiServer: {extraArgs: [{name: event-ttl, $patch: delete}]}}")
    )
    assert [(each.label, each.after) for each in deleted.attributes] == [("apiServer.extraArgs[event-ttl]", None)]
    twice = planned(
        snapshot,
        patch(
            "{kind: ClusterConfiguration, apiServer: {extraArgs: ["
            "{name: tls-sni-cert-key, value: '/etc/kubernetes/pki/a.crt,/etc/kubernetes/pki/a.key'}, "
            "{name: tls-sni-cert-key, value: '/etc/kubernetes/pki/b.crt,/etc/kubernetes/pki/b.key'}]}}"
        ),
    )
    diff = twice.nodes[0].steps[0].files[0].diff
    assert diff.index("a.crt") < diff.index("b.crt")


def test_s20_taking_an_argument_away_brings_the_default_of_kubeadm_back() -> None:
    args: Json = [{"name": "kubelet-preferred-address-types", "value": "Hostname"}]
    plan = planned(
        f1(cluster={"apiServer": {"extraArgs": args}}),
        unsets("apiServer.extraArgs[kubelet-preferred-address-types]"),
    )
    assert (
        "+    - --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname\n"
        in plan.nodes[0].steps[0].files[0].diff
    )


def test_an_external_etcd_is_not_restarted() -> None:
    plan = planned(f3(), "imageRepository=mirror.example.com/k8s")
    assert "etcd" not in restarts(plan)["cp1"]


def test_members_that_etcd_joined_stay_in_its_manifest() -> None:
    plan = planned(f2(is_seen=True), "etcd.local.extraArgs[quota-backend-bytes]=8589934592")
    file = next(file for step in plan.nodes[2].steps for file in step.files)
    assert file.content is not None
    assert b"--initial-cluster-state=existing" in file.content
    assert file.diff.count("\n-") == 0
