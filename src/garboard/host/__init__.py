"""The machine: files, processes, services, clock; the one home of `open()` and `subprocess`.

What to do with the machine is decided elsewhere; this package carries it out and translates its errors.
"""

from garboard.host.files import is_folder, list_tree, make_folder, read_file, write_file
from garboard.host.folder import HostFolder
from garboard.host.machine import Machine

__all__ = ["HostFolder", "Machine", "is_folder", "list_tree", "make_folder", "read_file", "write_file"]
