"""Captured patches as further files of a directory of patches: under names that sort behind those that are there."""

from collections.abc import Collection, Iterable, Sequence

from garboard.drift.capture import CapturedFile, marker_file, needs_marker
from garboard.patches import MARKER


def has_folders_for_kubeadm(names: Collection[str]) -> bool:
    """Say whether a directory has folders that kubeadm reads: as a tree of ours it would lose them."""
    return MARKER not in names and any("/" in each for each in names)


def placed_files(names: Iterable[str], captured: Sequence[CapturedFile], node_name: str) -> dict[str, str]:
    """Return the files that are added to a directory, by their paths; in a tree of ours they are those of one node."""
    taken = set(names)
    is_tree = MARKER in taken
    added: dict[str, str] = {}
    if not is_tree and needs_marker(captured):
        added[marker_file().name] = ""
    folder = f"node/{node_name}/" if is_tree else ""
    for each in captured:
        path = _free_name(f"{folder}{each.name}", taken)
        taken.add(path)
        added[path] = each.text
    return added


def _free_name(path: str, taken: Collection[str]) -> str:
    """Return a name that sorts behind what is there, and that no file has."""
    stem, plus, rest = path.partition("+")
    number = 1
    while (name := f"{stem}{number if number > 1 else ''}{plus}{rest}") in taken:
        number += 1
    return name
