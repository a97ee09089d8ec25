"""What `tunnel manifests` writes: flags that our programs take, objects of the right shape."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from garboard.cli.tunnel import agent as agent_command
from garboard.cli.tunnel import server as server_command
from garboard.cli.tunnel.daemon import MOST_DESCRIPTORS
from garboard.tunnel.wire.flow import StallPolicy
from tests.support.cli.tunnel.flags import flags_of
from tests.support.tunnel.manifests import REVERSE, write_manifests


def load(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / name).read_text())


def arguments(pod: Any, kind: str = "containers") -> list[str]:
    return list(pod["spec"][kind][0]["args"])


def test_static_pods_carry_command_lines_that_work(tmp_path: Path) -> None:
    assert write_manifests(tmp_path, *REVERSE) == 0
    server = arguments(load(tmp_path, "control-plane/manifests/konnectivity-server.yaml"))
    assert server[:2] == ["tunnel", "server"]
    options = server_command.options_of(flags_of(server_command.server, *server[2:]))
    options.check()
    assert str(options.allowed) == "127.0.0.1:6443"
    pod = load(tmp_path, "node/manifests/konnectivity-agent.yaml")
    agent = agent_command.options_of(flags_of(agent_command.agent, *arguments(pod)[2:]))
    agent.check()
    assert [str(target) for target in agent.targets] == ["7443:127.0.0.1:6443"]
    assert arguments(pod, "initContainers") == ["tunnel", "link", "--address=10.255.0.1", "--name=konnectivity0"]
    assert pod["spec"]["hostNetwork"] is True


def test_unit_sets_up_the_link_before_the_agent_and_both_before_the_kubelet(tmp_path: Path) -> None:
    write_manifests(tmp_path, *REVERSE)
    unit = (tmp_path / "node/konnectivity-agent.service").read_text()
    assert unit.index("ExecStartPre=/usr/local/bin/garboard tunnel link") < unit.index("ExecStart=/usr/local/bin")
    assert "Before=kubelet.service\n" in unit
    [line] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    agent_command.options_of(flags_of(agent_command.agent, *line.split()[3:])).check()


def test_unit_lets_the_agent_have_as_many_descriptors_as_it_takes(tmp_path: Path) -> None:
    write_manifests(tmp_path, *REVERSE)
    unit = (tmp_path / "node/konnectivity-agent.service").read_text()
    assert f"LimitNOFILE={MOST_DESCRIPTORS}\n" in unit


@pytest.mark.parametrize("name", ["control-plane/manifests/konnectivity-server", "node/manifests/konnectivity-agent"])
def test_what_waits_for_slow_readers_takes_no_more_than_half_of_the_memory(tmp_path: Path, name: str) -> None:
    write_manifests(tmp_path, *REVERSE)
    [container] = load(tmp_path, f"{name}.yaml")["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == f"{2 * StallPolicy().most_bytes >> 20}Mi"


def test_api_server_is_told_where_it_is_found(tmp_path: Path) -> None:
    write_manifests(tmp_path, *REVERSE)
    told = load(tmp_path, "control-plane/kubeadm.yaml")["apiServer"]
    values = {each["name"]: each["value"] for each in told["extraArgs"]}
    assert values == {
        "egress-selector-config-file": "/etc/kubernetes/konnectivity-server/egress-selector.yaml",
        "advertise-address": "10.255.0.1",
        "secure-port": "7443",
    }
    assert told["certSANs"] == ["10.255.0.1"]


def test_without_a_bind_address_only_the_way_to_the_nodes_is_made(tmp_path: Path) -> None:
    write_manifests(tmp_path, "--mode", "http-connect")
    assert "certSANs" not in load(tmp_path, "control-plane/kubeadm.yaml")["apiServer"]
    assert "initContainers" not in load(tmp_path, "node/manifests/konnectivity-agent.yaml")["spec"]
    assert "allowed-destination" not in (tmp_path / "control-plane/manifests/konnectivity-server.yaml").read_text()
    [selection] = load(tmp_path, "control-plane/egress-selector.yaml")["egressSelections"]
    assert selection["connection"]["proxyProtocol"] == "HTTPConnect"


def test_agents_with_tokens_are_a_daemon_set(tmp_path: Path) -> None:
    assert write_manifests(tmp_path, "--authentication", "token") == 0
    made = load(tmp_path, "cluster/konnectivity-agent.yaml")
    assert made["kind"] == "DaemonSet"
    server = arguments(load(tmp_path, "control-plane/manifests/konnectivity-server.yaml"))
    options = server_command.options_of(flags_of(server_command.server, *server[2:]))
    options.check()
    assert options.token_rules is not None
    assert not (tmp_path / "node").exists()


def test_kubelet_is_led_to_its_agent(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"the authority")
    assert (
        write_manifests(
            tmp_path, *REVERSE, "--cluster-ca", str(tmp_path / "ca.crt"), "--token", "abcdef.0123456789abcdef"
        )
        == 0
    )
    path = tmp_path / "node/bootstrap-kubelet.conf"
    assert path.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(path.read_text())
    [cluster] = config["clusters"]
    assert cluster["cluster"]["server"] == "https://10.255.0.1:7443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"the authority"
    assert config["users"][0]["user"] == {"token": "abcdef.0123456789abcdef"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--authentication", "token", *REVERSE], "needs --authentication certificate"),
        (["--token", "x"], "go together"),
        (["--bind-address", "127.0.0.1"], "cannot publish 127.0.0.1"),
        (["--api-server", "nowhere"], "has no port"),
    ],
)
def test_what_cannot_work_is_refused(
    tmp_path: Path, more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write_manifests(tmp_path, *more) in (2, 3)
    assert words in capsys.readouterr().err


def test_rights_are_no_more_than_needed(tmp_path: Path) -> None:
    write_manifests(tmp_path)
    objects = list(yaml.safe_load_all((tmp_path / "cluster/rbac.yaml").read_text()))
    rules = {each["metadata"]["name"]: each["rules"][0]["verbs"] for each in objects if each["kind"] == "Role"}
    assert rules == {
        "system:konnectivity-server": ["get", "create", "update", "list", "delete"],
        "system:konnectivity-agent": ["get", "list", "watch"],
    }
