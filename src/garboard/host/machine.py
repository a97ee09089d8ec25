"""This machine as one value, for code that takes a Protocol: it only gathers the functions of this package."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from garboard.host import files, processes, web


class Machine:
    """The machine that we run on."""

    run = staticmethod(processes.run)
    stream = staticmethod(processes.stream)
    start_detached = staticmethod(processes.start_detached)
    find_program = staticmethod(processes.find_program)
    read_file = staticmethod(files.read_file)
    write_file = staticmethod(files.write_file)
    fetch = staticmethod(web.fetch)

    @contextmanager
    def locked(self, path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        """Hold the lock file `path` while the block runs; without `wait`, the block learns whether we have it.

        The file stays there: a removed lock would lock nobody out.
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
