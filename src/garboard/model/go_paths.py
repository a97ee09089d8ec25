"""Paths joined, cleaned and cut as Go's filepath does it."""

import posixpath


def join_path(*parts: str) -> str:
    """Join the parts that are not empty, and clean the outcome."""
    return clean_path("/".join(part for part in parts if part))


def clean_path(path: str) -> str:
    cleaned = posixpath.normpath(path)
    # POSIX lets two leading slashes mean something of their own; Go does not.
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def parent_of(path: str) -> str:
    """Return the folder of a file: `.` for no path at all."""
    return clean_path(path[: path.rfind("/") + 1])
