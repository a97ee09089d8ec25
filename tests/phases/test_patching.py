import pytest

from garboard.documents import Json
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import PatchFile
from garboard.phases.patching import NodePatches, PatchRun


def patcher(version: KubernetesVersion, **files: str) -> PatchRun:
    found = [PatchFile(f"{name}.yaml", name, text.encode) for name, text in files.items()]
    return NodePatches(lambda: found).begin(version)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_the_kubelets_endpoint_may_be_patched_as_long_as_it_is_not_the_nodes_own(version: KubernetesVersion) -> None:
    patch = patcher(version, kubeletconfiguration="containerRuntimeEndpoint: unix:///patched\n")
    given: Json = {"containerRuntimeEndpoint": "unix:///of-the-cluster", "maxPods": 5}
    assert patch("kubeletconfiguration", given) == {"containerRuntimeEndpoint": "unix:///patched", "maxPods": 5}


def test_a_target_that_the_minor_has_not_got_stays_as_it_is() -> None:
    old, new = SUPPORTED_VERSIONS[:2]
    given: dict[str, Json] = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube-proxy"}}
    assert patcher(old, kubeproxydaemonset="metadata: {name: x}\n")("kubeproxydaemonset", dict(given)) == given
    patched = patcher(new, kubeproxydaemonset="metadata: {name: x}\n")("kubeproxydaemonset", dict(given))
    assert isinstance(patched, dict)
    assert patched["metadata"] == {"name": "x"}
