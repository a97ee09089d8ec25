"""Hosts in folders: what garboard does on them for a provisioner is real, but for init, join and reset.

They stand in for the operator's command, so that a provisioner can be killed at every question it asks. Their state
is in files, and outlives it.
"""

import base64
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from garboard import __version__
from garboard.fleet.installers.host_view import HostRefused, read_claim
from garboard.host.node_machine import NodeMachine
from garboard.host.piped import Take
from garboard.host.root import inside
from garboard.node.fleet.host_commands import ThisHost
from garboard.node.via import carrier
from tests.support.node.reporters import MemoryReporter

STATE = "/var/lib/garboard/fleet"


@dataclass
class SimulatedHosts:
    """All hosts below a folder; `deadly` is the number of the question at which the provisioner is killed."""

    folder: Path
    deadly: int = -1
    is_killed_after: bool = False
    behaviour: dict[str, str] = field(default_factory=dict)  # by host and command, such as "worker1 join": "lost"
    asked: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(carrier, "run_piped", self.run)

    def root(self, host: str) -> Path:
        return self.folder / host

    def make(self, *hosts: str) -> None:
        for each in hosts:
            for path in ("etc/kubernetes", "var/lib/garboard", "tmp"):
                (self.root(each) / path).mkdir(parents=True)

    def files(self, host: str) -> list[str]:
        """Return what is below /etc/kubernetes, and the claim."""
        root = self.root(host)
        found = [each for each in (root / "etc/kubernetes").rglob("*") if each.is_file()]
        claim = root / "var/lib/garboard/fleet/claim.json"
        return sorted(str(each.relative_to(root)) for each in [*found, *([claim] if claim.exists() else [])])

    def run(self, command: Sequence[str], take: Take, *, stdin: bytes = b"", timeout_s: float) -> int | None:
        """Stand in for `run_piped` with `VIA HOST garboard WORDS`."""
        _, host, program, *words = command
        assert program == "garboard"
        with self.lock:
            name = f"{host} {' '.join(words[:3] if words[0] == 'fleet' else words[:1])}"
            number = len(self.asked)
            self.asked.append(name)
            if number == self.deadly and not self.is_killed_after:
                os.kill(os.getpid(), signal.SIGKILL)
            status = self._answer(host, words, stdin, take)
            if number == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            return status

    def _answer(self, host: str, words: Sequence[str], stdin: bytes, take: Take) -> int | None:
        if not self.root(host).exists():
            return 255
        behaviour = self.behaviour.get(f"{host} {' '.join(words[:3])}", "") or self.behaviour.get(
            f"{host} {words[0]}", ""
        )
        if behaviour == "silent":
            return 255
        if behaviour == "slow":
            return None
        if behaviour.startswith("says "):
            take("stdout", behaviour.removeprefix("says ").encode())
            return 0
        if words[0] == "version":
            take("stdout", json.dumps({"garboard": __version__}).encode())
            return 0
        if words[0] == "status":
            take("stdout", json.dumps({"runs": self._read_runs(host), "lockedBy": ""}).encode())
            return 0
        if words[0] == "fleet":
            take("stdout", json.dumps(self._fleet(host, words[2], stdin)).encode())
            return 255 if behaviour == "lost" else 0
        return self._change(host, words, behaviour, take)

    def _change(self, host: str, words: Sequence[str], behaviour: str, take: Take) -> int:
        if words[0] == "init" and words[1] == "phase":
            return 0
        runs = self._read_runs(host)
        if words[0] == "resume":
            (run,) = [each for each in runs if each["run"] == words[1]]
            run["state"] = "committed"
        else:
            assert words[1] == f"--config={STATE}/kubeadm.yaml"
            assert (self.root(host) / STATE[1:] / "kubeadm.yaml").exists()
            state = "open" if behaviour in ("fail", "lost-open") else "committed"
            runs.append({"run": f"{len(runs) + 1}-{words[0]}", "command": words[0], "state": state, "failure": ""})
        take("stderr", b"token abcdef.0123456789abcdef is in the output\n")
        self._write(host, "etc/kubernetes/kubelet.conf", "made by " + words[0])
        (self.root(host) / "runs.json").write_text(json.dumps(runs))
        if behaviour.startswith("once "):
            del self.behaviour[f"{host} {words[0]}"]
        return {"fail": 1, "lost-open": 255, "lost": 255}.get(behaviour.removeprefix("once "), 0)

    def _fleet(self, host: str, verb: str, stdin: bytes) -> Any:
        given: Any = json.loads(stdin) if stdin else None
        with inside(str(self.root(host))):
            this = ThisHost(NodeMachine(None), self._store(host), MemoryReporter())
            try:
                match verb:
                    case "look":
                        return {"view": this.view().document(), "refused": ""}
                    case "claim":
                        return {"view": this.claim(read_claim(given)).document(), "refused": ""}
                    case "stage":
                        claim = read_claim(given["claim"])
                        return {"view": this.stage(claim, given["files"]).document(), "refused": ""}
                    case "release":
                        return {"outcome": this.release(read_claim(given), self._reset(host)), "refused": ""}
                    case "addons":
                        return {"applied": len(given)}
                    case _:
                        pass
            except HostRefused as error:
                return {"view": None, "refused": error.message}
        assert verb == "nodes"
        return {"nodes": {each.name: (each / "etc/kubernetes/kubelet.conf").exists() for each in self.folder.iterdir()}}

    def _reset(self, host: str) -> Callable[[Callable[[], None], object], None]:
        def reset(check: Callable[[], None], _reporter: object) -> None:
            check()
            for each in (self.root(host) / "etc/kubernetes").rglob("*"):
                if each.is_file():
                    each.unlink()
            runs = self._read_runs(host)
            for run in runs:
                run["state"] = "reset" if run["state"] == "open" else run["state"]
            runs.append({"run": f"{len(runs) + 1}-reset", "command": "reset", "state": "committed", "failure": ""})
            (self.root(host) / "runs.json").write_text(json.dumps(runs))

        return reset

    def _store(self, host: str) -> Any:
        @contextmanager
        def lock(*_: object, **__: object) -> Iterator[None]:
            yield

        runs = self._runs(host)
        return SimpleNamespace(all=lambda: runs, damaged=tuple, lock=lock, lock_holder=str)

    def _runs(self, host: str) -> tuple[Any, ...]:
        return tuple(
            SimpleNamespace(
                folder=SimpleNamespace(name=each["run"]),
                header=SimpleNamespace(run=each["run"], command=each["command"]),
                record=SimpleNamespace(state=each["state"], failure=each["failure"]),
            )
            for each in self._read_runs(host)
        )

    def _read_runs(self, host: str) -> list[dict[str, str]]:
        path = self.root(host) / "runs.json"
        return json.loads(path.read_text()) if path.exists() else []

    def _write(self, host: str, path: str, text: str) -> None:
        config = {"clusters": [{"cluster": {"certificate-authority-data": self._authority(host)}}], "note": text}
        (self.root(host) / path).write_text(json.dumps(config))

    def _authority(self, host: str) -> str:
        """Return the authority of the cluster: that of its first control plane."""
        for each in self.folder.iterdir():
            path = each / "etc/kubernetes/pki/ca.crt"
            if path.exists():
                return base64.b64encode(path.read_bytes()).decode()
        return ""
