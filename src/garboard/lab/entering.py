"""The command that runs a program inside a node. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A process writes 0 into cgroup.procs to move itself; then it enters the node's namespaces and becomes the program.
JOIN_GROUPS = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'


def enter_command(
    pid: int, groups: Iterable[Path], command: Sequence[str], *, env: Mapping[str, str] | None = None
) -> list[str]:
    """Return what runs `command` in the namespaces of the process `pid` and in the given control groups."""
    variables = {"PATH": NODE_PATH, "HOME": "/root", "LANG": "C.UTF-8", **(env or {})}
    return [
        "/bin/sh", "-c", JOIN_GROUPS, "join-groups", *map(str, groups), "--",
        "nsenter", "--target", str(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
        "--wdns=/", "--", "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command,
    ]  # fmt: skip
