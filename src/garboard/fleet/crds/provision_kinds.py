"""The kinds that controllers make, and nobody writes into a file: one attempt to make a cluster, and its removal."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from garboard.fleet.documents.kinds import AsWritten, Count, HiveStruct, NameRef, PlatformBlock


class ProvisionAttemptSpec(HiveStruct, frozen=True):
    """The spec of a ClusterProvision."""

    cluster_deployment_ref: NameRef
    pod_spec: dict[str, AsWritten]
    attempt: Count
    stage: Literal["initializing", "provisioning", "complete", "failed"]
    cluster_id: str = msgspec.field(default="", name="clusterID")
    infra_id: str = msgspec.field(default="", name="infraID")
    install_log: str = ""
    metadata: AsWritten = None
    metadata_json: Annotated[str, Meta(description="base64")] = msgspec.field(default="", name="metadataJSON")
    admin_kubeconfig_secret_ref: NameRef | None = None
    admin_password_secret_ref: NameRef | None = None
    prev_cluster_id: str = msgspec.field(default="", name="prevClusterID")
    prev_infra_id: str = msgspec.field(default="", name="prevInfraID")
    prev_provision_name: str = ""


class DeprovisionSpec(HiveStruct, frozen=True):
    """The spec of a ClusterDeprovision; `metadataJSONSecretRef` is our own."""

    infra_id: str = msgspec.field(name="infraID")
    cluster_id: str = msgspec.field(default="", name="clusterID")
    cluster_name: str = ""
    base_domain: str = ""
    platform: PlatformBlock | None = None
    metadata_json_secret_ref: NameRef | None = msgspec.field(default=None, name="metadataJSONSecretRef")
