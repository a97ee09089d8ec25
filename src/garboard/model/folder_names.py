"""Names that belong into a folder, as a tuple of paths from it.

`ca.crt` and `etcd/ca.crt` are files, and the folder `etcd` belongs with its file; `pods/` is a folder with all in it.
"""

import re

# What a write that was killed leaves beside the file it was about.
_TEMPORARY = re.compile(r"(.*/)?\.(.+)\.[a-z0-9_]{8}")


def is_covered(path: str, names: tuple[str, ...]) -> bool:
    """Say whether a path belongs into the folder; that of a folder ends with a slash, and any other one is a file's.

    A file or a link that has the name of a folder does not belong there.
    """
    if any(name.endswith("/") and path.startswith(name) for name in names):
        return True
    if path.endswith("/"):
        return any(name.startswith(path) for name in names)
    temporary = _TEMPORARY.fullmatch(path)
    return path in names or (temporary is not None and f"{temporary[1] or ''}{temporary[2]}" in names)


def is_covered_whole(path: str, names: tuple[str, ...]) -> bool:
    """Say whether a path is a folder that belongs with all that is in it, or is in one."""
    return any(name.endswith("/") and f"{path}/".startswith(name) for name in names)
