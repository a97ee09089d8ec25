"""This machine as one value that satisfies the Protocols of `lab` and `tunnel`: this package as methods, and locks."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from garboard.host import files, processes, removal, trees, web


class Machine:
    """The machine that we run on; for a process without another root, which the methods of `trees` do not know."""

    run = staticmethod(processes.run)
    stream = staticmethod(processes.stream)
    start_detached = staticmethod(processes.start_detached)
    find_program = staticmethod(processes.find_program)
    read_file = staticmethod(files.read_file)
    read_if_there = staticmethod(files.read_if_there)
    write_file = staticmethod(files.write_file)
    read_kernel_file = staticmethod(trees.read_kernel_file)
    write_in_place = staticmethod(trees.write_in_place)
    writing = staticmethod(trees.writing)
    make_folder = staticmethod(files.make_folder)
    make_link = staticmethod(trees.make_link)
    copy_file = staticmethod(trees.copy_file)
    copy_tree = staticmethod(trees.copy_tree)
    link_tree = staticmethod(trees.link_tree)
    copy_attributes = staticmethod(trees.copy_attributes)
    set_attribute = staticmethod(trees.set_attribute)
    change_mode = staticmethod(trees.change_mode)
    rename = staticmethod(trees.rename)
    remove_file = staticmethod(removal.remove_file)
    remove_tree = staticmethod(trees.remove_tree)
    remove_group = staticmethod(trees.remove_group)
    free_bytes = staticmethod(trees.free_bytes)
    fetch = staticmethod(web.fetch)

    @contextmanager
    def locked(self, path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        """Hold the lock file `path` while the block runs; without `wait`, the block learns whether we have it.

        The file is never removed: a process that waits for a removed file would not exclude the next one.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
        try:
            try:
                fcntl.flock(descriptor, kind)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)
