"""A scratch machine for kubeadm and garboard: a folder as its root, in namespaces of its own.

Programs run in a mount, UTS and network namespace with the folder as their root. `/etc`, `/var` and the rest of what
they write are plain files of the test; of the real machine they see programs and libraries, read-only.
"""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import garboard

HOSTNAME = "node-1"
ADDRESS, ADDRESS_V6 = "192.0.2.10", "fd00::10"
TOKEN = "abcdef.0123456789abcdef"
_SHARED = ("bin", "lib", "lib64", "sbin", "usr")
_MOUNTS = f"""
set -eu
root=$1; shift
mount --make-rprivate /
while [ "$1" != -- ]; do
  mkdir -p "$root$1"
  mount --bind "$1" "$root$1"
  mount -o remount,bind,ro "$root$1"
  shift
done
shift
for each in proc dev; do mkdir -p "$root/$each"; mount --rbind /$each "$root/$each"; done
echo {HOSTNAME} > /proc/sys/kernel/hostname
"""
_NETWORK = f"""
ip link set lo up
ip link add eth0 type veth peer name eth1
ip address add {ADDRESS}/24 dev eth0
ip address add {ADDRESS_V6}/64 dev eth0 nodad
for family in ipv4 ipv6; do
  # Nobody answers here, and nothing should wait for that.
  echo 1 > /proc/sys/net/$family/neigh/eth0/mcast_solicit
  echo 10 > /proc/sys/net/$family/neigh/eth0/retrans_time_ms
done
ip link set eth0 up
ip link set eth1 up
ip route add default via 192.0.2.1
ip route add default via fd00::1 dev eth0
"""
_CHANGE_ROOT = 'exec chroot "$root" "$@"'
_SYSTEMCTL = """#!/bin/sh
[ "$*" = "is-active systemd-resolved" ] && echo active && exit 0
echo inactive
exit 3
"""
_USERS = "root:x:0:0:root:/root:/bin/sh\nsomebody:x:100:100::/:/bin/false\n"
_GROUPS = "root:x:0:\nsomebody:x:100:\n"


@dataclass(frozen=True)
class FileState:
    mode: int
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Machine:
    """A root folder with the little that programs expect of one."""

    root: Path
    network: str = ""  # the file of the network namespace to be in; empty for a new one each time

    @classmethod
    def make(cls, root: Path, *, has_systemd_resolved: bool = False, directories: Iterable[str] = ()) -> "Machine":
        for name in ("etc/ssl/certs", "var/lib", "run", "tmp", *(path.lstrip("/") for path in directories)):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "etc/passwd").write_text(_USERS)
        (root / "etc/group").write_text(_GROUPS)
        if has_systemd_resolved:
            (root / "programs").mkdir()
            (root / "programs/systemctl").write_text(_SYSTEMCTL)
            (root / "programs/systemctl").chmod(0o755)
        return cls(root)

    def run(
        self,
        program: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        folders: Iterable[Path] = (),
        timeout_s: float = 120,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a program with this machine around it; no service manager is found unless one was asked for.

        `folders` are those of the real machine that the program needs besides its own.
        """
        return subprocess.run(
            [*self._around(program, folders), *_assignments(environment), str(program), *arguments],
            input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False, umask=0o022,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip

    def start(self, program: Path, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a program that stays; its process id is that of the program itself."""
        with log.open("wb") as output:
            return subprocess.Popen(
                [*self._around(program), str(program), *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, umask=0o022, env={"PATH": os.environ["PATH"]},
            )  # fmt: skip

    def in_network_of(self, process: subprocess.Popen[bytes]) -> "Machine":
        """Return the machine in the network of a program that runs on it, instead of a new one for each program."""
        return replace(self, network=f"/proc/{process.pid}/ns/net")

    def _around(self, program: Path, folders: Iterable[Path] = ()) -> list[str]:
        """Return the command that a program's own command follows."""
        seen = [str(each) for each in (program.parent, *folders) if each.parts[1] not in _SHARED]
        for entry in (Path("/", name) for name in _SHARED):
            if entry.is_symlink() and not (self.root / entry.name).is_symlink():
                (self.root / entry.name).symlink_to(entry.readlink())
            elif entry.is_dir() and not entry.is_symlink():
                seen.append(str(entry))
        enter = ["nsenter", f"--net={self.network}", "unshare"] if self.network else ["unshare", "--net"]
        script = _MOUNTS + ("" if self.network else _NETWORK) + _CHANGE_ROOT
        command = [*enter, "--mount", "--uts", "sh", "-c", script, "sh", str(self.root), *seen, "--"]
        return [*command, "/usr/bin/env", "-i", "PATH=/programs"]

    def run_garboard(
        self, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run the garboard of this checkout."""
        folders = (Path(sys.prefix), Path(sys.base_prefix), Path(garboard.__file__).parents[1])
        program = Path(sys.prefix, "bin/garboard")
        return self.run(program, *arguments, environment=environment, folders=folders, stdin=stdin)

    def put(self, path: str, content: str | bytes) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def text(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text()

    def put_tree(self, path: str, source: Path) -> None:
        shutil.copytree(source, self.root / path.lstrip("/"))

    def remove(self, path: str) -> None:
        (self.root / path.lstrip("/")).unlink()

    def has(self, path: str) -> bool:
        """Whether a program on this machine would see the path."""
        is_shared = path.lstrip("/").partition("/")[0] in _SHARED
        return (Path(path) if is_shared else self.root / path.lstrip("/")).exists()

    def files(self, *folders: str) -> dict[str, FileState]:
        """Return every file below the folders, by its path on this machine; garboard's journal is its own affair."""
        found = {}
        for folder in folders:
            for each in sorted((self.root / folder.lstrip("/")).rglob("*")):
                if each.is_file() and not each.is_relative_to(self.root / "var/lib/garboard"):
                    mode = stat.S_IMODE(each.stat().st_mode)
                    found["/" + str(each.relative_to(self.root))] = FileState(mode, each.read_bytes())
        return found

    def mode(self, path: str) -> int:
        return stat.S_IMODE((self.root / path.lstrip("/")).stat().st_mode)


def _assignments(environment: Mapping[str, str] | None) -> list[str]:
    return [f"{name}={value}" for name, value in (environment or {}).items()]
