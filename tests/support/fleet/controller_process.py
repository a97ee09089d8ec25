"""`garboard fleet controller` as a process, and a kubeconfig that leads to a real API server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from garboard.kube import Access

GARBOARD = str(Path(sys.executable).parent / "garboard")


def write_kubeconfig(access: Access, path: Path) -> Path:
    cluster = {"server": access.server, "insecure-skip-tls-verify": True}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": access.token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(content))
    return path


class ControllerProcess:
    """One controller; its attempts go on when it is killed."""

    def __init__(self, kubeconfig: Path, work: Path, log: Path, *more: str) -> None:
        self.log = log
        command = (
            GARBOARD, "fleet", "controller", "--kubeconfig", str(kubeconfig), "--work", str(work), *more,
        )  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log.open("ab"))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def garboard(kubeconfig: Path, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    command: Sequence[str] = (GARBOARD, *words, "--kubeconfig", str(kubeconfig))
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert not check or ended.returncode == 0, ended.stderr
    return ended
