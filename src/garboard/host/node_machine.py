"""This machine as a node: what planning reads of it, and the files that carrying out a plan writes."""

from pathlib import Path

from garboard.host.files import (
    change_owner,
    file_owner,
    folder_entries,
    is_folder,
    make_folder,
    paths_below,
    read_if_there,
    write_file,
)
from garboard.host.folder import HostFolder
from garboard.host.removal import empty_folder, remove_empty_folder, remove_file, unmount_below
from garboard.host.service_manager import ServiceManager


class NodeMachine:
    """Files by their absolute path, and the service manager, if there is one."""

    def __init__(self, manager: ServiceManager | None) -> None:
        self.manager = manager
        self._seen_active: dict[str, bool] = {}

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        return read_if_there(path)

    def has_folder(self, path: str) -> bool:
        return is_folder(path)

    def folder(self, path: str) -> HostFolder:
        return HostFolder(path)

    def has_service_manager(self) -> bool:
        return self.manager is not None

    def is_active(self, service: str) -> bool:
        """Say whether a service runs, as it was when that was first asked: a plan is about one moment."""
        if self.manager is None:
            return False
        if service not in self._seen_active:
            self._seen_active[service] = self.manager.is_active(service)
        return self._seen_active[service]

    def owner(self, path: str) -> tuple[int, int, int] | None:
        """Return user, group and mode of a file, or None where there is no file."""
        return file_owner(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        return folder_entries(path)

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

    def empty_folder(self, path: str, *, keeps: tuple[str, ...]) -> None:
        empty_folder(path, keeps=keeps)

    def unmount(self, path: str, *, flags: tuple[str, ...] = ()) -> None:
        unmount_below(path, flags)

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int) -> None:
        """Replace a file in one move; new ones get `new_mode`, their folders `folder_mode`, others keep their own."""
        target = Path(path)
        make_folder(target.parent, mode=folder_mode)
        write_file(target, data, mode=new_mode if file_owner(target) is None else None)
