"""`fleet dashboard`: mistakes are told before anything is asked of an API server."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from garboard.cli.fleet.dashboard import dashboard
from garboard.fleet.deploy import ControllerDeployment, controller_objects

GARBOARD = str(Path(sys.executable).parent / "garboard")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--address", "here"), "--address 'here' is no address", id="an address without a port"),
        pytest.param(("--address", "0.0.0.0:99999"), "is no address", id="a port that there is not"),
        pytest.param(("--address", "0.0.0.0:8443", "--port", "1"), "leave --port out", id="two ports"),
        pytest.param(("--tls-cert-file", "a", "--tls-private-key-file", "b"), "is for --address", id="TLS on loopback"),
        pytest.param(("--address", ":1", "--tls-cert-file", "a"), "go together", id="a certificate without a key"),
        pytest.param(("--port", "-1"), "not in the range", id="a negative port"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], said: str) -> None:
    ended = subprocess.run([GARBOARD, "fleet", "dashboard", *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_missing_kubeconfig_is_told(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.conf")
    command = [GARBOARD, "fleet", "dashboard", "--kubeconfig", missing]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"there is no kubeconfig {missing}" in ended.stderr


def test_command_takes_what_the_deployment_gives_it() -> None:
    objects: Any = controller_objects(ControllerDeployment(has_dashboard=True))
    (deployment,) = (
        each for each in objects
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "garboard-fleet-dashboard"
    )  # fmt: skip
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][:2] == ["fleet", "dashboard"]
    given = dashboard.make_context("dashboard", container["args"][2:]).params
    assert given["address"].endswith(f":{container['ports'][0]['containerPort']}")
