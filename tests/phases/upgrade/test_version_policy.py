"""Which versions are refused, with which rule, and what --force lets pass."""

import pytest

from garboard.config import resolve_version
from garboard.errors import BadUsage
from garboard.model.version import KubernetesVersion
from garboard.phases.upgrade.version_policy import UpgradeRequest, broken_rules, refuse_version

OLD, NEW = KubernetesVersion(1, 36, 4), KubernetesVersion(1, 37, 1)


def asked(
    target: str,
    cluster: KubernetesVersion = OLD,
    *,
    kubelet: KubernetesVersion = OLD,
    experimental: bool = False,
    candidates: bool = False,
) -> UpgradeRequest:
    return UpgradeRequest(
        cluster=cluster,
        target=resolve_version(target),
        kubelets={"cp-1": kubelet},
        allows_experimental=experimental,
        allows_candidates=candidates,
    )


@pytest.mark.parametrize(
    ("target", "cluster"),
    [("v1.37.1", OLD), ("v1.37.0", OLD), ("v1.36.4", KubernetesVersion(1, 36, 0)), ("v1.36.0", OLD), ("v1.37.1", NEW)],
)
def test_patches_of_a_minor_and_the_next_minor_are_allowed(target: str, cluster: KubernetesVersion) -> None:
    assert refuse_version(asked(target, cluster), is_forced=False) == ()


@pytest.mark.parametrize(
    ("target", "cluster", "rule"),
    [
        ("v1.38.0", NEW, "garboard has 1.36 and 1.37, not 1.38"),
        ("v1.35.8", OLD, "garboard has 1.36 and 1.37, not 1.35"),
        ("v1.37.1", KubernetesVersion(1, 35, 8), "v1.35.8 can go to 1.36, and v1.37.1 is further away"),
        ("v1.36.4", NEW, "never goes down a minor: the cluster has v1.37.1, the target is v1.36.4"),
    ],
)
def test_absolute_rules_hold_under_force(target: str, cluster: KubernetesVersion, rule: str) -> None:
    with pytest.raises(BadUsage) as refused:
        refuse_version(asked(target, cluster), is_forced=True)
    assert "these fatal errors:\n\t- " in refused.value.message
    assert rule in refused.value.message
    assert refused.value.error_class == "version-skew"


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (asked("v1.37.9"), "newer than v1.37.1"),
        (asked("v1.37.0-rc.1"), "--allow-release-candidate-upgrades"),
        (asked("v1.37.0-beta.0"), "--allow-experimental-upgrades"),
        (asked("v1.37.0-beta.0", candidates=True), "--allow-experimental-upgrades"),
        (asked("v1.37.1", kubelet=KubernetesVersion(1, 33, 9)), "have to be 1.34 at least: cp-1"),
        (asked("v1.36.4", kubelet=NEW), "must not be newer than the control plane, v1.36.4: cp-1"),
        (UpgradeRequest(cluster=OLD, target=resolve_version("v1.37.1"), kubelets={}), "unknown"),
    ],
)
def test_other_rules_need_force(request_: UpgradeRequest, rule: str) -> None:
    with pytest.raises(BadUsage) as refused:
        refuse_version(request_, is_forced=False)
    assert rule in refused.value.message
    assert "--force" in str(refused.value.hint)
    warned = refuse_version(request_, is_forced=True)
    assert any(rule in text for text in warned)


@pytest.mark.parametrize(
    "request_",
    [
        asked("v1.37.0-rc.1", candidates=True),
        asked("v1.37.0-rc.1", experimental=True),
        asked("v1.37.0-beta.0", experimental=True),
        asked("v1.37.1", kubelet=KubernetesVersion(1, 34, 0)),
    ],
)
def test_what_was_allowed_breaks_no_rule(request_: UpgradeRequest) -> None:
    assert not [*broken_rules(request_)]


def test_all_broken_rules_are_told_at_once() -> None:
    request_ = asked("v1.36.9-beta.0", NEW, kubelet=NEW)
    with pytest.raises(BadUsage) as refused:
        refuse_version(request_, is_forced=True)
    assert refused.value.message.count("\n\t- ") == 4
