"""Many command lines on one machine, entered once: what each said, and the files that each case left."""

import json
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import garboard
from tests.support.parity.random_documents import RandomCase
from tools.harness.machine import FileState, Machine

Lines = Sequence[Sequence[str]]
LEFT_BEHIND = ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd", "/srv")
_OURS = """
import contextlib, io, json, os, shutil, traceback
from pathlib import Path
from garboard.cli.main import run

for folder, lines in json.loads(Path("/batch.json").read_text()):
    shutil.copyfile(f"{folder}/kubeadm.yaml", "/kubeadm.yaml")
    shutil.copytree(f"{folder}/patches", "/patches")
    for number, line in enumerate(lines):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = run(line)
            except BaseException:
                status = 99
                traceback.print_exc()
        for name, text in (("out", out.getvalue()), ("err", err.getvalue()), ("status", str(status))):
            Path(f"{folder}/{number}.{name}").write_text(text)
    for path in LEFT_BEHIND:
        if os.path.exists(path):
            os.makedirs(f"{folder}/left{os.path.dirname(path)}", exist_ok=True)
            shutil.move(path, f"{folder}/left{path}")
    shutil.rmtree("/patches")
"""


@dataclass(frozen=True)
class Said:
    """The outcome of one command line."""

    status: int
    out: str
    err: str

    @property
    def is_success(self) -> bool:
        return self.status == 0


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    said: Sequence[Said]
    files: Mapping[str, FileState] = field(repr=False)


def run_kubeadm_batch(machine: Machine, kubeadm: Path, cases: Sequence[RandomCase], lines: Lines) -> list[Outcome]:
    """Let kubeadm run the lines for each case, with its configuration and patches in place."""
    folders = _prepare(machine, cases)
    script = "".join(_script(kubeadm, folder, lines) for folder in folders)
    machine.put("/batch.sh", f"PATH=/usr/bin:/bin\n{script}")
    _succeed(machine.run(Path("/bin/sh"), "/batch.sh", folders=[kubeadm.parent]))
    return [_outcome(machine, folder, len(lines)) for folder in folders]


def run_garboard_batch(machine: Machine, cases: Sequence[RandomCase], lines: Lines) -> list[Outcome]:
    """Let garboard do the same, in one process."""
    folders = _prepare(machine, cases)
    machine.put("/batch.json", json.dumps([[folder, lines] for folder in folders]))
    machine.put("/batch.py", _OURS.replace("LEFT_BEHIND", repr(LEFT_BEHIND)))
    needed = (Path(sys.prefix), Path(sys.base_prefix), Path(garboard.__file__).parents[1])
    _succeed(machine.run(Path(sys.prefix, "bin/python"), "/batch.py", folders=needed))
    return [_outcome(machine, folder, len(lines)) for folder in folders]


def _prepare(machine: Machine, cases: Sequence[RandomCase]) -> list[str]:
    folders = [f"/cases/{number}" for number in range(len(cases))]
    for folder, case in zip(folders, cases, strict=True):
        machine.put(f"{folder}/kubeadm.yaml", case.text)
        (machine.root / folder.lstrip("/") / "patches").mkdir()
        for name, text in case.patches.items():
            machine.put(f"{folder}/patches/{name}", text)
    return folders


def _script(kubeadm: Path, folder: str, lines: Lines) -> str:
    commands = [f"cp {folder}/kubeadm.yaml /kubeadm.yaml", f"cp -r {folder}/patches /patches"]
    for number, line in enumerate(lines):
        at = f"{folder}/{number}"
        commands.append(f"{kubeadm} {shlex.join(line)} >{at}.out 2>{at}.err; printf %s $? >{at}.status")
    for path in LEFT_BEHIND:
        target = f"{folder}/left{path}"
        commands.append(f"[ ! -e {path} ] || {{ mkdir -p {Path(target).parent}; mv {path} {target}; }}")
    return "\n".join([*commands, "rm -r /patches", ""])


def _succeed(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def _outcome(machine: Machine, folder: str, count: int) -> Outcome:
    place = machine.root / folder.lstrip("/")
    said = [
        Said(int(place.joinpath(f"{number}.status").read_text()), *_texts(place, number)) for number in range(count)
    ]
    files = {}
    for each in sorted(place.joinpath("left").rglob("*")):
        content = each.read_bytes() if each.is_file() else b""
        files["/" + str(each.relative_to(place / "left"))] = FileState(stat.S_IMODE(each.stat().st_mode), content)
    shutil.rmtree(place)
    return Outcome(said, files)


def _texts(place: Path, number: int) -> tuple[str, str]:
    return place.joinpath(f"{number}.out").read_text(), place.joinpath(f"{number}.err").read_text()
