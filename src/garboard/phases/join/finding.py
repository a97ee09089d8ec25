"""From a configuration to the cluster it means: found, proven, and read."""

from garboard.config import HostFacts
from garboard.model.lifecycle import JoinConfiguration
from garboard.phases.join.cluster import JoinedCluster, read_cluster
from garboard.phases.join.discovery import Discovered, Doors, discover, retried

_SOURCE = "the credentials of this join"


def find_cluster(
    config: JoinConfiguration, doors: Doors, host: HostFacts, *, downloads: bool
) -> tuple[Discovered, JoinedCluster]:
    """Return the cluster and what it says; with `downloads`, also what its control planes share, if there is a key."""
    found = discover(config, doors)
    api = doors.entered(found.kubeconfig.to_bytes(), _SOURCE)
    key = config.control_plane.certificate_key if config.control_plane and downloads else ""
    name = config.node_registration.name
    cluster = retried(
        lambda: read_cluster(api, host, node_name=name, certificate_key=key), doors, config.timeouts.kubernetes_api_call
    )
    return found, cluster
