"""`fleet controller`, `claim` and `kubeconfig`: mistakes are told before anything is asked of an API server."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.fleet.controller import controller
from garboard.fleet.deploy import ControllerDeployment, controller_objects

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


@pytest.mark.parametrize(("shards", "shard"), [(1, "0/1"), (3, "0/3")])
def test_command_takes_what_the_deployment_gives_it(shards: int, shard: str) -> None:
    objects = controller_objects(ControllerDeployment(shards=shards))
    deployment: Any = next(each for each in objects if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][:2] == ["fleet", "controller"]
    given = controller.make_context("controller", container["args"][2:]).params
    assert given["provisioner"] == "job"
    assert given["image"] == container["image"]
    assert given["leader_elect"] is True
    assert given["shard"] == shard
    assert given["lease_namespace"] == deployment["metadata"]["namespace"]
    assert given["metrics_address"].endswith(f":{container['ports'][0]['containerPort']}")
