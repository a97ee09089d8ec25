"""What a node has to be patched: all targets of a control plane, the kubelet's configuration of a worker."""

import pytest

from garboard.config import ConfigFile, FixedFacts, ReadOptions
from garboard.errors import BadUsage
from garboard.manifests import NodeHost
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import find_target, targets_of
from garboard.phases.rendering import NodeRendering, path_of
from garboard.schema import load_schema

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
"""
EXTERNAL = "etcd: {external: {endpoints: ['https://192.0.2.1:2379'], caFile: /a, certFile: /b, keyFile: /c}}\n"


def rendering(
    more: str = "", *, role: str = "control-plane", version: KubernetesVersion = DEFAULT_VERSION
) -> NodeRendering:
    text = CONFIG.replace("VERSION", str(version)) + more
    file = ConfigFile.read(text, file="kubeadm.yaml", host=FixedFacts(), options=ReadOptions(detects_cri=False))
    return NodeRendering(file.init(), NodeHost(hostname="cp1"), load_schema(version), role)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_control_plane_has_every_target_of_its_minor(version: KubernetesVersion) -> None:
    rendered = rendering(version=version).everything()
    assert [each.target for each in rendered] == list(targets_of(version))
    for each in rendered:
        assert isinstance(each.document, dict)
        assert each.document["kind"] == each.target.kind


def test_external_etcd_is_not_rendered() -> None:
    names = [each.target.name for each in rendering(EXTERNAL).everything()]
    assert "etcd" not in names
    with pytest.raises(BadUsage, match="external etcd"):
        rendering(EXTERNAL).one(find_target("etcd", DEFAULT_VERSION))


def test_worker_has_a_kubelet_and_nothing_else() -> None:
    assert [each.target.name for each in rendering(role="worker").everything()] == ["kubeletconfiguration"]
    with pytest.raises(BadUsage, match="a worker has no kube-apiserver"):
        rendering(role="worker").one(find_target("kube-apiserver", DEFAULT_VERSION))


def test_static_pods_and_the_kubelet_have_files_and_addons_have_none() -> None:
    paths = {target.name: path_of(target) for target in targets_of(DEFAULT_VERSION)}
    assert paths == {
        "etcd": "/etc/kubernetes/manifests/etcd.yaml",
        "kube-apiserver": "/etc/kubernetes/manifests/kube-apiserver.yaml",
        "kube-controller-manager": "/etc/kubernetes/manifests/kube-controller-manager.yaml",
        "kube-scheduler": "/etc/kubernetes/manifests/kube-scheduler.yaml",
        "kubeletconfiguration": "/var/lib/kubelet/config.yaml",
        "corednsdeployment": None,
        "kubeproxydaemonset": None,
    }
