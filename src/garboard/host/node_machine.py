"""This machine as a node: what planning reads of it, and the files that carrying out a plan writes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from garboard.errors import GarboardError
from garboard.host.files import (
    HostFolder,
    file_owner,
    file_size,
    free_space,
    make_folder,
    new_file,
    read_if_there,
    read_part,
    write_file,
)
from garboard.host.folders import change_owner, changed_since, folder_entries, has_files, paths_below
from garboard.host.removal import (
    empty_folder,
    mount_point,
    mounts_below,
    remove_empty_folder,
    remove_file,
    unmount_below,
)
from garboard.host.root import changed_root, is_folder, resolved
from garboard.host.service_manager import ServiceManager


class NodeMachine:
    """Files by their absolute path, and the service manager, if there is one."""

    def __init__(self, manager: ServiceManager | None) -> None:
        self.manager = manager
        self._seen_active: dict[str, bool] = {}

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        return read_if_there(path)

    def read_part(self, path: str, offset: int, count: int) -> bytes:
        """Return a part of a file, however large that is."""
        return read_part(path, offset, count)

    def has_folder(self, path: str) -> bool:
        return is_folder(path)

    def resolve(self, path: str) -> str:
        """Return where a path leads, as a path without links, `.` and `..`."""
        try:
            return resolved(path)
        except (OSError, ValueError) as error:
            raise GarboardError(
                f"cannot find out where {path} leads: {getattr(error, 'strerror', None) or error}",
                hint="name the folder itself",
                error_class="unreadable",
            ) from error

    def folder(self, path: str) -> HostFolder:
        return HostFolder(path)

    def has_service_manager(self) -> bool:
        return self.manager is not None

    def is_active(self, service: str) -> bool:
        """Say whether a service runs; the first answer is remembered, because a plan is about one moment."""
        if self.manager is None:
            return False
        if service not in self._seen_active:
            self._seen_active[service] = self.manager.is_active(service)
        return self._seen_active[service]

    def owner(self, path: str) -> tuple[int, int, int] | None:
        """Return user, group and mode of a file, or None where there is no file."""
        return file_owner(path)

    def size(self, path: str) -> int:
        """Return how many bytes a file has; 0 where there is none."""
        return file_size(path)

    def free_bytes(self, path: str) -> int:
        """Return how much room there is on the disk of a folder, or of the nearest one above it that exists."""
        return free_space(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        return folder_entries(path)

    def has_files(self, path: str) -> bool:
        """Say whether anything but folders is below a folder, as far as that can be looked at."""
        return has_files(path)

    def changed_since(self, path: str, moment: datetime) -> tuple[str, ...]:
        """Return what is below a folder, as paths from there, and was made or changed since; folders do not count."""
        return changed_since(path, moment)

    def paths_below(self, path: str) -> tuple[str, ...]:
        return paths_below(path)

    def change_owner(self, path: str, *, uid: int, gid: int, mode: int | None) -> None:
        change_owner(path, uid=uid, gid=gid, mode=mode)

    def make_folder(self, path: str, *, mode: int) -> None:
        make_folder(path, mode=mode)

    def remove(self, path: str) -> None:
        remove_file(path)

    def remove_folder(self, path: str) -> None:
        remove_empty_folder(path)

    def empty_folder(
        self,
        path: str,
        *,
        keeps: tuple[str, ...] = (),
        only: tuple[str, ...] = (),
        is_resolved: bool = False,
        mount: str = "",
    ) -> None:
        empty_folder(path, keeps=keeps, only=only, is_resolved=is_resolved, mount=mount)

    def mount_point(self, path: str) -> str:
        """Return where that is mounted in which a folder is; empty if that cannot be told."""
        return mount_point(path)

    def mounts_below(self, path: str) -> tuple[str, ...]:
        """Return where something is mounted below a path without links, once for each mount."""
        root = str(changed_root() or "")
        return tuple(point.removeprefix(root) for point in mounts_below(path))

    def unmount(self, path: str, *, flags: tuple[str, ...] = (), keeps: tuple[str, ...] = ()) -> None:
        unmount_below(path, flags, keeps)

    def new_file(self, path: str, *, mode: int, folder_mode: int) -> AbstractContextManager[Callable[[bytes], object]]:
        """Write a file piece by piece, which is there when all of it is; new folders get `folder_mode`."""
        make_folder(Path(path).parent, mode=folder_mode)
        return new_file(path, mode=mode)

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int, expected: str | None = None) -> None:
        """Replace a file atomically, if it has the digest `expected`; an empty one stands for no file.

        New files get `new_mode`, new folders `folder_mode`, existing ones keep theirs.
        """
        target = Path(path)
        make_folder(target.parent, mode=folder_mode)
        write_file(target, data, mode=new_mode if file_owner(target) is None else None, expected=expected)
