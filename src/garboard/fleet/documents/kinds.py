"""The documents of hive.openshift.io/v1 as users write them: every field of their specs, and no other.

What a field means is left to `requests` and `customize`. Blocks that belong to a cloud are kept as they are written.
"""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

API_VERSION = "hive.openshift.io/v1"

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
# JSON by nature: msgspec has no types that refer to themselves.
AsWritten: TypeAlias = Any
# A platform is one block, such as `none: {}`; what it says is for the installer.
PlatformBlock: TypeAlias = dict[str, AsWritten]
# Go's durations, with the pattern of the CRDs.
GoDurationText: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$")]


class HiveStruct(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of a document, of which every field is known."""


class ObjectName(Struct, frozen=True, kw_only=True, rename="camel"):
    """Metadata, of which a cluster fills in more than is read here."""

    name: Annotated[str, Meta(min_length=1)]
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class NameRef(HiveStruct, frozen=True):
    """A reference to an object of the same namespace."""

    name: str = ""


class HiveObject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """An object; its status is the cluster's and not read."""

    kind_name: ClassVar[str] = ""
    is_namespaced: ClassVar[bool] = True

    api_version: str
    kind: str
    metadata: ObjectName
    status: AsWritten = None


class PatchEntity(HiveStruct, frozen=True):
    """One operation of RFC 6902 as Hive spells it; `value` is always text, `valueJSON` any JSON."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str
    from_: str = msgspec.field(default="", name="from")
    value: str = ""
    value_json: str = msgspec.field(default="", name="valueJSON")

    def __repr__(self) -> str:
        return f"PatchEntity({self.op} {self.path})"  # a value may be a secret


class ManifestSelector(HiveStruct, frozen=True):
    """Which manifests: by the names of their files, and of our own by what they hold."""

    glob: str = ""
    group: str | None = None
    kind: str = ""
    name: str = ""
    label_selector: str = ""


class ManifestPatchEntry(HiveStruct, frozen=True):
    """Patches for the manifests that a selector matches; `type`, `patch` and `onNoMatch` are our own."""

    manifest_selector: ManifestSelector
    patches: list[PatchEntity] | UnsetType = UNSET
    type: Literal["json", "merge", "strategic"] = "json"
    patch: str | dict[str, AsWritten] | list[AsWritten] | UnsetType = UNSET
    on_no_match: Literal["fail", "warn"] = "fail"

    def __repr__(self) -> str:
        return f"ManifestPatchEntry({self.manifest_selector!r})"


class CustomizationSpec(HiveStruct, frozen=True):
    install_config_patches: list[PatchEntity] = []
    installer_manifest_patches: list[ManifestPatchEntry] = []
    compat: bool = False  # our own: `replace` may add, as in Hive


class ClusterDeploymentCustomization(HiveObject, frozen=True):
    kind_name: ClassVar[str] = "ClusterDeploymentCustomization"
    spec: CustomizationSpec = CustomizationSpec()


class InstallerVariable(HiveStruct, frozen=True):
    """A variable of the installer; its value may be a secret and is not shown."""

    name: str
    value: str = ""
    value_from: AsWritten = None

    def __repr__(self) -> str:
        return f"InstallerVariable(name={self.name!r})"


class Provisioning(HiveStruct, frozen=True):
    install_config_secret_ref: NameRef | None = None
    customization_ref: NameRef | None = None
    release_image: str = ""
    image_set_ref: NameRef | None = None
    installer_image_override: str = ""
    manifests_config_map_ref: NameRef | None = None
    manifests_secret_ref: NameRef | None = None
    ssh_private_key_secret_ref: NameRef | None = None
    ssh_known_hosts: list[str] = []
    installer_env: list[InstallerVariable] = []


class ClusterPoolReference(HiveStruct, frozen=True):
    namespace: str
    pool_name: str
    claim_name: str = ""
    claimed_timestamp: str | None = None
    customization_ref: NameRef | None = msgspec.field(default=None, name="clusterDeploymentCustomization")


class ClusterMetadata(HiveStruct, frozen=True):
    cluster_id: str = msgspec.field(name="clusterID")
    infra_id: str = msgspec.field(name="infraID")
    admin_kubeconfig_secret_ref: NameRef
    admin_password_secret_ref: NameRef | None = None
    metadata_json_secret_ref: NameRef | None = msgspec.field(default=None, name="metadataJSONSecretRef")
    platform: AsWritten = None


class ClusterInstallReference(HiveStruct, frozen=True):
    group: str
    version: str
    kind: str
    name: str


class DeploymentSpec(HiveStruct, frozen=True):
    cluster_name: str
    base_domain: str
    platform: PlatformBlock
    pull_secret_ref: NameRef | None = None
    preserve_on_delete: bool = False
    installed: bool = False
    cluster_metadata: ClusterMetadata | None = None
    provisioning: Provisioning | None = None
    cluster_install_ref: ClusterInstallReference | None = None
    cluster_pool_ref: ClusterPoolReference | None = None
    power_state: Literal["", "Running", "Hibernating"] = ""
    hibernate_after: GoDurationText | None = None
    install_attempts_limit: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    manage_dns: bool = msgspec.field(default=False, name="manageDNS")
    ingress: list[AsWritten] = []
    certificate_bundles: list[AsWritten] = []
    control_plane_config: AsWritten = None
    bound_service_account_signing_key_secret_ref: NameRef | None = msgspec.field(
        default=None, name="boundServiceAccountSigningKeySecretRef"
    )


class ClusterDeployment(HiveObject, frozen=True):
    kind_name: ClassVar[str] = "ClusterDeployment"
    spec: DeploymentSpec


class InventoryEntry(HiveStruct, frozen=True):
    name: Annotated[str, Meta(min_length=1)]
    kind: Literal["", "ClusterDeploymentCustomization"] = "ClusterDeploymentCustomization"


class ClaimLifetime(HiveStruct, frozen=True):
    default: GoDurationText | None = None
    maximum: GoDurationText | None = None


class HibernationConfig(HiveStruct, frozen=True):
    resume_timeout: GoDurationText | None = None


class PoolSpec(HiveStruct, frozen=True):
    platform: PlatformBlock
    base_domain: str
    image_set_ref: NameRef
    size: Count
    pull_secret_ref: NameRef | None = None
    running_count: Count = 0
    max_size: Count | None = None
    max_concurrent: Count | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    install_config_secret_template_ref: NameRef | None = None
    hibernate_after: GoDurationText | None = None
    install_attempts_limit: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    installer_env: list[InstallerVariable] = []
    skip_machine_pools: bool = False
    claim_lifetime: ClaimLifetime | None = None
    hibernation_config: HibernationConfig | None = None
    inventory: list[InventoryEntry] = []
    customization_ref: NameRef | None = None


class ClusterPool(HiveObject, frozen=True):
    kind_name: ClassVar[str] = "ClusterPool"
    spec: PoolSpec


class ImageSetSpec(HiveStruct, frozen=True):
    release_image: str


class ClusterImageSet(HiveObject, frozen=True):
    kind_name: ClassVar[str] = "ClusterImageSet"
    is_namespaced: ClassVar[bool] = False
    spec: ImageSetSpec


class RbacSubject(HiveStruct, frozen=True):
    kind: str
    name: str
    api_group: str = ""
    namespace: str = ""


class ClaimSpec(HiveStruct, frozen=True):
    cluster_pool_name: str
    subjects: list[RbacSubject] = []
    namespace: str = ""
    lifetime: GoDurationText | None = None


class ClusterClaim(HiveObject, frozen=True):
    kind_name: ClassVar[str] = "ClusterClaim"
    spec: ClaimSpec


class NamedObject(Struct, frozen=True, kw_only=True, rename="camel"):
    """A Secret or a ConfigMap: content by name. Neither it nor its fields are ever shown."""

    kind_name: ClassVar[str] = ""
    is_namespaced: ClassVar[bool] = True

    api_version: str
    kind: str
    metadata: ObjectName
    data: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"{self.kind}({self.metadata.namespace}/{self.metadata.name})"


class SecretObject(NamedObject, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    kind_name: ClassVar[str] = "Secret"
    string_data: dict[str, str] = {}
    type: str = "Opaque"
    immutable: bool = False


class ConfigMapObject(NamedObject, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    kind_name: ClassVar[str] = "ConfigMap"
    binary_data: dict[str, str] = {}
    immutable: bool = False


FleetObject: TypeAlias = (
    ClusterDeployment
    | ClusterDeploymentCustomization
    | ClusterPool
    | ClusterImageSet
    | ClusterClaim
    | SecretObject
    | ConfigMapObject
)
KINDS: dict[tuple[str, str], type[FleetObject]] = {
    **{
        (API_VERSION, kind.kind_name): kind
        for kind in (
            ClusterDeployment,
            ClusterDeploymentCustomization,
            ClusterPool,
            ClusterImageSet,
            ClusterClaim,
        )
    },
    ("v1", "Secret"): SecretObject,
    ("v1", "ConfigMap"): ConfigMapObject,
}
# What Hive has beside these, and a file of documents may hold: it says nothing about how a cluster is made.
OTHER_KINDS = frozenset(
    (
        "Checkpoint", "ClusterDeprovision", "ClusterProvision", "ClusterRelocate", "ClusterState", "DNSZone",
        "HiveConfig", "MachinePool", "MachinePoolNameLease", "SelectorSyncIdentityProvider", "SelectorSyncSet",
        "SyncIdentityProvider", "SyncSet",
    )
)  # fmt: skip
