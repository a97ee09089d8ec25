"""Which modules are compiled, and how: from a copy of the sources, so that no extension shadows what is edited."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import mypy.version

# What a connection or a packet goes through. What is left out is called once for a process or a stream.
HOT = (
    "rpc/aio/link", "rpc/calls", "rpc/connection", "rpc/endpoint", "rpc/events", "rpc/frames", "rpc/headers",
    "rpc/http_endpoint", "rpc/keepalive", "rpc/limits", "rpc/link", "rpc/message", "rpc/messages", "rpc/metadata",
    "rpc/outbox", "rpc/receiver", "rpc/settings", "rpc/status", "rpc/streams", "rpc/violations", "rpc/wire",
    "tunnel/channel", "tunnel/metrics",
    "tunnel/agent/listeners", "tunnel/agent/server_stream", "tunnel/agent/servers",
    "tunnel/dialer/dialer", "tunnel/dialer/dialling", "tunnel/dialer/protocol", "tunnel/dialer/states",
    "tunnel/frontend/effects", "tunnel/frontend/probe", "tunnel/frontend/protocol", "tunnel/frontend/socket_frontend",
    "tunnel/frontend/states", "tunnel/frontend/tunnels",
    "tunnel/server/agent_stream", "tunnel/server/cluster", "tunnel/server/grpc_port", "tunnel/server/http_frontend",
    "tunnel/server/proxy", "tunnel/server/routing",
    "tunnel/wire/capabilities", "tunnel/wire/flow", "tunnel/wire/packets", "tunnel/wire/pipes", "tunnel/wire/sockets",
)  # fmt: skip
_IMPORTED = ("rpc", "tunnel", "net", "model", "documents")  # by the modules above, and by each other
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "garboard/compiled")
SHARED = "garboard_tunnel"  # the name of the extension that holds the code of all of them
_MYPY = "[mypy]\nexplicit_package_bases = true\nnamespace_packages = true\nfollow_imports = silent\n"
_SETUP = """\
from mypyc.build import mypycify
from setuptools import setup
modules = [path for path in open("modules.txt").read().split()]
setup(
    name="garboard", packages=[], script_args=["build_ext", "--inplace"],
    ext_modules=mypycify(["--config-file=mypy.ini", *modules], opt_level="3", debug_level="0", group_name=%r),
)
"""
_DOCSTRING = re.compile(r'\A""".*?"""\n', re.DOTALL)


def extensions(source: Path) -> Path:
    """Return a folder with the extensions of the package below `source`, compiled once and kept in the cache."""
    kept = _CACHE / _digest(source)
    if not kept.is_dir():
        print("compiling the tunnel (minutes)", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="garboard-compiled-") as folder:
            made = _compile(source, Path(folder))
            shutil.rmtree(_CACHE, ignore_errors=True)
            new = kept.with_suffix(f".{os.getpid()}")
            for path in made:
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(folder, path), new / path)
            new.rename(kept)
    return kept


def _digest(source: Path) -> str:
    """Return the digest of all that the extensions are made from: sources, what they import, this tool, and Python."""
    found = hashlib.sha256(f"{mypy.version.__version__} {sysconfig.get_config_var('SOABI')}".encode())
    packages = (path for name in _IMPORTED for path in (source / "garboard" / name).rglob("*.py"))
    for path in (*sorted(packages), *sorted((source / "garboard").glob("*.py")), Path(__file__)):
        found.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:32]


def _compile(source: Path, folder: Path) -> tuple[Path, ...]:
    """Compile the modules in an empty folder; return the extensions, relative to it."""
    shutil.copytree(source / "garboard", folder / "garboard", ignore=shutil.ignore_patterns("__pycache__"))
    paths = [f"garboard/{name}.py" for name in HOT]
    for path in paths:
        text = (folder / path).read_text()
        (folder / path).write_text(for_mypyc(text))
    (folder / "mypy.ini").write_text(_MYPY)
    (folder / "modules.txt").write_text("\n".join(paths))
    (folder / "setup.py").write_text(_SETUP % SHARED)
    done = subprocess.run(
        [sys.executable, "setup.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"the tunnel's modules cannot be compiled:\n{done.stdout[-4000:]}")
    made = sorted(path.relative_to(folder) for path in folder.rglob("*.so") if "build" not in path.parts)
    expected = len(HOT) + 1
    if len(made) != expected:
        raise SystemExit(f"{len(made)} extensions were made, and {expected} are needed:\n{done.stdout[-4000:]}")
    return tuple(made)


def for_mypyc(text: str) -> str:
    """Return a module as mypyc can compile it.

    It looks for the types of the fields of a NamedTuple among the names of the module alone, unless it has a primitive
    for them, which it does not have for memoryview.
    """
    if "memoryview" not in text:
        return text
    return _DOCSTRING.sub(lambda found: f"{found[0]}from builtins import memoryview\n", text, count=1)
