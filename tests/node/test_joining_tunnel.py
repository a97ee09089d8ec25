"""What a join through a tunnel finds out on this machine; the way itself is tested in `test_agent_in_process`."""

from dataclasses import replace
from pathlib import Path

import pytest

from garboard.errors import BadUsage, NotReady
from garboard.host.node_machine import NodeMachine
from garboard.host.root import inside
from garboard.model.tunnel import JoinTunnel
from garboard.node.joining_tunnel import refuse_other_root, through_tunnel, with_whole_paths
from tests.support.phases.join.clusters import JOIN, load_join

TUNNEL = JoinTunnel(server="127.0.0.1", credentials_dir="pki")
CONFIG = replace(load_join(JOIN), tunnel=TUNNEL)


def folder_of(directory: str) -> str:
    found = with_whole_paths(replace(CONFIG, tunnel=replace(TUNNEL, credentials_dir=directory))).tunnel
    assert found is not None
    return found.credentials_dir


def test_folder_of_a_flag_is_named_from_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("pki") == f"{tmp_path}/pki"
    assert folder_of("/root/pki") == "/root/pki"
    plain = load_join(JOIN)
    assert with_whole_paths(plain) is plain


def test_machine_of_another_root_is_refused(tmp_path: Path) -> None:
    refuse_other_root(CONFIG)
    with inside(str(tmp_path)), pytest.raises(BadUsage, match="--rootfs"):
        refuse_other_root(CONFIG)


def test_join_without_a_tunnel_has_no_way_of_its_own() -> None:
    with through_tunnel(load_join(JOIN), NodeMachine(None)) as way:
        assert way is None


def test_credentials_are_checked_before_anybody_is_dialled(tmp_path: Path) -> None:
    config = replace(CONFIG, tunnel=replace(TUNNEL, credentials_dir=str(tmp_path)))
    with pytest.raises(NotReady) as caught, through_tunnel(config, NodeMachine(None)):
        pass
    assert caught.value.error_class == "tunnel-credentials"
