"""The machine: files, processes, services, clock; the one home of `open()` and `subprocess`.

What to do with the machine is decided elsewhere; this package carries it out and translates its errors.
"""

from garboard.host.files import list_tree, make_folder, read_file, write_file
from garboard.host.folder import HostFolder

__all__ = ["HostFolder", "list_tree", "make_folder", "read_file", "write_file"]
