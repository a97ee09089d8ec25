"""`fleet controller`, `claim` and `kubeconfig`: mistakes are told before anything is asked of an API server."""

import subprocess
import sys
from pathlib import Path

import pytest

GARBOARD = str(Path(sys.executable).parent / "garboard")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("controller", "--provisioner", "job"), "needs --image", id="Jobs without an image"),
        pytest.param(("controller", "--shard", "3/3"), "no part of a whole", id="a shard that is none"),
        pytest.param(("controller", "--shard", "one"), "no part of a whole", id="a shard in words"),
        pytest.param(("controller", "--metrics-address", "here"), "is no address", id="an address without a port"),
        pytest.param(("claim", "edge", "--subject", "alice"), "is no subject", id="a subject without a kind"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], said: str) -> None:
    ended = subprocess.run([GARBOARD, "fleet", *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("words", [("controller",), ("status",), ("kubeconfig", "mine")])
def test_missing_kubeconfig_is_told(words: tuple[str, ...], tmp_path: Path) -> None:
    missing = str(tmp_path / "none.conf")
    ended = subprocess.run(
        [GARBOARD, "fleet", *words, "--kubeconfig", missing], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert f"there is no kubeconfig {missing}" in ended.stderr
