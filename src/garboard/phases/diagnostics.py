"""What helps to find out why a run failed, as files for somebody who was not there; no secret is among them."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Protocol

from garboard.documents import Json
from garboard.engine import Plan, plan_as_json
from garboard.errors import GarboardError
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE
from garboard.manifests.paths import KUBERNETES_DIR, manifest_path
from garboard.phases.waiting import World
from garboard.phases.waiting.evidence import log_text

LOG_LINES = 400
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_FILES = (
    *map(manifest_path, _COMPONENTS), CONFIG_FILE, INSTANCE_CONFIG_FILE, FLAGS_FILE, "/etc/hosts", "/etc/resolv.conf",
)  # fmt: skip
_KINDS = ("Node", "CertificateSigningRequest", "Pod")
_HIDDEN = "<hidden>"
# Private keys, bootstrap tokens, and what follows a flag, a field or a header for a key or a token.
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![a-z0-9.])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9.])"
    r"|(?<=certificate-key )\S+|(?<=certificateKey: )\S+"
    r"|(?<=client-key-data: )\S+"
    r"|(?<=[Bb]earer )\S+"
    r"|(?<=token: )\S+",
    re.DOTALL,
)


class FileList(Protocol):
    """The files of this machine, by name and mode."""

    def paths_below(self, path: str) -> Sequence[str]: ...

    def owner(self, path: str) -> tuple[int, int, int] | None: ...


def bundle(
    error: GarboardError, plan: Plan, world: World, files: FileList, runtime_notes: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield names and texts; what cannot be found out becomes the text that says why."""
    hint = f"hint: {error.hint}\n" if error.hint else ""
    yield "error.txt", masked(f"error[{error.error_class}]: {error.message}\n{hint}")
    yield "plan.json", masked(_as_json(plan_as_json(plan)))
    yield "machine.txt", masked("".join(f"{line}\n" for line in (f"time: {world.now().isoformat()}", *runtime_notes)))
    yield "files.txt", _tried(lambda: _listing(files))
    for path in _FILES:
        found = world.read(path)
        if found is not None:
            yield f"files/{path.strip('/').replace('/', '-')}", masked(found.decode("utf-8", "replace"))
    yield "kubelet.log", _tried(lambda: "".join(f"{line}\n" for line in world.service_log("kubelet", LOG_LINES)))
    yield from _containers(world)
    for kind in _KINDS:
        yield f"{kind.lower()}s.json", _tried(partial(_objects, world, kind))


def masked(text: str) -> str:
    """Return the text with everything replaced that looks like a secret."""
    return _SECRETS.sub(_HIDDEN, text)


def _containers(world: World) -> Iterator[tuple[str, str]]:
    try:
        found = world.containers()
    except GarboardError as error:
        yield "containers.json", masked(error.message)
        return
    yield "containers.json", masked(_as_json([asdict(each) for each in found]))
    for each in found:
        lines = (log_text(line) for line in world.tail(each.log_path, LOG_LINES))
        yield f"containers/{each.name}-{each.attempt}-{each.id[:8]}.log", masked("".join(f"{line}\n" for line in lines))


def _objects(world: World, kind: str) -> str:
    return _as_json([_without_bytes(each) for each in world.list_all(kind)])


def _listing(files: FileList) -> str:
    rows = ((path, files.owner(path)) for path in (KUBERNETES_DIR, *files.paths_below(KUBERNETES_DIR)))
    return "".join(f"{found[2]:04o} {found[0]}:{found[1]} {path}\n" for path, found in rows if found)


def _tried(text: Callable[[], str]) -> str:
    try:
        return masked(text())
    except GarboardError as error:
        return masked(f"{error.message}\n")


def _as_json(value: Json) -> str:
    return json.dumps(value, indent=2) + "\n"


def _without_bytes(item: dict[str, Json]) -> dict[str, Json]:
    """Return an object without what only machines read: who manages which field, requests and certificates."""
    metadata, spec, status = (item.get(key) for key in ("metadata", "spec", "status"))
    kept = dict(item)
    if isinstance(metadata, dict):
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    if isinstance(spec, dict):
        kept["spec"] = {key: value for key, value in spec.items() if key != "request"}
    if isinstance(status, dict):
        kept["status"] = {key: value for key, value in status.items() if key != "certificate"}
    return kept
