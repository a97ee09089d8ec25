"""What reset does to the agent of a tunnel: all of it goes if join wrote it, and nothing of it otherwise."""

from ipaddress import ip_address

from garboard.documents import write_yaml
from garboard.engine import Action, ControlLink, ControlUnitFile, RemoveFile, RemoveFolder
from garboard.manifests.tunnel_agent import (
    MANIFEST,
    POD_ANNOTATIONS,
    UNIT_FILE,
    UNIT_HEAD,
    TunnelAgent,
    agent_pod,
    agent_unit,
)
from garboard.phases.node.agent_removal import plan_agent_removal
from tests.support.phases.machines import MemoryMachine

AGENT = TunnelAgent(server_host="k.example", bind_address=ip_address("10.255.0.1"))
PKI = "/etc/kubernetes/konnectivity"
CREDENTIALS = {f"{PKI}/{name}": b"x" for name in ("ca.crt", "agent.crt", "agent.key")}
LINK = ControlLink(address="10.255.0.1", link="konnectivity0", verb="remove")
FILES = [RemoveFile(path=f"{PKI}/{name}") for name in ("agent.key", "agent.crt", "ca.crt")]


def removal(files: dict[str, bytes], services: set[str] | None = frozenset()) -> list[Action]:  # type: ignore[assignment]
    machine = MemoryMachine(files={**CREDENTIALS, **files}, services=None if services is None else set(services))
    return [step.action for step in plan_agent_removal(machine)]


def test_unit_goes_last_for_by_it_the_agent_is_known() -> None:
    unit = agent_unit(AGENT, head=UNIT_HEAD).encode()
    disable, forget = (ControlUnitFile(service="konnectivity-agent", verb=verb) for verb in ("disable", "forget"))
    ends = [RemoveFolder(path=PKI), RemoveFile(path=UNIT_FILE)]
    assert removal({UNIT_FILE: unit}) == [disable, LINK, *FILES, *ends, forget]
    assert removal({UNIT_FILE: unit}, None) == [LINK, *FILES, *ends]


def test_credentials_and_address_of_a_static_pod_go() -> None:
    pod = write_yaml(agent_pod(AGENT, annotations=POD_ANNOTATIONS)).encode()
    assert removal({MANIFEST: pod}) == [LINK, *FILES, RemoveFolder(path=PKI)]


def test_agent_that_somebody_else_has_set_up_stays() -> None:
    assert removal({UNIT_FILE: agent_unit(AGENT).encode(), MANIFEST: write_yaml(agent_pod(AGENT)).encode()}) == []
    assert removal({}) == []
