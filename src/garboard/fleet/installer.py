"""What rendering asks of an installer; drivers satisfy it, and fakes in tests."""

from collections.abc import Mapping
from typing import Protocol

from garboard.fleet.customize import TreeEntry


class ManifestSource(Protocol):
    """Makes the files between `create manifests` and `create ignition-configs`."""

    def create_manifests(self, install_config: bytes) -> Mapping[str, TreeEntry]:
        """Return the files of the work folder by their paths, after `create manifests` with this install config."""
