"""The mistakes that people make in a configuration, and what they are told to do about them."""

from pathlib import Path

import pytest

from garboard.cli.main import run

GOOD = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(GOOD + "networking: {podSubnt: 10.1.0.0/16}\n", "hint: did you mean 'podSubnet'?", id="field"),
        pytest.param(GOOD.replace("Cluster", "Clustr"), "bad.yaml:1: did you mean ClusterConfiguration?", id="kind"),
        pytest.param(GOOD.replace("Configuration", "Config"), "did you mean ClusterConfiguration?", id="short kind"),
        pytest.param(GOOD.replace("Cluster", "My"), "the kinds are InitConfiguration, ", id="foreign kind"),
        pytest.param(GOOD.replace("v1beta4", "v1beta9"), "bad.yaml:1: ClusterConfiguration has another", id="version"),
        pytest.param(
            GOOD.replace("v1.37.1", "v1.20.0"), "bad.yaml: kubernetesVersion: Kubernetes 1.20 is not supported",
            id="unsupported minor",
        ),
    ],
)  # fmt: skip
def test_mistake_is_told_with_the_way_out(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(text)
    assert run(["config", "validate", "--config", "bad.yaml"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "\nhint: " in err
