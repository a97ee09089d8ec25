import json
import tomllib

from garboard.lab.provision import containerd_config, pod_network
from garboard.lab.topology import Node, Role
from garboard.model import DEFAULT_VERSION

NODE = Node("cp2", Role.CONTROL_PLANE, 1, DEFAULT_VERSION)


def test_containerd_is_told_what_the_machine_may_not_do() -> None:
    for may, restricted in ((True, False), (False, True)):
        config = tomllib.loads(containerd_config(pause_image="registry.k8s.io/pause:3.10.2", may_lower_oom_score=may))
        cri = config["plugins"]["io.containerd.grpc.v1.cri"]
        assert cri["restrict_oom_score_adj"] is restricted
        assert cri["sandbox_image"] == "registry.k8s.io/pause:3.10.2"
        assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is False


def test_pods_of_a_node_get_addresses_of_its_own_subnet() -> None:
    bridge = json.loads(pod_network(NODE, "10.32.0.0/16"))["plugins"][0]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.32.1.0/24"}]]
    assert bridge["ipMasq"] is True
    assert bridge["hairpinMode"] is True
