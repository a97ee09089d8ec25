from datetime import UTC, datetime

import pytest

from garboard.lab.unit_files import BadUnitFile, Restart, TimerUnit, Unit, read_service, read_timer
from garboard.manifests.timers import TimedCommand, timer_files

AT = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)


def test_own_unit_files_are_understood() -> None:
    timed = TimedCommand(name="garboard-x", summary="100%", command=("/usr/bin/garboard", "undo", "--x=1"), at=AT)
    service, timer = (data.decode() for data in timer_files(timed).values())
    assert read_service("garboard-x", service) == Unit(
        "garboard-x", "exec /usr/bin/garboard undo --x=1\n", 0.1, Restart.NO, is_oneshot=True
    )
    assert read_timer("garboard-x", timer) == TimerUnit(
        "garboard-x", "garboard-x", AT.timestamp(), is_persistent=True, wanted_by=("timers.target",)
    )


def test_own_repeated_timer_is_understood() -> None:
    timed = TimedCommand(name="garboard-x", summary="x", command=("/bin/x",), at=AT, every_s=15, spread_s=5)
    _, timer = (data.decode() for data in timer_files(timed).values())
    read = read_timer("garboard-x", timer)
    assert (read.at_s, read.after_s, read.again_s) == (AT.timestamp(), 15.0, 15.0)


def test_service_is_read_with_what_the_lab_knows() -> None:
    text = """
; a comment
[Service]
Environment="A=b c" D=e
ExecStart=/bin/cleared
ExecStart=
ExecStart=/bin/echo 100%% "a b" \\
    $$HOME
Restart=on-failure
RestartSec=1min 30.5s
Nice=5
[Install]
WantedBy=multi-user.target other.target
"""
    unit = read_service("x", text)
    assert unit.script == "export 'A=b c'\nexport D=e\nexec /bin/echo 100% 'a b' '$HOME'\n"
    assert (unit.restart, unit.restart_after_s) == (Restart.ON_FAILURE, 90.5)
    assert unit.wanted_by == ("multi-user.target", "other.target")
    several = read_service("x", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/a\nExecStart=/bin/b c\n")
    assert several.script == "/bin/a || exit\nexec /bin/b c\n"
    assert several.remains


def test_commands_before_the_service_run_first_and_must_succeed() -> None:
    unit = read_service("x", "[Service]\nExecStartPre=/bin/a b\nExecStart=/bin/c\nRestart=always\n")
    assert unit.script == "/bin/a b || exit\nexec /bin/c\n"


@pytest.mark.parametrize(
    "service",
    [
        pytest.param("Type=forking\nExecStart=/bin/x", id="another type"),
        pytest.param("", id="no command"),
        pytest.param("ExecStart=/bin/x\nExecStart=/bin/y", id="two commands of a simple service"),
        pytest.param("ExecStart=x", id="no absolute path"),
        pytest.param("ExecStart=-/bin/x", id="a prefix"),
        pytest.param("ExecStart=/bin/x %n", id="a specifier"),
        pytest.param("ExecStart=/bin/x $HOME", id="a variable"),
        pytest.param("ExecStart=/bin/x ; /bin/y", id="two commands in a line"),
        pytest.param('ExecStart=/bin/x "', id="an open quote"),
        pytest.param("ExecStart=/bin/x\nRestart=on-abort", id="another restart"),
        pytest.param("Type=oneshot\nExecStart=/bin/x\nRestart=always", id="a oneshot service for ever"),
        pytest.param("ExecStart=/bin/x\nRestartSec=soon", id="no span"),
        pytest.param("ExecStart=/bin/x\nRestartSec=1 week", id="a long span"),
    ],
)
def test_service_that_would_do_something_else_is_refused(service: str) -> None:
    with pytest.raises(BadUnitFile):
        read_service("x", f"[Service]\n{service}\n")


@pytest.mark.parametrize(
    "timer",
    [
        pytest.param("", id="never"),
        pytest.param("OnCalendar=daily", id="every day"),
        pytest.param("OnCalendar=2031-05-04 03:02:01 Europe/Berlin", id="another zone"),
        pytest.param("OnCalendar=2031-05-04 03:02:01 UTC\nOnBootSec=5", id="since the start"),
        pytest.param("OnCalendar=2031-05-04 03:02:01 UTC\nOnCalendar=2032-05-04 03:02:01 UTC", id="twice"),
        pytest.param("OnActiveSec=5\nOnActiveSec=9", id="twice since it was started"),
        pytest.param("OnCalendar=daily\nOnActiveSec=5", id="every day, too"),
    ],
)
def test_timer_that_would_fire_at_another_time_is_refused(timer: str) -> None:
    with pytest.raises(BadUnitFile):
        read_timer("x", f"[Timer]\n{timer}\n")


def test_timer_fires_once_and_not_for_a_moment_before_it_was_started() -> None:
    timer = TimerUnit("x", "x", 100.0)
    assert not timer.is_due(base_s=50, now_s=99.9)
    assert timer.is_due(base_s=50, now_s=100)
    assert timer.is_due(base_s=50, now_s=5000)
    assert not timer.is_due(base_s=100, now_s=5000)
    assert not timer.is_due(base_s=101, now_s=5000)
