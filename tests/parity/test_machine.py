"""The machine that programs are compared on keeps them away from the real one."""

from pathlib import Path

import pytest

from tools.harness.machine import ADDRESS, HOSTNAME, Machine

pytestmark = pytest.mark.real


def shell(machine: Machine, script: str) -> str:
    done = machine.run(Path("/bin/sh"), "-c", script)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_see_a_machine_of_their_own(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    assert shell(machine, "read name < /proc/sys/kernel/hostname; echo $name").strip() == HOSTNAME
    assert ADDRESS in shell(machine, "/usr/bin/env PATH=/usr/sbin:/sbin:/usr/bin:/bin ip address")
    shell(machine, "echo written > /etc/file; echo written > /srv-file")
    assert machine.text("/etc/file") == "written\n"
    assert not Path("/srv-file").exists()


def test_what_is_shared_with_the_real_machine_cannot_be_written(tmp_path: Path) -> None:
    done = Machine.make(tmp_path).run(Path("/bin/sh"), "-c", "echo x > /usr/garboard-was-here")
    assert "Read-only file system" in done.stderr
    assert not Path("/usr/garboard-was-here").exists()


def test_garboard_runs_on_it(tmp_path: Path) -> None:
    done = Machine.make(tmp_path).run_garboard("version")
    assert (done.returncode, done.stderr) == (0, "")
