"""Comparing what two programs wrote so that a difference can be read."""

from collections.abc import Mapping
from difflib import unified_diff

from tests.support.parity.node_run import FILE_FOLDERS
from tools.harness.machine import FileState, Machine


def differences(ours: Mapping[str, FileState], theirs: Mapping[str, FileState]) -> str:
    """Return how our files differ from theirs: by name, mode and line; nothing if they do not."""
    return "".join(_difference(path, ours.get(path), theirs.get(path)) for path in sorted({*ours, *theirs}))


def _difference(path: str, ours: FileState | None, theirs: FileState | None) -> str:
    if ours == theirs:
        return ""
    if ours is None or theirs is None:
        return f"{path}: only {'theirs' if ours is None else 'ours'}\n"
    modes = f"{path}: mode {ours.mode:o}, theirs {theirs.mode:o}\n" if ours.mode != theirs.mode else ""
    ours_lines, theirs_lines = (each.content.decode().splitlines(keepends=True) for each in (ours, theirs))
    return modes + "".join(unified_diff(theirs_lines, ours_lines, f"theirs {path}", f"ours {path}"))


def owners_and_modes(machine: Machine) -> dict[str, tuple[int, int, int]]:
    """Return user, group and mode of every file and folder that phases make."""
    found = {}
    for top in FILE_FOLDERS:
        for each in (machine.root / top.lstrip("/")).rglob("*"):
            if each.is_relative_to(machine.root / "var/lib/garboard"):
                continue  # the journal, which kubeadm does not have
            state = each.lstat()
            found[str(each.relative_to(machine.root))] = (state.st_uid, state.st_gid, state.st_mode)
    return found
