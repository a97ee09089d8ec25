"""What a cluster is: versions, nodes, endpoints; plain values without I/O.

Reading documents into these values is left to `config`, acting on them to `engine` and its edges. The types of the
configuration are imported from their own modules: most commands need few of them, and start-up is measured.
"""

from garboard.model.minors import DEFAULT_VERSION, SUPPORTED_VERSIONS, reference_version
from garboard.model.version import KubernetesVersion, Minor

__all__ = ["DEFAULT_VERSION", "SUPPORTED_VERSIONS", "KubernetesVersion", "Minor", "reference_version"]
