"""Files and folders as they were before a run."""

from collections.abc import Callable, Iterable, Iterator

from garboard.engine.action import (
    Action,
    ChangeOwner,
    ControlService,
    EmptyFolder,
    MakeFolder,
    RemoveFile,
    RemoveFolder,
    WriteFile,
)
from garboard.engine.before import Before, FileBefore, FileView, FolderBefore, OwnerBefore, temporaries
from garboard.engine.plan import written_by


def restore_files(
    done: Iterable[tuple[Action, Before]], files: FileView, kept: Callable[[str], bytes], *, is_filling: bool = False
) -> Iterator[Action]:
    """Yield what brings files and folders back, the last change first; what is as it was is left alone.

    With `is_filling`, services are still at work in the folders that they fill.
    """
    steps = list(done)
    for folder in _first_filled(steps).values():
        yield from _emptied(folder, files, is_filling=is_filling)
    yield from _removed_temporaries(steps, files)
    coming = _written_by_services(steps) if is_filling else frozenset[str]()
    for path, former in reversed(_first_found(steps).items()):
        if former is None and path in coming:
            yield RemoveFile(path=path)
        else:
            yield from _restored(path, former, files, kept)
    yield from _former_owners(steps, files)
    yield from _removed_folders(steps, files)


def _first_filled(steps: list[tuple[Action, Before]]) -> dict[str, FolderBefore]:
    found: dict[str, FolderBefore] = {}
    for _, before in steps:
        for folder in before.filled:
            found.setdefault(folder.path, folder)
    return found


def _first_found(steps: list[tuple[Action, Before]]) -> dict[str, FileBefore | None]:
    """Return each file as the first step about it found it; None for one that was not there."""
    found: dict[str, FileBefore | None] = {}
    for _, before in steps:
        for path in before.absent_files:
            found.setdefault(path, None)
        for file in before.files:
            found.setdefault(file.path, file)
    return found


def _written_by_services(steps: list[tuple[Action, Before]]) -> frozenset[str]:
    return frozenset(path for action, _ in steps if isinstance(action, ControlService) for path in action.writes)


def _restored(path: str, former: FileBefore | None, files: FileView, kept: Callable[[str], bytes]) -> Iterator[Action]:
    if former is None:
        if files.owner(path) is not None:
            yield RemoveFile(path=path)
        return
    content = kept(former.sha256)
    if files.read(path) != content:
        yield WriteFile(path=path, content=content, mode=former.mode, is_secret=True)
    yield from _former_owner(OwnerBefore(path, former.uid, former.gid, former.mode), files, is_new=True)


def _former_owner(former: OwnerBefore, files: FileView, *, is_new: bool = False) -> Iterator[Action]:
    found = files.owner(former.path)
    # A file that has to be written again belongs to us at first.
    found = (0, 0, former.mode) if found is None and is_new else found
    if found is not None and found != (former.uid, former.gid, former.mode):
        yield ChangeOwner(path=former.path, uid=former.uid, gid=former.gid, mode=former.mode)


def _former_owners(steps: list[tuple[Action, Before]], files: FileView) -> Iterator[Action]:
    found: dict[str, OwnerBefore] = {}
    made = {path for _, before in steps for path in (*before.absent_files, *before.absent_folders)}
    for action, before in steps:
        for each in before.owners:
            found.setdefault(each.path, each)
        if isinstance(action, RemoveFolder):
            yield from (MakeFolder(path=each.path, mode=each.mode) for each in before.owners if each.path not in made)
    for former in found.values():
        if former.path not in made:
            yield from _former_owner(former, files)


def _removed_temporaries(steps: list[tuple[Action, Before]], files: FileView) -> Iterator[Action]:
    for action, before in steps:
        for path in written_by(action):
            for each in temporaries(path, files):
                if each not in before.temporaries:
                    yield RemoveFile(path=each)


def _removed_folders(steps: list[tuple[Action, Before]], files: FileView) -> Iterator[Action]:
    found: dict[str, bool] = {}
    for action, before in steps:
        for path in before.absent_folders:
            found[path] = found.get(path, False) or (isinstance(action, MakeFolder) and path == action.path)
    for path, is_ours in reversed(found.items()):
        if files.owner(path) is None:
            continue
        # A folder that a step of its own made was made to be filled, and whatever is in it came after that.
        if is_ours and files.entries(path):
            yield EmptyFolder(path=path)
        yield RemoveFolder(path=path)


def _emptied(folder: FolderBefore, files: FileView, *, is_filling: bool) -> Iterator[Action]:
    """Yield the removal of what has come into a folder since, and still comes until its service has stopped."""
    if folder.names is None:
        yield from _removed_tree(folder.path, files)
    elif files.has_folder(folder.path) and (is_filling or set(files.entries(folder.path)) - set(folder.names)):
        yield EmptyFolder(path=folder.path, keeps=folder.names)


def _removed_tree(path: str, files: FileView) -> Iterator[Action]:
    if files.has_folder(path):
        yield EmptyFolder(path=path)
        yield RemoveFolder(path=path)
    elif files.owner(path) is not None or path.rpartition("/")[2] in files.entries(path.rpartition("/")[0]):
        yield RemoveFile(path=path)
