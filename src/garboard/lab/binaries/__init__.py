"""The programs of the lab: found in a given folder or the cache, else downloaded, else built from their Go modules.

`Binaries.locate("kubeadm", "v1.36.4")` answers with a path and makes the program first where that is needed.
"""

from garboard.lab.binaries.pins import CLUSTER_PROGRAMS, Pins, Wanted, read_pins
from garboard.lab.binaries.store import Binaries, Found, Source, default_cache

__all__ = ["CLUSTER_PROGRAMS", "Binaries", "Found", "Pins", "Source", "Wanted", "default_cache", "read_pins"]
