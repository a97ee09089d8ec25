from pathlib import Path

import pytest

from garboard.host import Machine
from garboard.lab.node_units import NodeUnitFolders


@pytest.fixture
def node(tmp_path: Path) -> NodeUnitFolders:
    """A node whose root is its writable layer, for a test has no overlay."""
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    return NodeUnitFolders(Machine(), tmp_path, tmp_path, lambda: 42.5)


def test_unit_is_enabled_by_a_link_until_it_is_disabled(node: NodeUnitFolders) -> None:
    (node.upper / "etc/systemd/system/x.timer").write_text("[Timer]\n")
    assert node.text("x.timer") == "[Timer]\n"
    assert not node.is_enabled("x.timer")
    for _ in range(2):
        node.enable("x.timer", ["timers.target"])
    link = node.upper / "etc/systemd/system/timers.target.wants/x.timer"
    assert link.readlink() == Path("/etc/systemd/system/x.timer")
    assert node.enabled() == ("x.timer",)
    for _ in range(2):
        node.disable("x.timer")
    assert node.enabled() == ()
    node.enable("x.timer", [])
    assert node.enabled() == ()


def test_link_to_a_unit_is_none_of_the_nodes_files(node: NodeUnitFolders) -> None:
    (node.upper / "etc/systemd/system/x.service").symlink_to("/dev/null")
    assert node.text("x.service") is None
    assert node.text("y.service") is None


def test_what_is_below_run_is_read_after_what_is_kept(node: NodeUnitFolders) -> None:
    transient = node.root / "run/systemd/transient"
    transient.mkdir(parents=True)
    (transient / "x.service").write_text("transient")
    assert node.text("x.service") == "transient"
    (node.upper / "etc/systemd/system/x.service").write_text("kept")
    assert node.text("x.service") == "kept"


def test_stamp_is_kept(node: NodeUnitFolders) -> None:
    assert node.fired_at_s("x.timer") is None
    node.note_fired("x.timer")
    assert node.fired_at_s("x.timer") == 42.5


def test_node_without_units_has_none_enabled(tmp_path: Path) -> None:
    assert NodeUnitFolders(Machine(), tmp_path / "upper", tmp_path / "root").enabled() == ()
