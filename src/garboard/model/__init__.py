"""What a cluster is: versions, nodes, endpoints; plain values without I/O.

Reading documents into these values is left to `config`, acting on them to `engine` and its edges.
"""

from garboard.model.version import DEFAULT_VERSION, SUPPORTED_VERSIONS, KubernetesVersion, Minor, reference_version

__all__ = ["DEFAULT_VERSION", "SUPPORTED_VERSIONS", "KubernetesVersion", "Minor", "reference_version"]
