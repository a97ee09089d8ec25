"""garboard itself, as this machine has it: one file that a Python runs, or an image with a Python in it.

Both hold what is installed here, compiled modules included, so they are for machines of this architecture, the one
file also for this minor release of Python.
"""

import hashlib
import importlib.metadata
import io
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from garboard.lab.images import ImageDefinition
from garboard.lab.imageset import add_programs
from garboard.lab.machine import MAX_PROGRAM_BYTES, LabFilesystem, LabMachine

COMPILE_WITHIN_S: Final = 300.0
SITE: Final = "/opt/garboard"
OPTIONAL: Final = ("uvloop",)  # taken along where it is installed
# Parts of Python's own library that nothing here imports, and that are large.
_LEFT_OUT: Final = frozenset({"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "distutils",
                              "site-packages", "__pycache__", "pydoc_data", "unittest", "venv"})  # fmt: skip
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)  # the same files give the same bytes

# Modules written in C cannot be imported out of an archive: it unpacks itself once, where only its user can write.
_MAIN: Final = '''\
"""Unpacks this archive into a folder of its own, once for each of its versions, and runs garboard from there."""

import os
import shutil
import sys
import tempfile
import zipfile

KEY = "{key}"


def unpacked() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    other = os.path.join(tempfile.gettempdir(), f"garboard-{{os.getuid()}}")
    for place in (os.path.join(home, "garboard", "zipapp"), other):
        try:
            os.makedirs(place, mode=0o700, exist_ok=True)
            found = os.stat(place)
            if found.st_uid == os.getuid() and not found.st_mode & 0o022:
                return unpack_in(place)
        except OSError:
            continue
    raise SystemExit("error: there is no folder to unpack to; set XDG_CACHE_HOME")


def unpack_in(place: str) -> str:
    ready = os.path.join(place, KEY)
    if not os.path.isdir(ready):
        incoming = tempfile.mkdtemp(dir=place)
        with zipfile.ZipFile(os.path.dirname(os.path.abspath(__file__))) as archive:
            archive.extractall(incoming)
        try:
            os.rename(incoming, ready)
        except OSError:
            shutil.rmtree(incoming, ignore_errors=True)  # another start was quicker
    return ready


sys.path.insert(0, unpacked())

from garboard.cli.main import main

main()
'''


def write_zipapp(into: Path, machine: LabFilesystem) -> None:
    """Write garboard and what it needs as one file; `python FILE tunnel agent …` runs it, and so does FILE itself."""
    files = {name: machine.read_file(path, limit=MAX_PROGRAM_BYTES) for name, path in sorted(site_files().items())}
    digests = [(name, hashlib.sha256(data).hexdigest()) for name, data in files.items()]
    key = hashlib.sha256(repr(digests).encode()).hexdigest()[:16]
    content = io.BytesIO()
    content.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _MOMENT), _MAIN.format(key=key))
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    machine.write_in_place(into, content.getvalue(), mode=0o755)


def garboard_image(name: str, staging: Path, machine: LabMachine) -> ImageDefinition:
    """Describe an image that runs garboard; `staging` is an empty folder for what is compiled for it."""
    for inside, path in {**_library(), **{f"{SITE}/{each}": path for each, path in site_files().items()}}.items():
        target = staging / inside.lstrip("/")
        machine.make_folder(target.parent)
        machine.copy_file(path, target, mode=0o644)
    # Files of an image have no time that a compiled module could be compared with.
    mode = ["--invalidation-mode", "unchecked-hash"]
    machine.run([sys.executable, "-m", "compileall", "-q", *mode, staging], check=False, timeout_s=COMPILE_WITHIN_S)
    files = {f"/{path.relative_to(staging)}": path for path in staging.rglob("*") if path.is_file()}
    links: dict[str, str] = {}
    python = Path(sys.executable).resolve()
    compiled = [path for path in files.values() if re.search(r"\.so(\.|$)", path.name)]
    libraries: dict[str, Path] = {}
    ip = machine.find_program("ip")  # `tunnel link` calls it
    add_programs(libraries, links, [python, *compiled, *([ip] if ip else [])], machine)
    files.update({inside: path for inside, path in libraries.items() if not path.is_relative_to(staging.resolve())})
    run = (str(python), "-c", f"import sys; sys.path.insert(0, {SITE!r}); from garboard.cli.main import main; main()")
    return ImageDefinition(name, files, run, links, folders=("tmp", "run", "etc"))


def site_files() -> dict[str, Path]:
    """The modules of garboard and of everything that it depends on, by their path in a folder of modules."""
    files: dict[str, Path] = {}
    for name in _closure("garboard"):
        for file in importlib.metadata.files(name) or ():
            if file.parts[0] != ".." and ".dist-info" not in file.parts[0] and "__pycache__" not in file.parts:
                files[str(file)] = Path(str(file.locate()))
    package = Path(__file__).parents[1]
    files.update({f"garboard/{each.relative_to(package)}": each for each in _files_below(package)})
    return {name: path for name, path in files.items() if path.is_file() and not name.endswith(".pth")}


def _closure(name: str) -> Sequence[str]:
    """The distributions that one needs here, itself included."""
    found: dict[str, None] = {}
    waiting = [name, *OPTIONAL]
    while waiting:
        each = waiting.pop()
        try:
            wanted = importlib.metadata.requires(each) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for other systems or releases of Python
        found[each] = None
        names = [re.split(r"[ ;<>=!~\[(]", text)[0] for text in wanted if "extra ==" not in text]
        waiting += [new for new in names if new not in found]
    return list(found)


def _library() -> Mapping[str, Path]:
    """Python's own library, where this Python looks for it."""
    folder = Path(sysconfig.get_path("stdlib")).resolve()
    return {str(path): path for path in _files_below(folder)}


def _files_below(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name not in _LEFT_OUT and not entry.name.startswith("config-"):
                yield from _files_below(entry)
        elif entry.suffix not in (".pyc", ".a"):
            yield entry
