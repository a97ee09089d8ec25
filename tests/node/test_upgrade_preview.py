"""What a configuration says about `upgrade plan`, beside flags."""

import pytest

from garboard.config import GivenFlags
from garboard.config.flags import FlagValue
from garboard.model.lifecycle import UpgradePlan
from garboard.node.upgrade_preview import as_planned
from garboard.node.workflow import WorkflowRequest

SECTION = UpgradePlan(allow_rc_upgrades=True, etcd_upgrade=False, ignore_preflight_errors=("Swap",), print_config=True)


def flags(given: GivenFlags, section: UpgradePlan = SECTION) -> GivenFlags:
    return as_planned(WorkflowRequest(given), section).flags


def test_section_of_the_plan_counts() -> None:
    found = flags(GivenFlags({"etcd-upgrade": True}))
    assert found.list("ignore-preflight-errors") == ("Swap",)
    assert (found.switch("allow-release-candidate-upgrades"), found.switch("allow-experimental-upgrades")) == (
        True,
        False,
    )
    assert (found.switch("print-config"), found.switch("etcd-upgrade"), "etcd-upgrade" in found.given) == (
        True,
        False,
        True,
    )


def test_flags_come_before_the_section() -> None:
    values: dict[str, FlagValue] = {"etcd-upgrade": True, "ignore-preflight-errors": ("Mem",)}
    found = flags(GivenFlags(values, frozenset(values)))
    assert (found.list("ignore-preflight-errors"), found.switch("etcd-upgrade")) == (("Mem",), True)


def test_documents_have_no_configuration_before_them() -> None:
    request = WorkflowRequest(GivenFlags({"print-config": True}), output="json")
    assert not as_planned(request, SECTION).flags.switch("print-config")


@pytest.mark.parametrize("name", ["print-config", "allow-experimental-upgrades"])
def test_empty_section_leaves_the_flags(name: str) -> None:
    found = flags(GivenFlags({name: True}), UpgradePlan())
    assert found.switch(name)
    assert "etcd-upgrade" not in found.given
