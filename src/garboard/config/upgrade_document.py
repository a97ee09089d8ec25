"""UpgradeConfiguration between its document and the model."""

from garboard.config.decoding import DecodedObject, without_empty
from garboard.config.node_documents import (
    patches_document,
    patches_from,
    pull_policy_from,
    timeouts_document,
    timeouts_from,
)
from garboard.documents import Json
from garboard.model.lifecycle import UpgradeApply, UpgradeConfiguration, UpgradeDiff, UpgradeNode, UpgradePlan


def upgrade_from_document(document: DecodedObject) -> UpgradeConfiguration:
    diff = document.object("diff")
    return UpgradeConfiguration(
        apply=_apply(document.object("apply")),
        node=_node(document.object("node")),
        plan=_plan(document.object("plan")),
        diff=UpgradeDiff(kubernetes_version=diff.text("kubernetesVersion"), context_lines=diff.number("contextLines")),
        timeouts=timeouts_from(document),
    )


def upgrade_to_document(upgrade: UpgradeConfiguration) -> dict[str, Json]:
    return {
        "apply": _apply_document(upgrade.apply),
        "node": _node_document(upgrade.node),
        "plan": _plan_document(upgrade.plan),
        "diff": without_empty(
            kubernetesVersion=upgrade.diff.kubernetes_version, contextLines=upgrade.diff.context_lines
        ),
        "timeouts": timeouts_document(upgrade.timeouts),
    }


def _node(document: DecodedObject) -> UpgradeNode:
    return UpgradeNode(
        certificate_renewal=document.flag("certificateRenewal", default=True),
        dry_run=document.choice("dryRun"),
        etcd_upgrade=document.flag("etcdUpgrade", default=True),
        ignore_preflight_errors=document.texts("ignorePreflightErrors"),
        skip_phases=document.texts("skipPhases"),
        patches_directory=patches_from(document),
        image_pull_policy=pull_policy_from(document),
        image_pull_serial=document.flag("imagePullSerial", default=True),
    )


def _node_document(node: UpgradeNode) -> dict[str, Json]:
    return {
        "certificateRenewal": node.certificate_renewal,
        "etcdUpgrade": node.etcd_upgrade,
        "imagePullSerial": node.image_pull_serial,
        **_given(dryRun=node.dry_run),
        **without_empty(
            ignorePreflightErrors=[*node.ignore_preflight_errors],
            skipPhases=[*node.skip_phases],
            imagePullPolicy=node.image_pull_policy,
        ),
        **patches_document(node.patches_directory),
    }


def _apply(document: DecodedObject) -> UpgradeApply:
    node = _node(document)
    return UpgradeApply(
        kubernetes_version=document.text("kubernetesVersion"),
        allow_experimental_upgrades=document.choice("allowExperimentalUpgrades"),
        allow_rc_upgrades=document.choice("allowRCUpgrades"),
        force_upgrade=document.choice("forceUpgrade"),
        print_config=document.choice("printConfig"),
        certificate_renewal=node.certificate_renewal,
        dry_run=node.dry_run,
        etcd_upgrade=node.etcd_upgrade,
        ignore_preflight_errors=node.ignore_preflight_errors,
        skip_phases=node.skip_phases,
        patches_directory=node.patches_directory,
        image_pull_policy=node.image_pull_policy,
        image_pull_serial=node.image_pull_serial,
    )


def _apply_document(apply: UpgradeApply) -> dict[str, Json]:
    return {
        **_node_document(apply),
        **without_empty(kubernetesVersion=apply.kubernetes_version),
        **_given(
            allowExperimentalUpgrades=apply.allow_experimental_upgrades,
            allowRCUpgrades=apply.allow_rc_upgrades,
            forceUpgrade=apply.force_upgrade,
            printConfig=apply.print_config,
        ),
    }


def _plan(document: DecodedObject) -> UpgradePlan:
    return UpgradePlan(
        kubernetes_version=document.text("kubernetesVersion"),
        allow_experimental_upgrades=document.choice("allowExperimentalUpgrades"),
        allow_rc_upgrades=document.choice("allowRCUpgrades"),
        dry_run=document.choice("dryRun"),
        etcd_upgrade=document.flag("etcdUpgrade", default=True),
        ignore_preflight_errors=document.texts("ignorePreflightErrors"),
        print_config=document.choice("printConfig"),
    )


def _plan_document(plan: UpgradePlan) -> dict[str, Json]:
    return {
        "etcdUpgrade": plan.etcd_upgrade,
        **without_empty(
            kubernetesVersion=plan.kubernetes_version, ignorePreflightErrors=[*plan.ignore_preflight_errors]
        ),
        **_given(
            allowExperimentalUpgrades=plan.allow_experimental_upgrades,
            allowRCUpgrades=plan.allow_rc_upgrades,
            dryRun=plan.dry_run,
            printConfig=plan.print_config,
        ),
    }


def _given(**switches: bool | None) -> dict[str, Json]:
    """Return the switches that are set, also those set to false."""
    return {name: value for name, value in switches.items() if value is not None}
