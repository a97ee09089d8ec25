"""Completion of values: what a shell is offered at the end of a line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from garboard.cli.main import garboard, run


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    words = line.split(" ")
    completer = BashComplete(garboard, {}, "garboard", "_GARBOARD_COMPLETE")
    return [item.value for item in completer.get_completions(words[1:-1], words[-1])]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        pytest.param("garboard patch diff --target kube-s", ["kube-scheduler"], id="target"),
        pytest.param("garboard patch new kubep", ["kubeproxydaemonset"], id="target as an argument"),
        pytest.param("garboard patch new --kubernetes-version v1.36.4 kubep", [], id="target of another minor"),
        pytest.param("garboard config explain kube-apiserver spec.containe", ["spec.containers"], id="field"),
        pytest.param(
            "garboard config explain kube-apiserver spec.containers[0].imagePull",
            ["spec.containers[0].imagePullPolicy"],
            id="field of a list element",
        ),
        pytest.param("garboard patch explain --target kubeletconfiguration maxPo", ["maxPods"], id="field of a kind"),
        pytest.param("garboard patch explain maxPo", [], id="no target, no fields"),
        pytest.param("garboard certs renew apiserver-k", ["apiserver-kubelet-client"], id="certificate"),
        pytest.param("garboard init --skip-phases mark", ["mark-control-plane"], id="phase"),
        pytest.param(
            "garboard init --skip-phases addon/coredns,addon/kube",
            ["addon/coredns,addon/kube-proxy"],
            id="second phase",
        ),
        pytest.param("garboard join --skip-phases kubelet-w", ["kubelet-wait-bootstrap"], id="phase of join"),
        pytest.param("garboard patch apply --kind KubeletC", ["KubeletConfiguration"], id="kind"),
        pytest.param("garboard patch lint --kubernetes-version v1.36", ["v1.36.4"], id="version"),
        pytest.param("garboard patch lint --accept probe-r", ["probe-removed"], id="danger"),
        pytest.param("garboard patch apply --accept missing-vol", [], id="no danger"),
        pytest.param("garboard init --accept restart-off,probe-r", ["restart-off,probe-removed"], id="second danger"),
        pytest.param("garboard patch lint --disable missing-vol", ["missing-volume"], id="code"),
        pytest.param("garboard patch schema --kind KubeletC", ["KubeletConfiguration"], id="kind of a schema"),
        pytest.param("garboard patch diff --color n", ["never"], id="choice"),
    ],
)
def test_values_are_offered(line: str, some: list[str]) -> None:
    assert offered(line) == some


def test_manifest_tells_whose_fields_are_offered(tmp_path: Path) -> None:
    (tmp_path / "kubelet.yaml").write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    assert offered(f"garboard patch explain -f {tmp_path}/kubelet.yaml maxPo") == ["maxPods"]
    assert offered(f"garboard patch explain -f {tmp_path}/none.yaml maxPo") == []


def test_shell_gets_the_values() -> None:
    words = {"COMP_WORDS": "garboard patch diff --target kube-s", "COMP_CWORD": "4"}
    done = subprocess.run(
        [sys.executable, "-c", "from garboard.cli.main import main; main()"],
        env={**os.environ, **words, "_GARBOARD_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "plain,kube-scheduler\n", done.stderr


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("garboard ")
