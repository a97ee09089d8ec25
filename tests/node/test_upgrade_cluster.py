"""`upgrade apply --via` on a cluster of simulated nodes: each is told in order, and what is left is resumed."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from garboard import __version__
from garboard.cli.main import run
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.api_server import FakeApi
from tests.support.node import simulated_nodes

LABEL = "node-role.kubernetes.io/control-plane"
Upgrade = Callable[..., int]


@pytest.fixture
def upgrade(api: FakeApi, kubeconfig: Kubeconfig, tmp_path: Path, state_dir: Path) -> Upgrade:
    """Run `garboard upgrade apply` for a cluster of two control planes and a worker."""
    for name in ("worker1", "cp2", "cp1"):
        labels = {LABEL: ""} if name.startswith("cp") else {}
        api.objects[f"/api/v1/nodes/{name}"] = {"kind": "Node", "metadata": {"name": name, "labels": labels}}
    (tmp_path / "version").write_text(__version__)
    path = tmp_path / "admin.conf"
    path.write_bytes(kubeconfig.to_bytes())
    via = shlex.join([sys.executable, "-S", "-E", simulated_nodes.__file__, str(tmp_path)])
    return lambda *words: run(["upgrade", "apply", *words, "--kubeconfig", str(path), "--via", f"{via} {{node}}"])


def commands(folder: Path) -> list[str]:
    path = folder / "commands"
    return [line.split(" --lease ")[0] for line in path.read_text().splitlines()] if path.exists() else []


def test_every_node_is_told_in_order(upgrade: Upgrade, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert upgrade("v1.37.1", "--yes") == 0
    assert commands(tmp_path) == [
        "cp1: upgrade apply v1.37.1 --yes",
        "cp2: upgrade node",
        "worker1: upgrade node",
    ]
    assert "all 3 nodes are upgraded to v1.37.1" in capsys.readouterr().err


def test_flags_reach_the_nodes_that_have_them(upgrade: Upgrade, tmp_path: Path) -> None:
    flags = ("--etcd-upgrade=false", "--patches", "/etc/patches", "--ignore-preflight-errors", "Swap,Mem")
    assert upgrade("v1.37.1", "--force", "--skip-phases", "upload-config,addon/coredns", *flags) == 0
    shared = "--etcd-upgrade=false --ignore-preflight-errors=Swap,Mem --patches=/etc/patches"
    assert commands(tmp_path) == [
        f"cp1: upgrade apply v1.37.1 --yes --force --skip-phases=upload-config,addon/coredns {shared}",
        f"cp2: upgrade node --skip-phases=addon/coredns {shared}",
        f"worker1: upgrade node --skip-phases=addon/coredns {shared}",
    ]


def test_plan_is_shown_and_nobody_is_told(upgrade: Upgrade, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert upgrade("v1.37.1", "--dry-run", "-o", "json") == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert [each["node"] for each in parts] == ["cp1", "cp2", "worker1"]
    assert parts[1]["command"] == ["garboard", "upgrade", "node"]
    assert commands(tmp_path) == []


def test_failure_stops_it_and_the_same_command_goes_on(
    upgrade: Upgrade, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cp2.next").write_text('["fail"]')
    assert upgrade("v1.37.1", "--yes") == 1
    assert commands(tmp_path) == ["cp1: upgrade apply v1.37.1 --yes", "cp2: upgrade node"]
    told = capsys.readouterr().err
    assert "left are cp2, worker1" in told
    assert "the same command goes on from there" in told
    assert upgrade("v1.37.1", "--yes") == 0
    assert commands(tmp_path)[2:] == ["cp2: resume 1-upgrade", "worker1: upgrade node"]
    assert "going on with" in capsys.readouterr().err


def test_same_command_goes_on_with_the_flags_that_it_has_now(
    upgrade: Upgrade, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cp2.next").write_text('["refuse"]')
    assert upgrade("v1.37.1", "--yes") == 1
    assert upgrade("v1.37.1", "--yes", "--drift", "keep") == 0
    assert commands(tmp_path)[2:] == ["cp2: upgrade node --drift=keep", "worker1: upgrade node --drift=keep"]
    assert "no run has begun" not in capsys.readouterr().err, "nothing is on its way after a refusal"


def test_node_that_has_left_the_cluster_holds_up_no_other(
    upgrade: Upgrade, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cp2.next").write_text('["refuse"]')
    assert upgrade("v1.37.1", "--yes") == 1
    (tmp_path / "cp2.silent").touch()
    del api.objects["/api/v1/nodes/cp2"]
    assert upgrade("v1.37.1", "--yes") == 0
    assert commands(tmp_path)[2:] == ["worker1: upgrade node"]
    assert "cp2 has left the cluster" in capsys.readouterr().err


def test_another_version_is_refused_while_one_is_half_way(
    upgrade: Upgrade, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cp2.next").write_text('["fail"]')
    assert upgrade("v1.37.1", "--yes") == 1
    assert upgrade("v1.37.0", "--yes") == 4
    assert "upgrade apply v1.37.1" in capsys.readouterr().err
    assert len(commands(tmp_path)) == 2


def test_nobody_is_told_without_a_yes(
    upgrade: Upgrade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("garboard.cli.console.ConsoleReporter.ask", lambda _self, _question: "n\n")
    assert upgrade("v1.37.1") == 1
    assert "not confirmed" in capsys.readouterr().err
    assert commands(tmp_path) == []


def test_configuration_file_does_not_go_with_via(upgrade: Upgrade, capsys: pytest.CaptureFixture[str]) -> None:
    assert upgrade("v1.37.1", "--yes", "--config", "upgrade.yaml") == 2
    assert "--config does not go with --via" in capsys.readouterr().err
