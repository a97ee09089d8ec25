"""What `upgrade apply`, `node`, `plan` and `diff` are asked to do.

A switch that is `None` was not given in the file: a flag, or its own default, decides.
"""

from dataclasses import field

from garboard.model.node import DEFAULT_IMAGE_PULL_POLICY, ImagePullPolicy, Timeouts
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeNode:
    certificate_renewal: bool = True
    dry_run: bool | None = None
    etcd_upgrade: bool = True
    ignore_preflight_errors: tuple[str, ...] = ()
    skip_phases: tuple[str, ...] = ()
    patches_directory: str | None = None  # "": patches were asked for without a directory
    image_pull_policy: ImagePullPolicy = DEFAULT_IMAGE_PULL_POLICY
    image_pull_serial: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeApply(UpgradeNode):
    kubernetes_version: str = ""
    allow_experimental_upgrades: bool | None = None
    allow_rc_upgrades: bool | None = None
    force_upgrade: bool | None = None
    print_config: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    kubernetes_version: str = ""
    allow_experimental_upgrades: bool | None = None
    allow_rc_upgrades: bool | None = None
    dry_run: bool | None = None
    etcd_upgrade: bool = True
    ignore_preflight_errors: tuple[str, ...] = ()
    print_config: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeDiff:
    kubernetes_version: str = ""
    context_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeConfiguration:
    apply: UpgradeApply = field(default_factory=UpgradeApply)
    node: UpgradeNode = field(default_factory=UpgradeNode)
    plan: UpgradePlan = field(default_factory=UpgradePlan)
    diff: UpgradeDiff = field(default_factory=UpgradeDiff)
    timeouts: Timeouts = field(default_factory=Timeouts)
