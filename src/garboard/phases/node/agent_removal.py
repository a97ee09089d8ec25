"""The agent through which a node had joined, as reset finds it; one that join has not written is left alone."""

import re
from collections.abc import Iterator

from garboard.engine import ControlLink, ControlUnitFile, RemoveFile, RemoveFolder, Step
from garboard.manifests.tunnel_agent import MANIFEST, UNIT_FILE, is_written_by_join
from garboard.model.tunnel import AGENT, AGENT_CERTIFICATE, AGENT_KEY, CA_FILE, TUNNEL_PKI_DIR
from garboard.phases.node.context import MachineView

_ADDRESS = re.compile(rb"--address=([0-9a-fA-F.:]+)")
_LINK = re.compile(rb"--name=([A-Za-z0-9_.-]+)")
_CAUSE = "the node had joined through a tunnel"


def plan_agent_removal(machine: MachineView) -> Iterator[Step]:
    """Plan to stop the agent and to remove its address, its credentials and, last, the file by which it is known.

    The manifest of a static pod goes with all others.
    """
    unit, manifest = (machine.read(path) for path in (UNIT_FILE, MANIFEST))
    is_unit = unit is not None and is_written_by_join(unit)
    if is_unit and machine.has_service_manager():
        yield Step(ControlUnitFile(service=AGENT, verb="disable"), _CAUSE)
    found = unit if is_unit else manifest if manifest is not None and is_written_by_join(manifest) else None
    if found is None:
        return
    yield from _plan_link(found)
    for name in (AGENT_KEY, AGENT_CERTIFICATE, CA_FILE):
        if machine.read(f"{TUNNEL_PKI_DIR}/{name}") is not None:
            yield Step(RemoveFile(path=f"{TUNNEL_PKI_DIR}/{name}"), _CAUSE)
    yield Step(RemoveFolder(path=TUNNEL_PKI_DIR), "if nothing else is in it")
    if is_unit:
        yield Step(RemoveFile(path=UNIT_FILE), _CAUSE)
        if machine.has_service_manager():
            forget = ControlUnitFile(service=AGENT, verb="forget")
            yield Step(forget, "the service manager has read the file that has gone")


def _plan_link(text: bytes) -> Iterator[Step]:
    """Plan to take away the address that the unit or the pod gives to the node."""
    address, link = _ADDRESS.search(text), _LINK.search(text)
    if address and link:
        action = ControlLink(address=address[1].decode(), link=link[1].decode(), verb="remove")
        yield Step(action, _CAUSE)
