"""Python code in mounts of its own, which end with it; and in a machine that it can change in one folder alone."""

import ctypes
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

_REPOSITORY = Path(__file__).parents[3]

# mount_setattr(2): every mount becomes read-only at once, and one of them writable again. What is to be shown is shown
# before the test's own code begins: access(2) tells of a read-only file system without trying to write.
_READ_ONLY = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
scratch = sys.argv[1]
def check(status):
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def set_attributes(path, flags, sets, clears):
    request = struct.pack("QQQQ", sets, clears, 0, 0)
    check(libc.syscall(ctypes.c_long(442), -100, os.fsencode(path), flags, request, ctypes.c_size_t(len(request))))
check(libc.mount(os.fsencode(scratch), os.fsencode(scratch), None, ctypes.c_ulong(0x1000), None))
set_attributes("/", 0x8000, 1, 0)
set_attributes(scratch, 0, 0, 1)
with open("/proc/self/mountinfo") as mounts:
    points = [line.split()[4] for line in mounts]
for point in {*points, "/", "/etc", "/usr/lib", "/var/lib", "/tmp", "/root", os.path.dirname(scratch)} - {scratch}:
    if os.path.lexists(point) and os.access(point, os.W_OK):
        sys.exit(f"{point} can be written to: the test's own code was not started")
assert os.access(scratch, os.W_OK), scratch
os.chdir(scratch)
sys.argv = sys.argv[1:]
"""


def in_own_mounts(code: str, *arguments: Path) -> None:
    """Run the code where it may mount what it likes; it fails if the code does."""
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr


def in_read_only_machine(code: str, scratch: Path, *arguments: str, timeout_s: float = 120) -> str:
    """Run the code where nothing but `scratch`, its first argument, can be written to; return what it prints.

    It has no network and no sockets of services either. It fails if the code does, or if anything else is writable.
    """
    hidden = 'mount -t tmpfs none /run && exec "$@"'
    command = [
        "unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--propagation", "private",
        "sh", "-c", hidden, "sh", sys.executable, "-c", _READ_ONLY + code, str(scratch.resolve()), *arguments,
    ]  # fmt: skip
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(scratch), "HOME": str(scratch),
        "PYTHONPATH": f"{_REPOSITORY}/src:{_REPOSITORY}", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def call_in_read_only_machine(function: Callable[[], object], scratch: Path) -> str:
    """Call the function in a child where nothing but `scratch` can be written to; return how it failed, if it did."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os._exit(_called(function, scratch, write))
    os.close(write)
    with os.fdopen(read, "rb") as told:
        text = told.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text or (f"it ended with {status}" if status else "")


def _called(function: Callable[[], object], scratch: Path, told: int) -> int:
    """Return the status of a child whose mounts are its own; what it raises is told to its parent."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        own_mounts, recursive_private = 0x20000, 0x44000  # CLONE_NEWNS; MS_REC and MS_PRIVATE
        assert libc.unshare(own_mounts) == 0
        assert libc.mount(None, b"/", None, ctypes.c_ulong(recursive_private), None) == 0
        before, folder = sys.argv, Path.cwd()
        sys.argv = ["", str(scratch.resolve())]
        exec(_READ_ONLY, {})
        sys.argv = before
        os.chdir(folder)
        function()
    except BaseException:  # noqa: BLE001
        os.write(told, traceback.format_exc().encode())
        return 1
    return 0
