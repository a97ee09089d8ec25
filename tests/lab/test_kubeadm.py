import pytest

from garboard.documents import Json, read_stream
from garboard.errors import BadDocument
from garboard.lab.kubeadm import (
    KUBEADM,
    ClusterSecrets,
    Needs,
    check_kubelet_patch,
    init_documents,
    join_documents,
    pod_subnet_of,
    sort_documents,
)
from garboard.lab.topology import Bootstrap, Lab, plan_lab
from garboard.model import DEFAULT_VERSION

SECRETS = ClusterSecrets("abcdef.0123456789abcdef", "0" * 64)
NEEDS = Needs(is_cgroup_v1=True, proxy_mode="nftables")


def lab(workers: int = 1) -> Lab:
    return plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=2, workers=workers)


def read(text: str) -> dict[str, dict[str, Json]]:
    documents = [each.value for each in read_stream(text, source="test")]
    return {str(each["kind"]): each for each in documents if isinstance(each, dict)}


def init(yours: dict[str, dict[str, Json]], workers: int = 1) -> dict[str, dict[str, Json]]:
    return read(init_documents(lab(workers), lab(workers).nodes[0], SECRETS, NEEDS, yours))


def test_the_machine_can_verify_the_api_server_through_the_loopback_forward() -> None:
    assert init({})["ClusterConfiguration"]["apiServer"] == {"certSANs": ["127.0.0.1", "localhost"]}
    assert init({})["ClusterConfiguration"]["controlPlaneEndpoint"] == "control-plane.lab:6443"


def test_a_kubelet_on_cgroup_v1_is_told_not_to_refuse_it() -> None:
    assert init({})["KubeletConfiguration"]["failCgroupV1"] is False
    v2 = read(init_documents(lab(), lab().nodes[0], SECRETS, Needs(False, "nftables"), {}))
    assert "failCgroupV1" not in v2["KubeletConfiguration"]


def test_without_workers_control_planes_take_ordinary_pods() -> None:
    registration = init({}, workers=0)["InitConfiguration"]["nodeRegistration"]
    assert isinstance(registration, dict)
    assert registration["taints"] == []
    with_workers = init({})["InitConfiguration"]["nodeRegistration"]
    assert isinstance(with_workers, dict)
    assert "taints" not in with_workers


def test_your_values_are_kept_and_your_lists_are_united_with_the_labs() -> None:
    yours: dict[str, dict[str, Json]] = {
        "ClusterConfiguration": {
            "clusterName": "mine",
            "apiServer": {"certSANs": ["api.example.com", "localhost"]},
            "controllerManager": {"extraArgs": [{"name": "v", "value": "4"}]},
        },
        "KubeletConfiguration": {"maxPods": 42, "evictionHard": {"memory.available": "50Mi"}},
    }
    made = init(yours)
    cluster = made["ClusterConfiguration"]
    assert cluster["clusterName"] == "mine"
    assert cluster["apiServer"] == {"certSANs": ["api.example.com", "localhost", "127.0.0.1"]}
    manager = cluster["controllerManager"]
    assert isinstance(manager, dict)
    arguments = manager["extraArgs"]
    assert isinstance(arguments, list)
    assert arguments[:2] == [{"name": "v", "value": "4"}, {"name": "allocate-node-cidrs", "value": "false"}]
    assert made["KubeletConfiguration"]["maxPods"] == 42
    eviction = made["KubeletConfiguration"]["evictionHard"]
    assert isinstance(eviction, dict)
    assert eviction["memory.available"] == "50Mi"


def test_an_argument_of_yours_stands_in_place_of_the_labs_default() -> None:
    mine: Json = {"name": "kube-api-qps", "value": "5"}
    made = init({"ClusterConfiguration": {"controllerManager": {"extraArgs": [mine]}}})["ClusterConfiguration"]
    manager = made["controllerManager"]
    assert isinstance(manager, dict)
    arguments = manager["extraArgs"]
    assert isinstance(arguments, list)
    assert [each for each in arguments if isinstance(each, dict) and each["name"] == "kube-api-qps"] == [mine]


def test_every_contradiction_is_named_with_both_values() -> None:
    yours: dict[str, dict[str, Json]] = {
        "ClusterConfiguration": {
            "controlPlaneEndpoint": "api.example.com:443",
            "controllerManager": {"extraArgs": [{"name": "allocate-node-cidrs", "value": "true"}]},
        },
        "KubeletConfiguration": {"cgroupDriver": "systemd"},
    }
    with pytest.raises(BadDocument) as raised:
        init(yours)
    assert raised.value.error_class == "lab-conflict"
    assert (
        "controlPlaneEndpoint is 'api.example.com:443', the lab needs 'control-plane.lab:6443'" in raised.value.message
    )
    assert "extraArgs[allocate-node-cidrs].value is 'true', the lab needs 'false'" in raised.value.message
    assert "KubeletConfiguration.cgroupDriver is 'systemd', the lab needs 'cgroupfs'" in raised.value.message


def test_only_control_planes_join_with_a_certificate_key() -> None:
    _, second, worker = lab().nodes
    joined = read(join_documents(lab(), second, SECRETS, {}))["JoinConfiguration"]
    endpoint = {"advertiseAddress": "10.89.0.12", "bindPort": 6443}
    assert joined["controlPlane"] == {"localAPIEndpoint": endpoint, "certificateKey": "0" * 64}
    assert "controlPlane" not in read(join_documents(lab(), worker, SECRETS, {}))["JoinConfiguration"]


def test_secrets_are_in_no_representation() -> None:
    assert "0123456789abcdef" not in repr(SECRETS)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param({"kind": "Pod"}, "no use for kind 'Pod'", id="a kind that is none of kubeadm's"),
        pytest.param(["list"], "no use for kind None", id="no object"),
        pytest.param({"kind": "ClusterConfiguration", "apiVersion": "kubeadm.k8s.io/v1beta3"}, "v1beta3", id="old"),
    ],
)
def test_documents_that_a_lab_cannot_use_are_refused(document: Json, problem: str) -> None:
    with pytest.raises(BadDocument, match=problem):
        sort_documents([(document, "mine.yaml:1")])


def test_a_kind_may_come_once() -> None:
    document: Json = {"kind": "ClusterConfiguration", "apiVersion": KUBEADM}
    with pytest.raises(BadDocument, match="a second ClusterConfiguration"):
        sort_documents([(document, "mine.yaml:1"), (document, "mine.yaml:9")])


def test_the_pod_subnet_is_yours_to_choose() -> None:
    assert pod_subnet_of({"ClusterConfiguration": {"networking": {"podSubnet": "10.32.0.0/16"}}}) == "10.32.0.0/16"
    assert pod_subnet_of({}) is None


@pytest.mark.parametrize(
    ("patch", "conflicts"),
    [
        pytest.param({"maxPods": 42}, 0, id="another field"),
        pytest.param({"cgroupDriver": "cgroupfs"}, 0, id="the same value"),
        pytest.param({"cgroupDriver": "systemd", "failCgroupV1": True}, 2, id="two that the lab needs otherwise"),
        pytest.param([{"op": "replace", "path": "/cgroupDriver", "value": "systemd"}], 1, id="a JSON patch"),
        pytest.param([{"op": "remove", "path": "/cgroupDriver"}], 1, id="a removal"),
        pytest.param([{"op": "test", "path": "/cgroupDriver", "value": "systemd"}], 0, id="a test changes nothing"),
    ],
)
def test_kubelet_patches_are_held_against_what_the_lab_needs(patch: Json, conflicts: int) -> None:
    assert len(check_kubelet_patch(patch, "kubeletconfiguration.yaml", NEEDS)) == conflicts
