"""Container images made from files: one layer, a configuration and a manifest in a tar, as `docker save` writes it.

No registry and no build tool is involved; the same files give the same bytes.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from garboard.lab.machine import MAX_PROGRAM_BYTES, LabFilesystem

EPOCH = "1970-01-01T00:00:00Z"
BINARY_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class ImageDefinition:
    """An image: its name with tag, its files (path in the image → path here), its links and what it runs."""

    name: str
    files: Mapping[str, Path]
    entrypoint: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    user: str = ""


def write_archive(image: ImageDefinition, into: IO[bytes], machine: LabFilesystem, *, architecture: str) -> None:
    """Write `image` as a docker archive, which `ctr images import` takes."""
    layer = io.BytesIO()
    _write_layer(image, layer, machine)
    digest = hashlib.sha256(layer.getbuffer()).hexdigest()
    config = json.dumps(_config(image, digest, architecture), sort_keys=True).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    layer_name = f"{digest}/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [image.name], "Layers": [layer_name]}]).encode()
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in ((config_name, config), ("manifest.json", manifest)):
            tar.addfile(_entry(name, len(data)), io.BytesIO(data))
        size = layer.seek(0, io.SEEK_END)
        layer.seek(0)
        tar.addfile(_entry(layer_name, size), layer)


def _config(image: ImageDefinition, layer_digest: str, architecture: str) -> dict[str, object]:
    run = {"Entrypoint": list(image.entrypoint), "Env": [f"PATH={BINARY_PATH}"], "User": image.user, "WorkingDir": "/"}
    return {
        "architecture": architecture,
        "os": "linux",
        "created": EPOCH,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created": EPOCH, "created_by": "garboard lab"}],
    }


def _write_layer(image: ImageDefinition, into: IO[bytes], machine: LabFilesystem) -> None:
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in _folders(image):
            entry = _entry(folder, 0, mode=0o1777 if folder == "tmp" else 0o755)
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
        for inside, path in sorted(image.files.items()):
            data = machine.read_file(path, limit=MAX_PROGRAM_BYTES)
            tar.addfile(_entry(inside.lstrip("/"), len(data), mode=path.stat().st_mode & 0o777), io.BytesIO(data))
        for inside, target in sorted(image.links.items()):
            entry = _entry(inside.lstrip("/"), 0, mode=0o777)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)


def _folders(image: ImageDefinition) -> list[str]:
    """Every folder that the files, links and named folders need, parents first."""
    wanted: set[str] = set()
    for path in [*(Path(each).parent for each in (*image.files, *image.links)), *map(Path, image.folders)]:
        wanted |= {str(each).strip("/") for each in (path, *path.parents)}
    return sorted(wanted - {"", "."})


def _entry(name: str, size: int, mode: int = 0o644) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry
