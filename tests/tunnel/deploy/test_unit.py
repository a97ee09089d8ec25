"""The unit of systemd on a machine: its command for the link run as it stands, with kernels that have less and less."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tunnel.manifests import REVERSE, write_manifests

pytestmark = pytest.mark.real

ADDRESS = "10.255.0.1"
# What `ip` says where the kernel lacks a kind of link.
OLDER_IP = """#!/bin/sh
for word in "$@"; do
    for kind in {missing}; do
        if [ "$word" = "$kind" ]; then echo "Error: Unknown device type." >&2; exit 2; fi
    done
done
exec {ip} "$@"
"""


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    write_manifests(tmp_path, *REVERSE)
    return tmp_path / "node/konnectivity-agent.service"


def command_of(unit: Path, key: str) -> list[str]:
    """The command after the key, with this garboard in place of the installed one."""
    [line] = [line for line in unit.read_text().splitlines() if line.startswith(f"{key}=")]
    program, *arguments = shlex.split(line.partition("=")[2])
    assert program == "/usr/local/bin/garboard"
    return [sys.executable, "-m", "tests.support.tunnel.command", *arguments]


@pytest.fixture
def namespace() -> Iterator[str]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and the program ip for a network namespace")
    name = f"gu{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def has_kind(namespace: str, kind: str) -> bool:
    made = subprocess.run(
        ["ip", "-n", namespace, "link", "add", "probe0", "type", kind], capture_output=True, check=False
    )
    if made.returncode == 0:
        subprocess.run(["ip", "-n", namespace, "link", "del", "probe0"], check=True)
    return made.returncode == 0


@pytest.mark.parametrize(
    ("kind", "missing", "holder"),
    [("dummy", "", "konnectivity0"), ("bridge", "dummy", "konnectivity0"), ("loopback", "dummy bridge", "lo")],
)
def test_command_before_the_start_gives_the_node_its_address(
    unit: Path, namespace: str, tmp_path: Path, kind: str, missing: str, holder: str
) -> None:
    if kind != "loopback" and not has_kind(namespace, kind):
        pytest.skip(f"this kernel has no links of type {kind}")
    ip = shutil.which("ip")
    older = tmp_path / "bin" / "ip"
    older.parent.mkdir()
    older.write_text(OLDER_IP.format(missing=missing or "none-at-all", ip=ip))
    older.chmod(0o755)
    environment = {**os.environ, "PATH": f"{older.parent}:{os.environ['PATH']}"}
    command = ["ip", "netns", "exec", namespace, *command_of(unit, "ExecStartPre")]
    first = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert f"{ADDRESS} is on {holder} ({kind})" in first.stdout
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # units start again
    assert ADDRESS in again.stdout
    shown = subprocess.run(
        ["ip", "-n", namespace, "-j", "addr", "show", "dev", holder], capture_output=True, check=True
    )
    [link] = json.loads(shown.stdout)
    mine = [each for each in link["addr_info"] if each["local"] == ADDRESS]
    assert [(each["prefixlen"], each["scope"]) for each in mine] == [(32, "host")]
    listen = f"import socket; socket.create_server(({ADDRESS!r}, 7443))"
    subprocess.run(["ip", "netns", "exec", namespace, sys.executable, "-c", listen], check=True)


def test_systemd_finds_nothing_wrong_with_the_unit(unit: Path, tmp_path: Path) -> None:
    assert shutil.which("systemd-analyze"), "systemd-analyze is missing: install the Debian package systemd"
    program = tmp_path / "garboard"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/usr/local/bin/garboard", str(program)))  # it looks whether it is there
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
    mine = [line for line in (found.stdout + found.stderr).splitlines() if unit.name in line]
    assert (found.returncode, mine) == (0, []), found.stderr
