"""On a host: what a provisioner asks of it. Whose the host is stands in a file, changed under the node lock alone.

Every command may be given again: where its connection was lost, the provisioner asks once more.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from garboard.config import GivenFlags
from garboard.config.flags import FlagValue
from garboard.documents import Json, read_yaml
from garboard.engine import Plan
from garboard.errors import BadDocument, GarboardError
from garboard.fleet.installers.bundles import AUTHORITY, AUTHORITY_KEY, CONFIG
from garboard.fleet.installers.host_view import (
    HostClaim,
    HostRefused,
    HostRun,
    HostView,
    read_claim,
    reuse_of,
    why_not_claimed,
)
from garboard.fleet.installers.manifests import PATCHES
from garboard.host.folders import list_tree
from garboard.host.node_machine import NodeMachine
from garboard.model.lifecycle import ResetConfiguration
from garboard.model.paths import KUBERNETES_DIR
from garboard.node.reporter import Reporter
from garboard.node.reset import RESET_WORKFLOW
from garboard.node.runs import DamagedRun, Run, Runs
from garboard.node.workflow import LocalNode, WorkflowRequest, run_workflow
from garboard.phases.reset import ResetContext
from garboard.phases.workflow import Placed
from garboard.pki.chain import authority_pins

STATE = "/var/lib/garboard/fleet"
CLAIM = f"{STATE}/claim.json"
_PKI = f"{KUBERNETES_DIR}/pki"
_PATCH = re.compile(r"patches/[a-z-]+\+strategic\.yaml")
_SHOWN_FILES = 5
_LOCK_WITHIN_S = 45.0
_RESET_FLAGS: Mapping[str, FlagValue] = {
    "force": True,
    "cleanup-tmp-dir": True,
    "abandon-etcd-member": True,
    "cri-socket": "",
}
_UNREADABLE = "unreadable"

Reset = Callable[[Callable[[], None], Reporter], None]


class ThisHost:
    """This machine as a host of a fleet."""

    def __init__(self, machine: NodeMachine, runs: Runs, reporter: Reporter) -> None:
        self._machine, self._runs, self._reporter = machine, runs, reporter

    def view(self) -> HostView:
        """Say whose this host is, and what is on it."""
        claim = self._claim()
        return HostView(
            claim=claim,
            files=self._files(),
            authorities=tuple(self._authorities()),
            runs=tuple(self._runs_since(claim)),
            locked_by=self._runs.lock_holder(),
        )

    def claim(self, wanted: HostClaim) -> HostView:
        """Write the infraID, unless the host carries another one or is not bare."""
        with self._locked("claim"):
            if reason := why_not_claimed(self.view(), wanted):
                raise HostRefused(reason)
            if self._claim() is None:
                names = tuple(each.folder.name for each in self._all_runs())
                self._write(CLAIM, json.dumps(replace(wanted, runs=names).document()).encode())
            return replace(self.view(), locked_by="")

    def stage(self, wanted: HostClaim, files: dict[str, str]) -> HostView:
        """Write what `init` and `join` read here; the authority of the cluster goes where they look for it."""
        places = {name: _place(name) for name in files}
        with self._locked("stage"):
            self._refuse_other(wanted)
            self._machine.make_folder(PATCHES, mode=0o700)
            self._machine.empty_folder(PATCHES)
            for name, text in files.items():
                self._put(places[name], text.encode(), is_public=name == AUTHORITY)
            return replace(self.view(), locked_by="")

    def release(self, wanted: HostClaim, reset: Reset | None = None) -> str:
        """Reset this host if it shows this claim, and forget whose it was; say what was done."""
        claim = self._claim()
        if claim is None:
            return "it carries no infraID, so nothing was done"
        if claim.infra_id != wanted.infra_id:
            return f"it carries the infraID {claim.infra_id}, so it is left alone"
        if reason := reuse_of(self.view(), wanted):
            self._forget(wanted)
            return f"it is left alone, without an infraID: {reason}"
        (reset or reset_host)(lambda: self._refuse_other(wanted), self._reporter)
        self._forget(wanted)
        return "it was reset"

    def _forget(self, wanted: HostClaim) -> None:
        with self._locked("release"):
            self._refuse_infra(wanted)
            if self._machine.has_folder(PATCHES):
                self._machine.empty_folder(PATCHES)
            self._machine.remove(f"{STATE}/{CONFIG}")
            self._machine.remove(CLAIM)  # last: without it, nobody would come back for the rest

    def _refuse_other(self, wanted: HostClaim) -> None:
        """Refuse a host that does not show this claim, or has been reused since."""
        self._refuse_infra(wanted)
        if reason := reuse_of(self.view(), wanted):
            raise HostRefused(reason)

    def _refuse_infra(self, wanted: HostClaim) -> None:
        claim = self._claim()
        if claim is None or claim.infra_id != wanted.infra_id:
            raise HostRefused(f"it carries {f'the infraID {claim.infra_id}' if claim else 'no infraID'}")

    def _locked(self, verb: str) -> AbstractContextManager[None]:
        return self._runs.lock(f"fleet host {verb}", wait_s=_LOCK_WITHIN_S)

    def _put(self, path: str, data: bytes, *, is_public: bool) -> None:
        found = self._machine.read(path)
        if found == data:
            return
        if found is not None and path.startswith(KUBERNETES_DIR):
            raise HostRefused(f"{path} is there, and not that of this cluster")
        self._write(path, data, mode=0o644 if is_public else 0o600)

    def _write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        self._machine.write(path, data, new_mode=mode, folder_mode=0o700 if path.startswith(STATE) else 0o755)

    def _claim(self) -> HostClaim | None:
        data = self._machine.read(CLAIM)
        if data is None:
            return None
        try:
            return read_claim(json.loads(data))
        except (ValueError, GarboardError):
            raise HostRefused(
                f"{CLAIM} cannot be read", hint="find out whose this host is before the file is removed"
            ) from None

    def _files(self) -> tuple[str, ...]:
        if not self._machine.has_files(KUBERNETES_DIR):
            return ()
        try:
            return tuple(list_tree(KUBERNETES_DIR)[:_SHOWN_FILES])
        except GarboardError as error:
            return (error.message,)

    def _authorities(self) -> set[str]:
        """Return the pins of every authority in /etc/kubernetes, those of one file with commas between them."""
        contents = [self._machine.read(f"{_PKI}/ca.crt")]
        contents += [
            _authority_in(self._machine.read(f"{KUBERNETES_DIR}/{name}") or b"", name)
            for name in self._machine.entries(KUBERNETES_DIR)
            if name.endswith(".conf")
        ]
        return {_pins(each) for each in contents if each}

    def _all_runs(self) -> tuple[Run | DamagedRun, ...]:
        return (*self._runs.all(), *self._runs.damaged())

    def _runs_since(self, claim: HostClaim | None) -> list[HostRun]:
        earlier = claim.runs if claim else ()
        return [_host_run(each) for each in self._all_runs() if each.folder.name not in earlier] if claim else []


def reset_host(check: Callable[[], None], reporter: Reporter) -> None:
    """Reset this machine; `check` is asked once more under the node lock, before anything is changed."""

    def confirm(
        _config: ResetConfiguration, _plan: Plan, _selected: Sequence[Placed[ResetContext]], _node: LocalNode
    ) -> None:
        check()

    workflow = replace(RESET_WORKFLOW, confirm=confirm)
    flags = GivenFlags(_RESET_FLAGS, frozenset(name for name, value in _RESET_FLAGS.items() if value))
    run_workflow(workflow, WorkflowRequest(flags), reporter)


def _place(name: str) -> str:
    if name in (AUTHORITY, AUTHORITY_KEY):
        return f"{KUBERNETES_DIR}/{name}"
    if name == CONFIG:
        return f"{STATE}/{CONFIG}"
    if _PATCH.fullmatch(name):
        return str(Path(PATCHES) / name.removeprefix("patches/"))
    raise BadDocument(f"{name!r} is no file of a bundle", error_class="bad-answer")


def _host_run(run: Run | DamagedRun) -> HostRun:
    if isinstance(run, DamagedRun):
        return HostRun(run.folder.name, "", "damaged", run.error.message)
    return HostRun(run.header.run, run.header.command, run.record.state, run.record.failure or "")


def _pins(pem: bytes) -> str:
    try:
        return ",".join(authority_pins(pem)) or _UNREADABLE
    except (GarboardError, ValueError):
        return _UNREADABLE


def _authority_in(data: bytes, source: str) -> bytes | None:
    """Return the authority that a kubeconfig trusts; None where it names none."""
    try:
        document = read_yaml(data, source=source)
        clusters: Json = document.get("clusters") if isinstance(document, dict) else None
        first = clusters[0] if isinstance(clusters, list) and clusters else None
        cluster = first.get("cluster") if isinstance(first, dict) else None
        text = cluster.get("certificate-authority-data") if isinstance(cluster, dict) else None
        return base64.b64decode(text) if isinstance(text, str) else None
    except (GarboardError, ValueError):
        return _UNREADABLE.encode()
