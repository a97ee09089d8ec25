"""The metadata.json of the installer `garboard`: by it alone all hosts of a cluster are found again. No secrets."""

import json
from typing import get_args

from garboard.documents import Json
from garboard.fleet.installers.contract import BadMetadata, InstallMetadata, read_metadata
from garboard.fleet.installers.host_config import FleetHost, Role
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class HostsMetadata:
    """A cluster by its infraID, the digest of its authority, and its hosts."""

    cluster: InstallMetadata
    authority: str  # the pin of the cluster's CA, as kubeadm has it
    hosts: tuple[FleetHost, ...]

    @property
    def infra_id(self) -> str:
        return self.cluster.infra_id


def hosts_metadata(metadata: HostsMetadata) -> bytes:
    hosts: list[Json] = [
        {"name": each.name, "address": each.address, "role": each.role, "via": list(each.via)}
        for each in metadata.hosts
    ]
    document: dict[str, Json] = {
        "infraID": metadata.cluster.infra_id,
        "clusterID": metadata.cluster.cluster_id,
        "clusterName": metadata.cluster.cluster_name,
        "garboard": {"authority": metadata.authority, "hosts": hosts},
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def read_hosts_metadata(data: bytes | None, *, source: str) -> HostsMetadata:
    cluster = read_metadata(data, source=source)
    own = cluster.document.get("garboard") if isinstance(cluster.document, dict) else None
    if not isinstance(own, dict) or not isinstance(own.get("hosts"), list):
        raise BadMetadata(f"{source} names no hosts", hint="it is not one of the installer garboard")
    listed = own["hosts"]
    assert isinstance(listed, list)
    return HostsMetadata(cluster, str(own.get("authority", "")), tuple(_host(each, source) for each in listed))


def _host(document: Json, source: str) -> FleetHost:
    found = document if isinstance(document, dict) else {}
    name, address, role, via = (found.get(each) for each in ("name", "address", "role", "via"))
    if not isinstance(name, str) or not isinstance(via, list) or not via or role not in get_args(Role):
        raise BadMetadata(f"{source}: a host has no name, role or via")
    return FleetHost(name, str(address), role, tuple(map(str, via)))  # type: ignore[arg-type]  # it is one of them
