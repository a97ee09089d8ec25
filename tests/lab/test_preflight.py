from pathlib import Path

import pytest

from garboard.errors import NotReady
from garboard.host import Machine
from garboard.host.processes import Finished
from garboard.lab.preflight import MissingRequirement, Preflight, inotify_instances, render_table


class BareMachine(Machine):
    """A machine without containerd, whose kernel refuses everything that is tried."""

    def find_program(self, name: str) -> Path | None:
        return None if name in {"containerd", "ctr"} else Path("/usr/bin") / name

    def run(self, *_: object, **__: object) -> Finished:
        return Finished(1, "", "refused")


class StubbornMachine(BareMachine):
    def find_program(self, name: str) -> Path | None:
        return Path("/usr/bin") / name


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)


def test_missing_programs_are_named_with_their_package(tmp_path: Path) -> None:
    missing = Preflight(BareMachine(), tmp_path, nodes=1).run()
    assert [(each.what, each.remedy) for each in missing] == [
        ("program containerd", "apt-get install containerd"),
        ("program ctr", "apt-get install containerd"),
    ]


def test_without_root_that_is_what_the_table_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    missing = Preflight(StubbornMachine(), tmp_path, nodes=1).run()
    assert [each.what for each in missing] == ["root"]


def test_what_the_kernel_refuses_is_named(tmp_path: Path) -> None:
    found = {each.what for each in Preflight(StubbornMachine(), tmp_path, nodes=1).run()}
    assert {f"overlayfs over {tmp_path}", "bridge links", "veth links"} <= found


def test_too_many_nodes_for_memory_and_disk_are_named(tmp_path: Path) -> None:
    found = [each.what for each in Preflight(StubbornMachine(), tmp_path, nodes=10**6).run()]
    assert any("of memory" in what for what in found)
    assert any("of disk" in what for what in found)


def test_a_machine_that_is_not_ready_changes_nothing_and_has_its_own_status(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(NotReady, match="nothing was changed") as raised:
        Preflight(BareMachine(), home, nodes=1).require()
    assert raised.value.exit_code == 4
    assert not home.exists()


def test_the_kernels_lack_is_said_and_iptables_take_over(tmp_path: Path) -> None:
    mode = Preflight(StubbornMachine(), tmp_path, nodes=1).proxy_mode()
    assert mode.mode == "iptables"
    assert mode.lacks == "the kernel's nftables lack numgen, fib, nat, verdict maps"


def test_the_table_lines_up() -> None:
    table = render_table(
        [
            MissingRequirement("program ctr", "not on PATH", "apt-get install containerd"),
            MissingRequirement("a", "b", "c"),
        ]
    )
    assert table.splitlines() == [
        "  needed       found        how to get it",
        "  program ctr  not on PATH  apt-get install containerd",
        "  a            b            c",
    ]


def test_more_nodes_need_more_inotify_instances() -> None:
    assert inotify_instances(4) - inotify_instances(3) >= 20
