"""What the API server refuses of each kind by itself, in CEL: the checks of `garboard fleet render`, and immutability.

Left to `render --check` and the controllers: whether valueJSON is JSON, whether a glob is a pattern, whether `from` has
a bare tilde, and everything that depends on another object. What is kept as it is written cannot be seen by CEL, so
that no rule compares platforms.
"""

from typing import Final

from garboard.documents import Json
from garboard.fleet.crds.schema import CelRule

_CDC, _ENTRY = "ClusterDeploymentCustomization", "spec.installerManifestPatches[]"
_PATCH_LISTS: Final = ("spec.installConfigPatches[]", f"{_ENTRY}.patches[]")
_DEPLOYMENT, _POOL_REF = "ClusterDeployment", "spec.clusterPoolRef"
_PROVISION = "ClusterProvision"

# Without bounds, the API server would expect every rule to cost as much as the largest object could make it cost.
LIMITS: Final[dict[str, dict[str, dict[str, Json]]]] = {
    _CDC: {
        "spec.installConfigPatches": {"maxItems": 1024},
        "spec.installerManifestPatches": {"maxItems": 256},
        f"{_ENTRY}.patches": {"maxItems": 1024},
        f"{_ENTRY}.manifestSelector.glob": {"maxLength": 1024},
        # A tilde stands for itself as ~0, and for a slash as ~1.
        **{f"{each}.path": {"pattern": "^([^~]|~[01])*$"} for each in _PATCH_LISTS},
        # `patch` may be text, a mapping or a list, which CEL cannot see.
        _ENTRY: {"oneOf": [{"required": ["patches"]}, {"required": ["patch"]}]},
    },
    _DEPLOYMENT: {
        "spec.clusterName": {"maxLength": 63},
        "spec.platform": {"minProperties": 1, "maxProperties": 1},
    },
    "ClusterPool": {
        "spec.platform": {"minProperties": 1, "maxProperties": 1},
        "spec.inventory": {"maxItems": 10000},
    },
    _PROVISION: {"spec.metadataJSON": {"format": "byte"}},
}

_PATCH_RULES = tuple(
    rule
    for at in _PATCH_LISTS
    for rule in (
        CelRule(at=f"{at}.path", rule="self == '' || self.startsWith('/')", message="a pointer begins with /"),
        CelRule(
            at=at,
            rule="!(self.op in ['move', 'copy']) || (has(self.from) && self.from.startsWith('/'))",
            message="move and copy need from, the pointer to what is moved or copied, which begins with /",
        ),
    )
)

_CDC_RULES = (
    *_PATCH_RULES,
    CelRule(
        at=f"{_ENTRY}.manifestSelector",
        rule=" || ".join(
            ["has(self.group)"]
            + [f"(has(self.{name}) && self.{name} != '')" for name in ("glob", "kind", "name", "labelSelector")]
        ),
        message="it selects nothing: name files with glob, or objects with group, kind, name, labelSelector",
    ),
    CelRule(
        at=f"{_ENTRY}.manifestSelector.glob",
        rule="!self.startsWith('/')",
        message="it leads out of the work folder: it is absolute",
    ),
    CelRule(
        at=f"{_ENTRY}.manifestSelector.glob",
        rule="!self.split('/').exists(part, part == '..')",
        message="it leads out of the work folder: it has ..",
    ),
    CelRule(
        at=_ENTRY,
        rule="!has(self.type) || self.type == 'json' || !has(self.patches)",
        message="a merge or strategic patch stands in patch, not in patches",
    ),
)

_SHORT_NAME = CelRule(
    at="", rule="self.metadata.name.size() <= 63", message="the name is longer than 63 characters: choose a shorter one"
)


# A word of CEL's own is written so where it is a field.
_ESCAPED: Final = {"namespace": "__namespace__"}


def _same(field: str) -> str:
    name = _ESCAPED.get(field, field)
    return f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"


def _kept(at: str, *fields: str) -> tuple[CelRule, ...]:
    """Fields that are what they were when the object was made."""
    return tuple(CelRule(at=at, rule=_same(each), message=f"{each} cannot be changed") for each in fields)


def _once(at: str, *fields: str) -> tuple[CelRule, ...]:
    """Fields that may be set once, and keep their value from then on."""
    return tuple(
        CelRule(
            at=at,
            rule=f"!has(oldSelf.{each}) || oldSelf.{each} == '' || (has(self.{each}) && self.{each} == oldSelf.{each})",
            message=f"{each} cannot be changed once it is set",
        )
        for each in fields
    )


def _filled(field: str) -> str:
    return f"(has(self.{field}) && self.{field} != '')"


_DEPLOYMENT_RULES = (
    _SHORT_NAME,
    CelRule(
        at="spec",
        rule="!(has(self.installed) && self.installed) || has(self.clusterMetadata)",
        message="an installed cluster needs clusterMetadata",
    ),
    CelRule(
        at="spec",
        rule="!(has(oldSelf.installed) && oldSelf.installed) || (has(self.installed) && self.installed)",
        message="an installed cluster stays installed",
    ),
    CelRule(
        at="spec",
        rule="(has(self.installed) && self.installed) || has(self.provisioning) != has(self.clusterInstallRef)",
        message="one of provisioning and clusterInstallRef is needed, and only one",
    ),
    CelRule(
        at="spec",
        rule=(
            "(has(self.installed) && self.installed) || !has(self.provisioning)"
            " || (has(self.provisioning.installConfigSecretRef) && has(self.provisioning.installConfigSecretRef.name)"
            " && self.provisioning.installConfigSecretRef.name != '')"
        ),
        message="provisioning.installConfigSecretRef.name is missing: name a Secret with the key install-config.yaml",
    ),
    CelRule(
        at="spec.provisioning",
        rule="!(has(self.manifestsConfigMapRef) && has(self.manifestsSecretRef))",
        message="manifestsConfigMapRef and manifestsSecretRef exclude each other",
    ),
    CelRule(
        at="spec",
        rule=(
            "oldSelf.hasValue() || (has(self.installed) && self.installed) || !has(self.clusterPoolRef)"
            " || !has(self.clusterPoolRef.claimName) || self.clusterPoolRef.claimName == ''"
        ),
        message="a new cluster cannot be claimed yet",
        also_when_new=True,
    ),
    *_kept("spec", "clusterName", "baseDomain", "pullSecretRef", "clusterInstallRef", "manageDNS"),
    *_kept("spec", "boundServiceAccountSigningKeySecretRef"),
    CelRule(
        at="spec",
        rule="has(self.provisioning) == has(oldSelf.provisioning)",
        message="provisioning can be neither added nor removed",
    ),
    *_kept("spec.provisioning", "installConfigSecretRef", "customizationRef", "releaseImage", "imageSetRef"),
    *_kept("spec.provisioning", "installerImageOverride", "manifestsConfigMapRef", "manifestsSecretRef"),
    *_kept("spec.provisioning", "sshPrivateKeySecretRef", "sshKnownHosts"),
    CelRule(
        at="spec",
        rule="has(self.clusterPoolRef) == has(oldSelf.clusterPoolRef)",
        message="clusterPoolRef can be neither added nor removed",
    ),
    *_kept(_POOL_REF, "namespace", "poolName", "clusterDeploymentCustomization"),
    *_once(_POOL_REF, "claimName"),
)

_STAGES = {"initializing": ("provisioning", "failed"), "provisioning": ("complete", "failed")}
_PROVISION_RULES = (
    CelRule(
        at="spec.stage",
        rule=" || ".join(
            ["self == oldSelf"]
            + [f"(oldSelf == '{before}' && self in {list(after)})" for before, after in _STAGES.items()]
        ),
        message="stages go from initializing to provisioning to complete, and from the first two to failed",
    ),
    CelRule(
        at="spec",
        rule=f"!(self.stage in ['provisioning', 'complete']) || {_filled('infraID')}",
        message="infraID is needed from the stage provisioning on",
    ),
    CelRule(
        at="spec",
        rule="self.stage != 'complete' || has(self.adminKubeconfigSecretRef)",
        message="adminKubeconfigSecretRef is needed in the stage complete",
    ),
    *_once("spec", "clusterID", "infraID"),
    *(
        CelRule(
            at="spec",
            rule=f"!has(oldSelf.{each}) || (has(self.{each}) && self.{each} == oldSelf.{each})",
            message=f"{each} cannot be changed once it is set",
        )
        for each in ("adminKubeconfigSecretRef", "adminPasswordSecretRef")
    ),
    *_kept("spec", "attempt", "clusterDeploymentRef", "prevClusterID", "prevInfraID", "prevProvisionName"),
)

RULES: Final[dict[str, tuple[CelRule, ...]]] = {
    _CDC: (_SHORT_NAME, *_CDC_RULES),
    _DEPLOYMENT: _DEPLOYMENT_RULES,
    "ClusterPool": (
        _SHORT_NAME,
        CelRule(
            at="spec.imageSetRef",
            rule="has(self.name) && self.name != ''",
            message="the name of the ClusterImageSet is missing",
        ),
    ),
    _PROVISION: _PROVISION_RULES,
}
