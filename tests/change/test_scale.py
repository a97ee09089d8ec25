"""Planning for 303 nodes stays cheap; `make benchmark-change` measures it on a quiet machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

from garboard.change.snapshot import snapshot_text
from tests.support.change.snapshots import f2
from tools.harness.processes import peak_bytes

MIB = 2**20
GARBOARD = Path(sys.executable).with_name("garboard")


def test_a_plan_for_303_nodes_takes_little_time_and_memory(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(snapshot_text(f2(workers=tuple(f"w{number}" for number in range(300)), is_seen=True)))
    command: list[str | Path] = [
        GARBOARD,
        "change",
        "plan",
        "--observed",
        snapshot,
        "--set",
        "KubeletConfiguration:maxPods=250",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    # What wait4 says of its memory begins with that of the process which started it.
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        most = max(most, peak_bytes(process.pid))
        time.sleep(0.005)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 10
    # Processor time, because the machine may be busy with something else.
    assert usage.ru_utime + usage.ru_stime < 2
    assert 10 * MIB < most < 200 * MIB
