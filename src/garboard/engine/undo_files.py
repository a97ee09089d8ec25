"""Undo of files and folders: they become what the pre-images of a run say, but for what somebody else wrote since."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

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
from garboard.engine.plan import Step
from garboard.engine.pre_image import (
    FilePreImage,
    FileView,
    FolderPreImage,
    OwnerPreImage,
    PreImage,
    digest_of,
    first_found,
    temporaries,
)
from garboard.engine.traits import traits_of
from garboard.engine.undo_running import filled_folders
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step that has begun, its pre-image, and its outcomes if it has ended."""

    step: Step
    before: PreImage
    outcomes: Mapping[str, str]
    facts: tuple[Mapping[str, str], ...] = ()  # what its attempts recorded
    latest: Mapping[str, str] = field(default_factory=dict)  # what the last one did


def pairs_of(done: Iterable[BegunStep]) -> list[tuple[Action, PreImage]]:
    return [(each.step.action, each.before) for each in done]


def foreign_files(done: Iterable[BegunStep], files: FileView) -> frozenset[str]:
    """Return the files that hold neither what the run wrote nor what it found: somebody else has written them since.

    What a service makes is not known by its content, and is never among them.
    """
    steps = list(done)
    services = written_by_services(pairs_of(steps))
    paths = first_found(each.before for each in steps)
    return frozenset(path for path in paths if path not in services and _is_foreign(path, steps, files))


def _is_foreign(path: str, steps: list[BegunStep], files: FileView) -> bool:
    found = files.read(path)
    if found is None:
        return False
    digest = digest_of(found)
    for each in steps:
        is_former = any(file.path == path and file.sha256 == digest for file in each.before.files)
        if is_former or traits_of(each.step.action).wrote(each.step.action, path, found, each.facts):
            return False
    return True


def restore_files(
    done: Iterable[tuple[Action, PreImage]],
    files: FileView,
    kept: Callable[[str], bytes],
    foreign: frozenset[str] = frozenset(),
    *,
    is_filling: bool = False,
) -> Iterator[Action]:
    """Yield what restores files and folders, the last change first; what is as it was is left alone.

    Files that are `foreign` stay. With `is_filling`, services are still writing to their folders.
    """
    steps = list(done)
    for folder in filled_folders(steps).values():
        yield from _emptied(folder, files, is_filling=is_filling)
    yield from removed_temporaries(steps, files)
    yield from _removed_new_files(steps, files)
    coming = written_by_services(steps) if is_filling else frozenset[str]()
    for path, former in reversed(first_found(before for _, before in steps).items()):
        if former is None and path in coming:
            yield RemoveFile(path=path)
        elif path not in foreign:
            yield from _restored(path, former, files, kept)
    yield from _former_owners(steps, files)
    yield from _removed_folders(steps, files, foreign)


def written_by_services(steps: list[tuple[Action, PreImage]]) -> frozenset[str]:
    return frozenset(path for action, _ in steps if isinstance(action, ControlService) for path in action.writes)


def _filled_by_services(steps: list[tuple[Action, PreImage]]) -> Iterator[str]:
    """Yield every file and folder that services of the run write to."""
    for action, _ in steps:
        if isinstance(action, ControlService):
            yield from (*action.fills, *action.writes)


def _restored(
    path: str, former: FilePreImage | None, files: FileView, kept: Callable[[str], bytes]
) -> Iterator[Action]:
    if former is None:
        if files.owner(path) is not None:
            yield RemoveFile(path=path)
        return
    content = kept(former.sha256)
    if files.read(path) != content:
        yield WriteFile(path=path, content=content, mode=former.mode, is_secret=True)
    yield from _former_owner(OwnerPreImage(path, former.uid, former.gid, former.mode), files, is_new=True)


def put_back(path: str, former: FilePreImage | None, kept: Callable[[str], bytes]) -> Iterator[Action]:
    """Yield what restores a file that is away."""
    if former is not None:
        yield WriteFile(path=path, content=kept(former.sha256), mode=former.mode, is_secret=True)
        if (former.uid, former.gid) != (0, 0):
            yield ChangeOwner(path=path, uid=former.uid, gid=former.gid, mode=former.mode)


def _former_owner(former: OwnerPreImage, files: FileView, *, is_new: bool = False) -> Iterator[Action]:
    found = files.owner(former.path)
    # A file that has to be written again belongs to us at first.
    found = (0, 0, former.mode) if found is None and is_new else found
    if found is not None and found != (former.uid, former.gid, former.mode):
        yield ChangeOwner(path=former.path, uid=former.uid, gid=former.gid, mode=former.mode)


def _former_owners(steps: list[tuple[Action, PreImage]], files: FileView) -> Iterator[Action]:
    found: dict[str, OwnerPreImage] = {}
    made = {path for _, before in steps for path in (*before.absent_files, *before.absent_folders)}
    for action, before in steps:
        for each in before.owners:
            found.setdefault(each.path, each)
        if isinstance(action, RemoveFolder):
            yield from (MakeFolder(path=each.path, mode=each.mode) for each in before.owners if each.path not in made)
    for former in found.values():
        if former.path not in made:
            yield from _former_owner(former, files)


def removed_temporaries(steps: list[tuple[Action, PreImage]], files: FileView) -> Iterator[Action]:
    for action, before in steps:
        for path in traits_of(action).writes(action):
            for each in temporaries(path, files):
                if each not in before.temporaries:
                    yield RemoveFile(path=each)


def _removed_new_files(steps: list[tuple[Action, PreImage]], files: FileView) -> Iterator[Action]:
    for path in dict.fromkeys(path for _, before in steps for path in before.new_files):
        if files.owner(path) is not None:
            yield RemoveFile(path=path)


def _removed_folders(
    steps: list[tuple[Action, PreImage]], files: FileView, foreign: frozenset[str]
) -> Iterator[Action]:
    found: dict[str, bool] = {}
    for action, before in steps:
        for path in before.absent_folders:
            found[path] = found.get(path, False) or (isinstance(action, MakeFolder) and path == action.path)
    for path, is_ours in reversed(found.items()):
        if files.owner(path) is None:
            continue
        # A folder that a step of its own made was made to be filled, and whatever is in it came after that.
        if is_ours and files.entries(path):
            inside = (each.removeprefix(f"{path}/") for each in sorted(foreign) if each.startswith(f"{path}/"))
            keeps = tuple(dict.fromkeys(each.split("/")[0] for each in inside))
            is_quiet = not any(f"{each}/".startswith(f"{path}/") for each in _filled_by_services(steps))
            yield EmptyFolder(path=files.resolve(path), keeps=keeps, is_resolved=True, is_quiet=is_quiet)
        yield RemoveFolder(path=path)


def _emptied(folder: FolderPreImage, files: FileView, *, is_filling: bool) -> Iterator[Action]:
    """Yield the removal of what was added to a folder since, and is added until its service has stopped."""
    if folder.names is None:
        yield from _removed_tree(folder.path, files)
    elif files.has_folder(folder.path) and (is_filling or set(files.entries(folder.path)) - set(folder.names)):
        yield EmptyFolder(path=files.resolve(folder.path), keeps=folder.names, is_resolved=True)


def _removed_tree(path: str, files: FileView) -> Iterator[Action]:
    if files.has_folder(path):
        yield EmptyFolder(path=files.resolve(path), is_resolved=True)
        yield RemoveFolder(path=path)
    elif files.owner(path) is not None or path.rpartition("/")[2] in files.entries(path.rpartition("/")[0]):
        yield RemoveFile(path=path)


def changed_since(done: Iterable[BegunStep], files: FileView, *, is_done: bool) -> frozenset[str]:
    """Return the files that somebody else has written since the run did, or, if the run is done, has removed."""
    steps = list(done)
    left: dict[str, bool] = {}
    for each in steps:
        is_there = not isinstance(each.step.action, RemoveFile)
        left.update(dict.fromkeys(traits_of(each.step.action).writes(each.step.action), is_there))
    removed = (path for path, is_there in left.items() if is_there and files.owner(path) is None)
    return foreign_files(steps, files) | frozenset(removed if is_done else ())
