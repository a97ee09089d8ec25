import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.model import KubernetesVersion


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("v1.36.4", KubernetesVersion(1, 36, 4), id="as kubeadm prints it"),
        pytest.param("1.36", KubernetesVersion(1, 36), id="no patch number"),
    ],
)
def test_version_is_parsed(text: str, version: KubernetesVersion) -> None:
    assert KubernetesVersion.parse(text) == version


@pytest.mark.parametrize("text", ["", "v1", "1.36.4.1", "v1.٣6.4", "1.36\n", "latest"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="not a Kubernetes version"):
        KubernetesVersion.parse(text)


@given(st.builds(KubernetesVersion, *[st.integers(0, 999)] * 3))
def test_printed_version_reads_back(version: KubernetesVersion) -> None:
    assert KubernetesVersion.parse(str(version)) == version
