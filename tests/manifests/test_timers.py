import shutil
import subprocess
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.manifests.timers import TimedCommand, calendar_time, timer_files, unit_paths

AT = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)
REVERT = TimedCommand(
    name="garboard-revert",
    summary="take the change back: 100% of it",
    command=("/usr/bin/env", "garboard", "undo", "--timings=json"),
    at=AT,
)


def changed(**members: object) -> TimedCommand:
    named = {"name": REVERT.name, "summary": REVERT.summary, "command": REVERT.command, "at": REVERT.at}
    return TimedCommand(**{**named, **members})  # type: ignore[arg-type]  # tests give wrong ones on purpose


REPEATED = changed(at=None, every_s=60, spread_s=10)


def test_service_runs_once_and_the_timer_starts_it_also_later() -> None:
    service, timer = (data.decode() for data in timer_files(REVERT).values())
    assert tuple(timer_files(REVERT)) == unit_paths("garboard-revert")
    assert service == (
        "# Written by garboard, and removed when it is no longer needed.\n"
        "[Unit]\nDescription=take the change back: 100%% of it\n"
        "After=network-online.target\nWants=network-online.target\n\n"
        "[Service]\nType=oneshot\nExecStart=/usr/bin/env garboard undo --timings=json\n"
    )
    assert timer == (
        "# Written by garboard, and removed when it is no longer needed.\n"
        "[Unit]\nDescription=When to: take the change back: 100%% of it\n\n"
        "[Timer]\nOnCalendar=2031-05-04 03:02:01 UTC\nPersistent=true\nAccuracySec=1s\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )


def test_repeated_command_runs_again_after_it_has_ended_whatever_the_clock_says() -> None:
    _, timer = (data.decode() for data in timer_files(REPEATED).values())
    assert "[Timer]\nOnActiveSec=60\nOnUnitInactiveSec=60\nRandomizedDelaySec=10\nAccuracySec=1s\n" in timer
    _, both = (data.decode() for data in timer_files(changed(every_s=15)).values())
    assert "OnCalendar=2031-05-04 03:02:01 UTC\nPersistent=true\nOnActiveSec=15\nOnUnitInactiveSec=15\n" in both


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)),
    st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_timer_is_never_early_and_less_than_a_second_late(moment: datetime, zone: timezone) -> None:
    asked = moment.replace(tzinfo=zone)
    written = datetime.strptime(calendar_time(asked), "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    assert timedelta(0) <= written - asked < timedelta(seconds=1)


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"name": "kubelet"}, id="a unit that is not ours"),
        pytest.param({"name": "garboard-../x"}, id="a path"),
        pytest.param({"command": ("garboard", "undo")}, id="a program without its path"),
        pytest.param({"command": ("/usr/bin/garboard", "a b")}, id="a word with a space"),
        pytest.param({"command": ("/usr/bin/garboard", "%n")}, id="a specifier"),
        pytest.param({"command": ("/usr/bin/garboard", "$HOME")}, id="a variable"),
        pytest.param({"command": ("/usr/bin/garboard", ";")}, id="another command"),
        pytest.param({"command": ()}, id="nothing"),
        pytest.param({"summary": "one\nExecStart=/bin/sh"}, id="another line"),
        pytest.param({"summary": "it goes on\\"}, id="a line that goes on"),
        pytest.param({"at": AT.replace(tzinfo=None)}, id="no time zone"),
        pytest.param({"at": None}, id="never"),
    ],
)
def test_what_a_unit_file_would_read_otherwise_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        timer_files(changed(**members))


@pytest.mark.real
@pytest.mark.parametrize("timed", [REVERT, REPEATED, changed(every_s=15)], ids=["a moment", "repeated", "both"])
def test_systemd_accepts_what_is_written(tmp_path: Path, timed: TimedCommand) -> None:
    """It reads unit files without running; what it does not know is a warning that names the file."""
    analyze = shutil.which("systemd-analyze")
    assert analyze, "systemd-analyze is missing: install the Debian package systemd"
    files = [tmp_path / Path(path).name for path in timer_files(timed)]
    for file, data in zip(files, timer_files(timed).values(), strict=True):
        file.write_bytes(data)
    said = subprocess.run([analyze, "verify", *files], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert [line for line in said.stderr.splitlines() if "garboard-revert" in line] == []
    files[1].write_text(files[1].read_text().replace("AccuracySec", "AccuracySac"))
    said = subprocess.run([analyze, "verify", *files], capture_output=True, text=True, check=False)
    assert "AccuracySac" in said.stderr, "it warns of nothing"


@pytest.mark.real
def test_systemd_reads_the_same_moment() -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze, "systemd-analyze is missing: install the Debian package systemd"
    asked = AT.replace(microsecond=1).astimezone(timezone(timedelta(hours=5, minutes=45)))
    said = subprocess.run([analyze, "calendar", calendar_time(asked)], capture_output=True, text=True, check=True)
    assert "Next elapse: Sun 2031-05-04 03:02:02 UTC" in said.stdout
