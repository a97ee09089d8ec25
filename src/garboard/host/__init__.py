"""The machine: files, processes, services, clock; the only package that opens files and starts programs.

What to do with the machine is decided elsewhere; this package carries it out and translates its errors.
"""

from garboard.host.file_trees import SYMBOLIC_LINK, read_tree, write_tree
from garboard.host.files import HostFolder, make_folder, read_file, write_file
from garboard.host.folders import list_tree
from garboard.host.machine import Machine
from garboard.host.root import is_folder

__all__ = [
    "SYMBOLIC_LINK",
    "HostFolder",
    "Machine",
    "is_folder",
    "list_tree",
    "make_folder",
    "read_file",
    "read_tree",
    "write_file",
    "write_tree",
]
