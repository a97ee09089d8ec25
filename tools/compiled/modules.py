"""Which modules are compiled, and how: from a copy of the sources, so that no extension shadows what is edited."""

import hashlib
import re
import subprocess
import sys
import sysconfig
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
SHARED = "garboard_tunnel"  # the name of the extension that holds the code of all of them
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
EXTENSIONS = frozenset(Path(f"{name}{_SUFFIX}") for name in (f"{SHARED}__mypyc", *(f"garboard/{each}" for each in HOT)))
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


def digest(source: Path) -> str:
    """Return the digest of all that the extensions are made from: sources, what they import, this tool, and Python."""
    found = hashlib.sha256(f"{mypy.version.__version__} {sysconfig.get_config_var('SOABI')}".encode())
    packages = (path for name in _IMPORTED for path in (source / "garboard" / name).rglob("*.py"))
    for path in (*sorted(packages), *sorted((source / "garboard").glob("*.py"))):
        found.update(f"{path.relative_to(source)}\0".encode() + path.read_bytes() + b"\0")
    found.update(Path(__file__).read_bytes())
    return found.hexdigest()[:32]


def is_whole(folder: Path) -> bool:
    """Whether all extensions are below a folder, and no others."""
    return {path.relative_to(folder) for path in folder.rglob("*.so")} == EXTENSIONS


def compile_copy(folder: Path) -> None:
    """Compile the modules in a folder with a copy of the package and nothing else, and put the extensions there."""
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
    missing = sorted(str(path) for path in EXTENSIONS if not (folder / path).is_file())
    if missing:
        raise SystemExit(f"these extensions were not made: {', '.join(missing)}\n{done.stdout[-4000:]}")


def for_mypyc(text: str) -> str:
    """Return a module as mypyc can compile it.

    It looks for the types of the fields of a NamedTuple among the names of the module alone, unless it has a primitive
    for them, which it does not have for memoryview.
    """
    if "memoryview" not in text:
        return text
    return _DOCSTRING.sub(lambda found: f"{found[0]}from builtins import memoryview\n", text, count=1)
