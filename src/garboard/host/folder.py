"""A folder of this machine whose files are addressed by relative name."""

from pathlib import Path

from garboard.host.files import file_owner, make_folder, read_if_there, write_file
from garboard.model.go_paths import clean_path


class HostFolder:
    """Files below `root`; folders on the way to a new one are made.

    `..` takes back the name before it, as it does in every path that kubeadm joins: that folder need not be there.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(clean_path(str(root)))

    def read(self, name: str) -> bytes | None:
        """Return the content, or None when there is no such file; an absolute name is taken as it is."""
        return read_if_there(self.root / name)

    def write(self, name: str, data: bytes, *, new_mode: int) -> None:
        """Replace the content in one move; a new file gets `new_mode`, an existing one keeps its own."""
        path = self.root / name
        make_folder(path.parent)
        write_file(path, data, mode=new_mode if file_owner(path) is None else None)

    def path_of(self, name: str) -> str:
        return str(self.root / name)
