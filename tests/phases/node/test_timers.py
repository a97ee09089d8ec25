from datetime import UTC, datetime

from garboard.engine import ControlTimer, RemoveFile, WriteFile
from garboard.manifests.timers import TimedCommand
from garboard.phases.node.timers import plan_timer, plan_timer_removal

REVERT = TimedCommand(
    name="garboard-revert", summary="take it back", command=("/usr/bin/garboard", "undo"), at=datetime.now(UTC)
)


def test_timer_is_enabled_once_its_files_are_there() -> None:
    service, timer, last = (step.action for step in plan_timer(REVERT, "it is not confirmed yet"))
    assert isinstance(service, WriteFile)
    assert isinstance(timer, WriteFile)
    assert [service.path, timer.path] == [
        "/etc/systemd/system/garboard-revert.service", "/etc/systemd/system/garboard-revert.timer"
    ]  # fmt: skip
    assert last == ControlTimer(timer="garboard-revert", verb="enable")


def test_timer_is_disabled_while_its_files_are_still_there_and_forgotten_when_they_are_not() -> None:
    assert [step.action for step in plan_timer_removal("garboard-revert", "it is confirmed")] == [
        ControlTimer(timer="garboard-revert", verb="disable"),
        RemoveFile(path="/etc/systemd/system/garboard-revert.timer"),
        RemoveFile(path="/etc/systemd/system/garboard-revert.service"),
        ControlTimer(timer="garboard-revert", verb="forget"),
    ]
