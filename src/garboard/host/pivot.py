"""The first process of a lab node: makes the mounts that stdin lists, changes to the new root and runs a program.

Run as `python -I -m garboard.host.pivot` in fresh namespaces, with a JSON document on stdin: `root`, `hostname`,
`steps` and the `command` to become. A line on stdout says that the node is ready.
"""

import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1000, 0x4000, 0x40000, 0x100000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "s390x": 217}
FLAGS = {"bind": MS_BIND, "rbind": MS_BIND | MS_REC, "proc": MS_NOSUID | MS_NODEV | MS_NOEXEC}

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Carry out the plan on stdin and become its command."""
    plan = json.load(sys.stdin)
    root = Path(plan["root"])
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(str(root), str(root), None, MS_BIND)
    for step in plan["steps"]:
        if step["do"] == "mount":
            _mount_step(root, step)
    enter_root(root)
    mount("none", "/", None, MS_REC | MS_SHARED)
    for step in plan["steps"]:
        if step["do"] == "write":
            Path(step["path"]).write_text(step["text"])
    socket.sethostname(plan["hostname"])
    for file in plan["groups"]:
        Path(file).write_text("0")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    os.execv(plan["command"][0], plan["command"])


def _mount_step(root: Path, step: dict[str, Any]) -> None:
    kind, target = step["kind"], str(root) + step["target"]
    if not Path(target).exists():
        Path(target).mkdir(parents=True)
    is_bind = kind in {"bind", "rbind"}
    mount(step["source"], target, None if is_bind else kind, FLAGS.get(kind, 0), step["options"] or None)
    if kind == "rbind":
        mount("none", target, None, MS_REC | MS_PRIVATE)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Call mount(2)."""
    encoded = [None if text is None else text.encode() for text in (source, target, kind, options)]
    if _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {kind or 'bind'} {options or ''}: {os.strerror(number)}", target)


def enter_root(root: Path) -> None:
    """Make `root` the root of this mount namespace and unmount the old one."""
    os.chdir(root)
    number = SYS_PIVOT_ROOT[os.uname().machine]
    if _libc.syscall(ctypes.c_long(number), b".", b".") != 0 or _libc.umount2(b".", MNT_DETACH) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"pivot_root: {os.strerror(error)}", str(root))
    os.chdir("/")


if __name__ == "__main__":
    main()
