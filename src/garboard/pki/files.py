"""Files of certificates and kubeconfigs: the folder that holds them, and which modes new ones get."""

from collections.abc import Iterable
from dataclasses import field
from typing import Protocol

from garboard.values import dataclass

CERTIFICATE_MODE = 0o644
SECRET_MODE = 0o600
FOLDER_MODE = 0o755


class Folder(Protocol):
    """A folder of files by relative name: /etc/kubernetes/pki on a machine, a mapping in a test."""

    def read(self, name: str) -> bytes | None:
        """Return the content, or None when there is no such file."""
        ...

    def write(self, name: str, data: bytes, *, new_mode: int) -> None:
        """Replace the content; a file that is new gets `new_mode`, an existing one keeps its own."""
        ...

    def path_of(self, name: str) -> str:
        """Return how to call the file in a message."""
        ...


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written, below the certificate or kubeconfig folder."""

    name: str
    data: bytes = field(repr=False)
    mode: int


def write_files(folder: Folder, files: Iterable[NewFile]) -> None:
    for each in files:
        folder.write(each.name, each.data, new_mode=each.mode)
