"""The kubelet's package: drained before and uncordoned after if asked, and the commands for who installs it."""

from dataclasses import replace
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import AwaitGate, ControlService, EvictPods, PatchObject, ShowMessage, Step
from garboard.model import KubernetesVersion
from garboard.phases import Phase
from garboard.phases.gates import KubeletHealthy, NodeDrained, NodeReady
from garboard.phases.upgrade.context import UpgradeContext, UpgradeOptions
from garboard.phases.upgrade.kubelet_package import install_command, plan_back_in_service, plan_out_of_service
from garboard.phases.upgrade.tree import APPLY, NODE
from tests.support.phases.preflight.inspectors import MemoryInspector
from tests.support.phases.upgrades import DnsObjects, upgrade_context


class WithNode(DnsObjects):
    """A cluster whose Node has a kubelet of some release, and may be cordoned."""

    node: dict[str, Any]

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        if (kind, name) == ("Node", "node-1"):
            return self.node
        return super().find(kind, namespace, name, api_version=api_version)


def context(kubelet: str = "v1.36.4", *, is_cordoned: bool = False, drains: bool = True) -> UpgradeContext:
    objects = WithNode()
    spec = {"unschedulable": True} if is_cordoned else {}
    objects.node = {
        "metadata": {"name": "node-1"},
        "spec": spec,
        "status": {"nodeInfo": {"kubeletVersion": kubelet}},
    }
    options = UpgradeOptions(is_first=True, drains=drains)
    found = upgrade_context(dns=objects, options=options, files={"/etc/os-release": "ID=debian\n"})
    found.machine.services = {"kubelet"}  # type: ignore[attr-defined]
    return found


def steps(plan: Any, of: UpgradeContext) -> list[Step]:
    return [each for each in plan(of) if isinstance(each, Step)]


def kinds(found: list[Step]) -> list[object]:
    return [type(each.action.gate) if isinstance(each.action, AwaitGate) else type(each.action) for each in found]


def test_node_is_drained_before_and_its_kubelet_restarts_before_pods_come_back() -> None:
    of = context()
    assert kinds(steps(plan_out_of_service, of)) == [PatchObject, EvictPods, NodeDrained]
    back = steps(plan_back_in_service, of)
    assert kinds(back) == [ControlService, KubeletHealthy, NodeReady, PatchObject, ShowMessage]
    assert isinstance(back[3].action, PatchObject)
    assert back[3].action.content == {"spec": {"unschedulable": None}}


@pytest.mark.parametrize(("installed", "told"), [("v1.36.4", [ShowMessage]), ("v1.37.1", [])])
def test_package_that_was_installed_before_the_drain_is_not_asked_for(installed: str, told: list[type]) -> None:
    inspector = MemoryInspector(kubelet=installed)
    back = steps(plan_back_in_service, replace(context(), inspector=inspector))
    assert [each for each in kinds(back) if each is ShowMessage] == told


def test_cordon_of_an_owner_stays_and_the_commands_say_so() -> None:
    of = context(is_cordoned=True)
    assert kinds(steps(plan_out_of_service, of)) == [EvictPods, NodeDrained]
    back = steps(plan_back_in_service, of)
    assert PatchObject not in kinds(back)
    message = back[-1].action
    assert isinstance(message, ShowMessage)
    assert "kubectl uncordon" not in message.text
    assert "was cordoned before, and stays so" in message.text


def test_without_drain_only_the_commands_are_shown_in_their_order() -> None:
    of = context(drains=False)
    assert steps(plan_out_of_service, of) == []
    (shown,) = steps(plan_back_in_service, of)
    assert isinstance(shown.action, ShowMessage)
    text = shown.action.text
    words = ["kubectl drain node-1", "apt-get install", "systemctl restart kubelet", "kubectl uncordon node-1"]
    assert sorted(words, key=text.index) == words
    assert "'kubelet=1.37.1-*'" in text


def test_kubelet_that_is_new_already_needs_no_commands() -> None:
    assert steps(plan_back_in_service, context("v1.37.1", drains=False)) == []
    assert steps(plan_back_in_service, context("v1.37.1+build", drains=False)) == []
    assert steps(plan_back_in_service, context("unknown", drains=False)) == []


@pytest.mark.parametrize(
    ("os_release", "command"),
    [
        pytest.param("ID=debian\n", "apt-get", id="Debian"),
        pytest.param('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n', "apt-get", id="Ubuntu"),
        pytest.param("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "apt-get", id="like Debian"),
        pytest.param('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf", id="like Red Hat"),
        pytest.param('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper", id="openSUSE"),
        pytest.param("ID=nixos\n", "# replace /usr/bin/kubelet", id="another"),
        pytest.param("", "# replace /usr/bin/kubelet", id="nothing said"),
    ],
)
def test_command_is_that_of_the_distribution(os_release: str, command: str) -> None:
    found = install_command(os_release, KubernetesVersion.parse("v1.37.1"))
    assert found.startswith(command)
    assert "1.37.1" in found


@pytest.mark.parametrize("tree", [APPLY, NODE], ids=["apply", "node"])
def test_drain_comes_before_everything_and_uncordon_after_it(tree: tuple[Phase[UpgradeContext], ...]) -> None:
    names = [each.name for each in tree]
    assert names[:2] == ["preflight", "drain"]
    assert [each for each in names if each != "next-nodes"][-1] == "uncordon"
    assert [each.is_hidden for each in tree if each.name in ("drain", "uncordon")] == [True, True]


def test_node_without_a_service_manager_is_drained_all_the_same() -> None:
    of = context()
    of.machine.services = None  # type: ignore[attr-defined]
    assert kinds(steps(plan_back_in_service, of)) == [PatchObject, ShowMessage]
