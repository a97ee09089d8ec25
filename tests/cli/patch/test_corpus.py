"""Patches as people write them: those that a cluster works with pass lint, and those that destroy it do not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.documents import read_yaml

CORPUS = Path(__file__).parent / "corpus"
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: cp1, criSocket: unix:///run/containerd/containerd.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
controlPlaneEndpoint: 192.0.2.10:6443
"""

with_and_without_a_configuration = pytest.mark.parametrize(
    "options", [pytest.param((), id="by default"), pytest.param(("--config", "kubeadm.yaml"), id="with --config")]
)


def cases(file: str) -> list[Any]:
    found = read_yaml((CORPUS / file).read_bytes(), source=file)
    assert isinstance(found, dict)
    return [pytest.param(files, id=name) for name, files in found.items()]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kubeadm.yaml").write_text(CONFIG)
    (tmp_path / "patches").mkdir()


def lint(files: Mapping[str, str], *options: str) -> int:
    if any("+args" in name for name in files):
        Path("patches/garboard.yaml").touch()
    for name, text in files.items():
        Path("patches", name).write_text(text)
    return run(["patch", "lint", "patches", "--warnings-as-errors", *options])


@with_and_without_a_configuration
@pytest.mark.parametrize("files", cases("harmless.yaml"))
def test_patch_that_a_cluster_works_with_passes(
    files: dict[str, str], options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = lint(files, *options)
    out, err = capsys.readouterr()
    assert (code, out) == (0, "")
    assert err.startswith("0 errors, 0 warnings")


@with_and_without_a_configuration
@pytest.mark.parametrize("files", cases("harmful.yaml"))
def test_patch_that_destroys_something_is_found(
    files: dict[str, Any], options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = files["found"]
    code = lint({name: text for name, text in files.items() if name != "found"}, *options)
    out, _ = capsys.readouterr()
    assert code == 3
    assert f"error[{wanted}]" in out, out
