"""The agent of a node as a unit and as a static pod; `tests/tunnel/deploy` has its flags read by the agent itself."""

from ipaddress import ip_address

import pytest

from garboard.errors import InvalidValue
from garboard.lab.unit_files import read_service
from garboard.manifests.tunnel_agent import TunnelAgent, agent_pod, agent_unit

AGENT = TunnelAgent(
    server_host="k.example", bind_address=ip_address("10.255.0.1"), agent_id="node-2",
    identifiers="host=node-2&ipv4=192.0.2.20",
)  # fmt: skip


def test_unit_has_the_program_and_the_identity_of_its_node() -> None:
    unit = agent_unit(AGENT, program="/usr/bin/garboard", head="Made by a test.")
    assert unit.startswith("# Made by a test.\n[Unit]\n")
    assert "ExecStartPre=/usr/bin/garboard tunnel link --address=10.255.0.1 --name=konnectivity0\n" in unit
    assert "--agent-id=node-2 --agent-identifiers=host=node-2&ipv4=192.0.2.20 --drain-timeout=10s\n" in unit
    first, second, _ = read_service("konnectivity-agent", unit).script.split("\n")
    assert first.endswith("--name=konnectivity0 || exit")
    assert "'--agent-identifiers=host=node-2&ipv4=192.0.2.20'" in second


@pytest.mark.parametrize("program", ["/opt/my programs/garboard", "/opt/100%/garboard", "/opt/$x", "/opt/a;b"])
def test_word_that_systemd_reads_otherwise_is_refused(program: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be in the command of a unit file"):
        agent_unit(AGENT, program=program)


def test_api_server_is_found_at_the_address_of_the_agent() -> None:
    assert AGENT.api_url == "https://10.255.0.1:6443"
    assert TunnelAgent(server_host="k", bind_address=ip_address("fd00::1")).api_url == "https://[fd00::1]:6443"


def test_static_pod_has_the_annotations_that_it_is_given() -> None:
    assert "annotations" not in agent_pod(AGENT)["metadata"]  # type: ignore[operator]
    metadata = agent_pod(AGENT, annotations={"a": "b"})["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["annotations"] == {"a": "b"}
