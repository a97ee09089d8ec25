from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.service_manager import service_manager

_PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> LOG
case "$*" in
  *kubelet*) echo "STATE" ;;
  *broken*) echo no such service >&2; exit 5 ;;
esac
"""


def install(folder: Path, state: str, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(_PROGRAM.replace("LOG", str(folder / "log")).replace("STATE", state))
        (folder / name).chmod(0o755)
    return folder / "log"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("garboard.host.processes._on_path", lambda name, path=None: _which(tmp_path, name))
    return tmp_path


def _which(folder: Path, name: str) -> str | None:
    return str(folder / name) if (folder / name).exists() else None


def test_systemd_reloads_units_before_a_start(folder: Path) -> None:
    log = install(folder, "active", "systemctl")
    manager = service_manager()
    assert manager is not None
    manager.stop("kubelet")
    manager.start("kubelet")
    assert log.read_text().splitlines() == [
        "systemctl stop kubelet", "systemctl daemon-reload", "systemctl restart kubelet"
    ]  # fmt: skip


@pytest.mark.parametrize(("state", "is_active"), [("active", True), ("activating", True), ("inactive", False)])
def test_service_that_will_soon_run_counts_as_active(folder: Path, state: str, is_active: bool) -> None:
    install(folder, state, "systemctl")
    manager = service_manager()
    assert manager is not None
    assert manager.is_active("kubelet") is is_active


def test_openrc_is_found_where_there_is_no_systemd(folder: Path) -> None:
    log = install(folder, "started", "rc-service", "rc-update")
    manager = service_manager()
    assert manager is not None
    assert manager.is_active("kubelet")
    manager.restart("kubelet")
    assert log.read_text().splitlines()[-1] == "rc-service kubelet restart"


def test_failure_carries_what_the_manager_said(folder: Path) -> None:
    install(folder, "active", "systemctl")
    manager = service_manager()
    assert manager is not None
    with pytest.raises(GarboardError, match="no such service"):
        manager.start("broken")


def test_machine_may_have_no_service_manager(folder: Path) -> None:
    install(folder, "started", "rc-service")
    assert service_manager() is None


def test_the_end_of_a_service_s_log_is_shown_where_there_is_a_journal(folder: Path) -> None:
    install(folder, "active", "systemctl")
    manager = service_manager()
    assert manager is not None
    assert manager.log("kubelet", 5) == []
    install(folder, "first\nsecond\nthird", "journalctl")
    assert manager.log("kubelet", 2) == ["second", "third"]
    assert manager.state("nobody") == "unknown"


def test_timer_is_enabled_with_its_newest_files_and_disabled_if_it_is_there(folder: Path) -> None:
    log = install(folder, "active", "systemctl")
    manager = service_manager()
    assert manager is not None
    manager.enable_timer("garboard-revert")
    assert manager.is_timer_enabled("garboard-revert")
    manager.disable_timer("garboard-revert")
    manager.forget_timer("garboard-revert")
    assert log.read_text().splitlines() == [
        "systemctl daemon-reload",
        "systemctl enable garboard-revert.timer",
        "systemctl restart garboard-revert.timer",
        "systemctl is-enabled garboard-revert.timer",
        "systemctl status garboard-revert.timer",
        "systemctl disable --now garboard-revert.timer",
        "systemctl daemon-reload",
    ]
    (folder / "systemctl").write_text("#!/bin/sh\necho Unit garboard-x.timer could not be found. >&2; exit 4\n")
    manager.disable_timer("garboard-x")
    assert not manager.is_timer_enabled("garboard-x")


def test_service_is_enabled_with_its_newest_unit_file_and_disabled_if_it_is_there(folder: Path) -> None:
    log = install(folder, "active", "systemctl")
    manager = service_manager()
    assert manager is not None
    manager.enable_service("konnectivity-agent")
    assert manager.is_service_enabled("konnectivity-agent")
    manager.disable_service("konnectivity-agent")
    manager.forget_service("konnectivity-agent")
    assert [line for line in log.read_text().splitlines() if "able" in line or "restart" in line] == [
        "systemctl enable konnectivity-agent.service",
        "systemctl restart konnectivity-agent.service",
        "systemctl is-enabled konnectivity-agent.service",
        "systemctl disable --now konnectivity-agent.service",
    ]


def test_service_manager_without_unit_files_says_so(folder: Path) -> None:
    install(folder, "started", "rc-service", "rc-update")
    manager = service_manager()
    assert manager is not None
    assert not manager.reads_unit_files
    assert not manager.is_service_enabled("konnectivity-agent")
    with pytest.raises(GarboardError, match="OpenRC reads no unit files") as caught:
        manager.enable_service("konnectivity-agent")
    assert caught.value.error_class == "no-unit-files"


def test_service_manager_without_timers_says_so(folder: Path) -> None:
    install(folder, "started", "rc-service", "rc-update")
    manager = service_manager()
    assert manager is not None
    assert not manager.is_timer_enabled("garboard-revert")
    with pytest.raises(GarboardError, match="OpenRC has no timers"):
        manager.enable_timer("garboard-revert")
