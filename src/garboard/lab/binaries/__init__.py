"""The programs of the lab: found in a given folder or the cache, else downloaded, else built from their Go modules.

`Binaries.locate("kubeadm", "v1.36.4")` answers with a path and makes the program first where that is needed.
"""

from garboard.lab.binaries.build import SHARED_FLAGS
from garboard.lab.binaries.pins import CLUSTER_PROGRAMS, Pins, Wanted, read_pins
from garboard.lab.binaries.store import BUILD_FOLDERS, Binaries, BinarySource, Found, default_cache, go_modules_folder

__all__ = [
    "BUILD_FOLDERS", "CLUSTER_PROGRAMS", "SHARED_FLAGS", "Binaries", "BinarySource", "Found", "Pins", "Wanted",
    "default_cache", "go_modules_folder", "read_pins",
]  # fmt: skip
