"""What does not begin while a change waits to be confirmed."""

from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.node import change_guard
from garboard.node.change_guard import refuse_armed
from garboard.node.workflow import LocalNode
from tests.support.node.reporters import MemoryReporter


def test_armed_node_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_guard, "ARMED", str(tmp_path / "armed.json"))
    monkeypatch.setattr("garboard.node.workflow.can_journal", lambda: True)
    node = LocalNode(NodeMachine(None), MemoryReporter())
    node.refuse_open_run()
    (tmp_path / "armed.json").write_text("{}")
    with pytest.raises(GarboardError, match="waits to be confirmed") as caught:
        node.refuse_open_run()
    assert caught.value.exit_code == 15
    with pytest.raises(GarboardError):
        refuse_armed(node.machine)
