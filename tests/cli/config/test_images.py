"""`config images pull` without a runtime; with one it is in tests/node/interpreters/test_runtime.py."""

from pathlib import Path

import pytest

from garboard.cli.main import run


def test_missing_runtime_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "images", "pull", "--cri-socket", f"unix://{tmp_path}/none.sock"]) == 4
    out, err = capsys.readouterr()
    assert err.startswith("error[socket-missing]: the container runtime does not answer")
    assert out == ""


def test_configuration_names_the_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeadm.yaml"
    path.write_text(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"
        f"nodeRegistration: {{criSocket: unix://{tmp_path}/mine.sock}}\n"
    )
    assert run(["config", "images", "pull", "--config", str(path)]) == 4
    assert "mine.sock" in capsys.readouterr().err


def test_runtime_of_a_configuration_is_that_below_the_changed_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path would lead to the runtime of the machine that we run on."""
    (tmp_path / "kubeadm.yaml").write_text(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"
        "nodeRegistration: {criSocket: unix:///run/mine.sock}\n"
    )
    assert run(["config", "images", "pull", "--rootfs", str(tmp_path), "--config", "/kubeadm.yaml"]) == 4
    assert f"{tmp_path}/run/mine.sock" in capsys.readouterr().err
