"""The gate of the tunnel: open once anybody answers at the agent's address, else with what the agent says of itself."""

from garboard.phases.gates import Answer, ObservedContainer, TunnelOpen
from tests.support.phases.gates.views import MemoryNodeView

SERVER = "https://10.255.0.1:6443"
GATE = TunnelOpen(server=SERVER, timeout_s=5)
READINESS = "http://127.0.0.1:8093/readyz?verbose"


def test_any_answer_opens_it() -> None:
    assert GATE.probe(MemoryNodeView())() == f"{SERVER}/version: Connection refused"
    assert GATE.probe(MemoryNodeView(web={f"{SERVER}/version": Answer(403)}))() is None


def test_agent_tells_what_it_lacks() -> None:
    said = "[+]ping ok\n[-]target 6443:127.0.0.1:6443 failed: not an allowed destination of one\n"
    view = MemoryNodeView(web={READINESS: Answer(503, said)}, state="active", log=["server.connected server=one"])
    found = GATE.evidence(view)
    assert found.lines == (
        "konnectivity-agent: its service is active",
        "konnectivity-agent: its log ends:",
        "  | server.connected server=one",
        "konnectivity-agent: [-]target 6443:127.0.0.1:6443 failed: not an allowed destination of one",
    )
    assert found.next_command == "journalctl -xeu konnectivity-agent"


def test_agent_in_a_static_pod_is_looked_at_there() -> None:
    container = ObservedContainer(
        id="0123456789abcdef", name="konnectivity-agent", pod="p", is_running=True, is_static=True
    )
    gate = TunnelOpen(server=SERVER, timeout_s=5, is_static_pod=True)
    found = gate.evidence(MemoryNodeView(running=[container]))
    assert "konnectivity-agent: container 0123456789abc is running" in found.lines
    assert gate.describe()["agent"] == "static pod"
