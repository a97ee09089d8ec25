"""The folder of `--diagnostics`: explains a failed run to a reader without access to the machine; has no secrets."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Protocol

from garboard import __version__
from garboard.documents import Json
from garboard.engine import Plan, plan_as_json
from garboard.errors import GarboardError
from garboard.host import make_folder, write_file
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE
from garboard.model.paths import KUBERNETES_DIR, manifest_path
from garboard.node.masking import masked, masked_document, masked_text
from garboard.node.node_view import LiveNodeView
from garboard.node.reporter import Reporter
from garboard.phases.gates import NodeView
from garboard.phases.gates.evidence import log_text

LOG_LINES = 400
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_FILES = (
    *map(manifest_path, _COMPONENTS), CONFIG_FILE, INSTANCE_CONFIG_FILE, FLAGS_FILE, "/etc/hosts", "/etc/resolv.conf",
)  # fmt: skip
_KINDS = ("Node", "CertificateSigningRequest", "Pod")
_NAMESPACE = "kube-system"  # objects, containers and logs of others are not collected
# How a line of the kubelet's log begins, after what journald puts before it.
_NEW_ENTRY = re.compile(r"(?:^|\s)[IWEF]\d{4} \d\d:\d\d:\d\d|\{\s*\"ts\":")
# Namespaces in it: pod="NS/NAME", object-"NS"/"NAME", NAME_NS(UID), "namespace":"NS"; quotes may be escaped.
_NAMESPACES = re.compile(
    r"""(?i)\bpods?[\\"']*[=:]\s*[\[\\"']*([a-z0-9-]+)/"""
    r"""|\bobject-[\\"']+([a-z0-9-]+)[\\"']+/"""
    r"""|[a-z0-9.-]_([a-z0-9-]+)\([0-9a-f-]{8,}\)"""
    r"""|\bnamespace[\\"']*\s*[=:]\s*[\\"']*([a-z0-9-]+)"""
)
_ABOUT_PODS = re.compile(
    r"(?i)\bpods?\b|podUID|podName|/pods/|\bimage[\\\"']*[=:]|\bvolume\b|\bsecrets?\b|configmaps?\b"
)


def keep_diagnostics(folder: str, error: GarboardError, plan: Plan, view: LiveNodeView, reporter: Reporter) -> None:
    """Write the bundle, readable by its owner alone; a failure to do so is reported, and does not hide the run's."""
    system = os.uname()
    notes = (f"garboard: {__version__}", f"kernel: {system.release} {system.machine}", f"host: {system.nodename}")
    try:
        make_folder(folder, mode=0o700)
        for name, text in bundle(error, plan, view, view.machine, notes):
            path = Path(folder) / name
            make_folder(path.parent, mode=0o700)
            write_file(path, text.encode("utf-8", "replace"), mode=0o600)
    except GarboardError as failure:
        reporter.report(f"[diagnostics] warning: {failure.message}")
        return
    reporter.report(f"[diagnostics] what tells why is in {folder}")


class FileList(Protocol):
    """The files of this machine, by name and mode."""

    def paths_below(self, path: str) -> Sequence[str]: ...

    def owner(self, path: str) -> tuple[int, int, int] | None: ...


def bundle(
    error: GarboardError, plan: Plan, view: NodeView, files: FileList, runtime_notes: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield names and texts; what cannot be found out becomes the text that says why."""
    hint = f"hint: {error.hint}\n" if error.hint else ""
    yield "error.txt", masked(f"error[{error.error_class}]: {error.message}\n{hint}")
    yield "plan.json", _as_json(plan_as_json(plan))
    yield "machine.txt", masked("".join(f"{line}\n" for line in (f"time: {view.now().isoformat()}", *runtime_notes)))
    yield "files.txt", _tried(lambda: _listing(files))
    for path in _FILES:
        found = view.read(path)
        if found is not None:
            yield f"files/{path.strip('/').replace('/', '-')}", masked_text(found.decode("utf-8", "replace"))
    yield "kubelet.log", _tried(lambda: _own_lines(view.service_log("kubelet", LOG_LINES)))
    yield from _containers(view)
    for kind in _KINDS:
        yield f"{kind.lower()}s.json", _tried(partial(_objects, view, kind))


def _own_lines(lines: Iterable[str]) -> str:
    """Return the lines of a kubelet's log that are about no pod, or about one of kube-system."""
    kept, left_out, is_own = list[str](), 0, True
    for line in lines:
        if _NEW_ENTRY.search(line) or _is_of_others(line):  # else it goes on with what was said before
            is_own = not _is_of_others(line)
        kept += [f"{line}\n"] if is_own else []
        left_out += not is_own
    note = f"({left_out} lines about pods of other namespaces are left out)\n" if left_out else ""
    return "".join((note, *kept))


def _is_of_others(line: str) -> bool:
    """Say whether a line is about a pod, unless it names no other namespace than kube-system."""
    named = {name for found in _NAMESPACES.finditer(line) for name in found.groups() if name}
    return named != {_NAMESPACE} and (bool(named) or _ABOUT_PODS.search(line) is not None)


def _containers(view: NodeView) -> Iterator[tuple[str, str]]:
    try:
        found = [each for each in view.containers() if each.namespace == _NAMESPACE]
    except GarboardError as error:
        yield "containers.json", masked(error.message)
        return
    yield "containers.json", _as_json([asdict(each) for each in found])
    for each in found:
        lines = (log_text(line) for line in view.tail(each.log_path, LOG_LINES))
        yield f"containers/{each.name}-{each.attempt}-{each.id[:8]}.log", masked("".join(f"{line}\n" for line in lines))


def _objects(view: NodeView, kind: str) -> str:
    return _as_json([_without_bytes(each) for each in view.list_all(kind) if _is_collected(each)])


def _is_collected(item: dict[str, Json]) -> bool:
    """Say whether an object is the cluster's own: other namespaces are the business of others."""
    metadata = item.get("metadata")
    return isinstance(metadata, dict) and metadata.get("namespace", _NAMESPACE) == _NAMESPACE


def _listing(files: FileList) -> str:
    rows = ((path, files.owner(path)) for path in (KUBERNETES_DIR, *files.paths_below(KUBERNETES_DIR)))
    return "".join(f"{found[2]:04o} {found[0]}:{found[1]} {path}\n" for path, found in rows if found)


def _tried(text: Callable[[], str]) -> str:
    try:
        return masked(text())
    except GarboardError as error:
        return masked(f"{error.message}\n")


def _as_json(value: Json) -> str:
    return masked(json.dumps(masked_document(value), indent=2) + "\n")


def _without_bytes(item: dict[str, Json]) -> dict[str, Json]:
    """Return an object without managedFields, signing requests and certificates, which people do not read."""
    metadata, spec, status = (item.get(key) for key in ("metadata", "spec", "status"))
    kept = dict(item)
    if isinstance(metadata, dict):
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    if isinstance(spec, dict):
        kept["spec"] = {key: value for key, value in spec.items() if key != "request"}
    if isinstance(status, dict):
        kept["status"] = {key: value for key, value in status.items() if key != "certificate"}
    return kept
