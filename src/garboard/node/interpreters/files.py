"""Files and folders of the machine."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from garboard.engine import (
    ChangeOwner,
    EmptyFolder,
    Gate,
    Interpreters,
    MakeFolder,
    RemoveFile,
    RemoveFolder,
    StepContext,
    Unmount,
    WriteFile,
)
from garboard.engine.file_content import content_with
from garboard.values import dataclass


class FileWriter(Protocol):
    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        ...

    def make_folder(self, path: str, *, mode: int) -> None:
        """Make a folder and its missing parents, all with `mode`."""
        ...

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int, expected: str | None = None) -> None:
        """Replace a file atomically; an existing one keeps its mode.

        If the file has not the digest `expected` (empty: if there is one at all), it is not touched: StalePlan.
        """
        ...

    def new_file(self, path: str, *, mode: int, folder_mode: int) -> AbstractContextManager[Callable[[bytes], object]]:
        """Write a file piece by piece, which is there when all of it is; one that is there already is refused."""
        ...

    def change_owner(self, path: str, *, uid: int, gid: int, mode: int | None) -> None:
        """Change owner and mode of a file; without a mode, the owner of a folder and all below it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a link; one that is not there is no failure."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder if nothing is in it."""
        ...

    def empty_folder(
        self, path: str, *, keeps: tuple[str, ...], only: tuple[str, ...], is_resolved: bool, mount: str
    ) -> None:
        """Remove everything below a folder, except mounts and the entries with the names in `keeps`.

        Nothing is removed if `only` does not cover something, if a path that `is_resolved` has a link, or if the
        folder is not in what is mounted at `mount`, which may be empty.
        """
        ...

    def unmount(self, path: str, *, flags: tuple[str, ...] = (), keeps: tuple[str, ...] = ()) -> None:
        """Unmount what is mounted below a path, except as many mounts at each path as `keeps` names it."""
        ...


@dataclass(frozen=True, slots=True)
class FileInterpreter:
    """Changes files through `files`; `is_open` looks once whether a gate is open."""

    files: FileWriter
    is_open: Callable[[Gate], bool] | None = None

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(MakeFolder, self.make_folder).add(WriteFile, self.write)
        interpreters.add(RemoveFile, self.remove).add(RemoveFolder, self.remove_folder)
        interpreters.add(EmptyFolder, self.empty_folder).add(Unmount, self.unmount)
        interpreters.add(ChangeOwner, self.change_owner)

    def make_folder(self, action: MakeFolder, _run: StepContext) -> None:
        self.files.make_folder(action.path, mode=action.mode)

    def write(self, action: WriteFile, run: StepContext) -> None:
        content = self._lasting(action, run) or content_with(action, run.outcomes)
        self.files.write(
            action.path,
            content,
            new_mode=action.mode,
            folder_mode=action.folder_mode,
            expected=run.expected.get(action.path),
        )

    def _lasting(self, action: WriteFile, run: StepContext) -> bytes | None:
        """Return what has no way back any more; the journal keeps that it was so."""
        if action.unless is None:
            return None
        assert self.is_open is not None, "who undoes units can look at gates"
        if not self.is_open(action.unless.gate):
            return None
        run.note({action.path: f"it stays: there is {action.unless.gate.name}"})
        run.report(f"{action.path} stays as the run wrote it: there is {action.unless.gate.name}")
        return action.unless.content

    def remove(self, action: RemoveFile, _run: StepContext) -> None:
        self.files.remove(action.path)

    def remove_folder(self, action: RemoveFolder, _run: StepContext) -> None:
        self.files.remove_folder(action.path)

    def empty_folder(self, action: EmptyFolder, _run: StepContext) -> None:
        self.files.empty_folder(
            action.path, keeps=action.keeps, only=action.only, is_resolved=action.is_resolved, mount=action.mount
        )

    def unmount(self, action: Unmount, _run: StepContext) -> None:
        self.files.unmount(action.path, flags=action.flags, keeps=action.keeps)

    def change_owner(self, action: ChangeOwner, _run: StepContext) -> None:
        self.files.change_owner(action.path, uid=action.uid, gid=action.gid, mode=action.mode)
