"""The last good set of this node: its rendered files as they were when the last run was committed or confirmed.

A node can go back to it without anybody's help, also if its API server is down. Contents are named by their digest, and
an index, which is replaced atomically, says which of them belong to the set: a kill leaves the former set or the next.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from garboard.documents import Json
from garboard.engine import Plan, paths_written
from garboard.engine.pre_image import FileView, digest_of
from garboard.errors import NotReady
from garboard.host.files import make_folder, read_file, write_file
from garboard.host.folders import names_in
from garboard.host.removal import remove_file, remove_folder
from garboard.host.root import exists
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE
from garboard.model.paths import KUBELET_DIR, MANIFESTS_DIR, manifest_path
from garboard.phases.static_pods import ORDER
from garboard.values import dataclass

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_INDEX = "index.json"
# What is rendered from configuration and patches. Certificates and kubeconfigs are issued, and renewed by others.
_RENDERED = (MANIFESTS_DIR, KUBELET_DIR)
# They are part of the set also if another program has rendered them, such as kubeadm: half a set brings no node back.
_USUAL = (*map(manifest_path, ORDER), CONFIG_FILE, INSTANCE_CONFIG_FILE, FLAGS_FILE)


@dataclass(frozen=True, slots=True)
class GoodFile:
    """A file of the set: where it belongs, and the digest of its content."""

    path: str
    mode: int
    sha256: str


@dataclass(frozen=True, slots=True)
class GoodSet:
    """The files of the set, and the run that was the last to change it."""

    run: str
    files: tuple[GoodFile, ...]


class LastGood:
    """The set of one node, in a folder that only root may read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> GoodSet | None:
        """Return the set, or None if no run has been committed since the node was made."""
        index = self.folder / _INDEX
        if not exists(index):
            return None
        try:
            document = json.loads(read_file(index))
            return GoodSet(str(document["run"]), tuple(_file(each) for each in document["files"]))
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(index) from error

    def content(self, file: GoodFile) -> bytes:
        path = self.folder / file.sha256
        data = read_file(path) if exists(path) else b""
        if digest_of(data) != file.sha256:
            raise _damaged(path)
        return data

    def update(self, run: str, plan: Plan, machine: FileView) -> None:
        """Take what the plan has rendered into the set, as it is on the machine now; what has gone leaves the set."""
        rendered = {path for path in paths_written(plan.steps) if path.rpartition("/")[0] in _RENDERED}
        if not rendered:
            return
        rendered |= {*_USUAL}
        with suppress(NotReady):  # a set that is damaged is made anew from what is known
            former = self.read()
            rendered |= {each.path for each in former.files} if former else set()
        make_folder(self.folder, mode=_FOLDER_MODE)
        self._point_at(GoodSet(run, tuple(self._kept(sorted(rendered), machine))))

    def remove(self) -> None:
        """Remove the set, as that of a node that is no more."""
        remove_folder(self.folder)

    def _kept(self, paths: Iterable[str], machine: FileView) -> Iterator[GoodFile]:
        """Keep the contents of the files that there are."""
        for path in paths:
            data, owner = machine.read(path), machine.owner(path)
            if data is None or owner is None:
                continue
            digest = digest_of(data)
            if not exists(self.folder / digest):
                write_file(self.folder / digest, data, mode=_FILE_MODE)
            yield GoodFile(path, owner[2], digest)

    def _point_at(self, good: GoodSet) -> None:
        files: list[Json] = [{"path": each.path, "mode": each.mode, "sha256": each.sha256} for each in good.files]
        index = json.dumps({"run": good.run, "files": files}, indent=2) + "\n"
        write_file(self.folder / _INDEX, index.encode(), mode=_FILE_MODE)
        needed = {_INDEX, *(each.sha256 for each in good.files)}
        for name in names_in(self.folder):
            if name not in needed:
                remove_file(self.folder / name)


def _file(item: dict[str, Json]) -> GoodFile:
    mode = item["mode"]
    if not isinstance(mode, int):
        raise TypeError("a mode is a number")
    return GoodFile(str(item["path"]), mode, str(item["sha256"]))


def _damaged(path: Path) -> NotReady:
    return NotReady(
        f"{path} does not hold what was kept there", hint="the disk may be damaged", error_class="bad-journal"
    )
