"""A file that a node needs, as a value."""

from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file to write; `directory_mode` is for its folder, should that have to be made."""

    path: str
    content: bytes
    mode: int
    directory_mode: int = 0o700
