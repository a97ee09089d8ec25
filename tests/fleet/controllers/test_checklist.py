"""What Hive's own tests prove about pools, claims and deployments, each in its own words; names are Hive's."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.attempt import documents_name
from garboard.fleet.controllers.cache import claim_of, own_customization, shared_customization
from garboard.fleet.controllers.conditions import condition, is_status, reason_of
from garboard.fleet.controllers.deciding import WATCHED_KINDS
from garboard.fleet.controllers.marks import CREATING, REMOVE, REPLACE_STALE, SPEC_HASH
from garboard.fleet.controllers.provisions import pause_after
from garboard.kube import ObjectRef
from tests.support.fleet.model_fleet import CONFIG, ModelFleet, encoded

RBAC = "rbac.authorization.k8s.io"
CDC = "ClusterDeploymentCustomization"


def told(story: Callable[[ModelFleet], Awaitable[None]], *, has_dependencies: bool = True) -> None:
    async def going() -> None:
        fleet = ModelFleet(1, controllers=1)
        if has_dependencies:
            fleet.dependencies()
        await story(fleet)

    asyncio.run(going())


def pool(fleet: ModelFleet, name: str = "edge") -> Stored:
    return next(each for each in fleet.objects("ClusterPool") if each.name == name)


def entry(fleet: ModelFleet, name: str, namespace: str = "fleet") -> Stored:
    found = fleet.api.get(CDC, namespace, name)
    assert found is not None
    return Stored(found)


def clusters(fleet: ModelFleet) -> list[Stored]:
    return fleet.objects("ClusterDeployment")


def says(stored: Stored, type_: str) -> tuple[str, str]:
    said = condition(stored, type_)
    assert said is not None, f"{stored.id} says nothing of {type_}"
    return said.status, said.reason


def inventory(fleet: ModelFleet) -> dict[str, Any]:
    said = condition(pool(fleet), "InventoryValid")
    assert said is not None
    assert said.status == "False"
    return dict(json.loads(said.message))


def test_conditions_of_a_pool_begin_as_unknown() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1)
        await fleet.controllers[0].step()
        while not fleet.api.writes:
            fleet.controllers[0].hear(["ClusterPool"], 10)
            await fleet.controllers[0].step()
        assert fleet.api.writes == [("status", "ClusterPool fleet/edge")]
        assert {said["status"] for said in pool(fleet).entries("status", "conditions")} == {"Unknown"}

    told(story)


def test_entry_makes_one_cluster_with_a_copy() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1", [{"op": "replace", "path": "/baseDomain", "value": "patched.example"}])
        fleet.pool("edge", 1, inventory=["c1", "c1"])
        await fleet.rest()
        (made,) = clusters(fleet)
        reserved = entry(fleet, "c1")
        assert says(reserved, "Available") == ("False", "Reserved")
        assert says(reserved, "ApplySucceeded") == ("False", "InstallationPending")
        assert reserved.text("status", "clusterDeploymentRef", "name") == made.name
        assert reserved.text("status", "clusterPoolRef", "name") == "edge"
        assert json.loads(reserved.text("status", "lastAppliedConfiguration")) == reserved.at("spec")
        assert says(pool(fleet), "InventoryValid") == ("True", "Valid")
        assert entry(fleet, "c1", made.namespace).at("spec") == reserved.at("spec")
        assert entry(fleet, "c1", made.namespace).at("status") is None
        assert made.text("spec", "baseDomain") == "patched.example"
        assert "hive.openshift.io/edge" in reserved.finalizers
        await fleet.settle()
        assert says(entry(fleet, "c1"), "ApplySucceeded") == ("True", "Succeeded")

    told(story)


def test_customization_of_all_clusters_is_copied_and_not_reserved() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.entry("shared")
        fleet.pool("edge", 1, inventory=["c1"], customizationRef={"name": "shared"})
        fleet.pool("alone", 1, customizationRef={"name": "shared"})
        fleet.pool("same", 1, inventory=["c2"], customizationRef={"name": "c2"})
        fleet.entry("c2")
        await fleet.rest()
        by_pool = {each.text("spec", "clusterPoolRef", "poolName"): each for each in clusters(fleet)}
        both, alone, same = by_pool["edge"], by_pool["alone"], by_pool["same"]
        copies = [each.name for each in fleet.objects(CDC) if each.namespace == both.namespace]
        assert (own_customization(both), shared_customization(both), copies) == ("c1", "shared", ["c1", "shared"])
        assert (own_customization(alone), shared_customization(alone)) == ("", "shared")
        # One that is both is copied once and referred to twice.
        assert (own_customization(same), shared_customization(same)) == ("c2", "c2")
        assert says(pool(fleet, "alone"), "InventoryValid")[0] == "Unknown"
        assert condition(entry(fleet, "shared"), "Available") is None
        assert both.annotation(SPEC_HASH) != alone.annotation(SPEC_HASH)

    told(story)


def test_size_beyond_the_inventory_is_told_and_keeps_nothing_from_being_replaced() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.pool("edge", 3, inventory=["c1"], installAttemptsLimit=1)
        await fleet.rest()
        said = condition(pool(fleet), "InventoryValid")
        assert said is not None
        assert (said.status, said.message) == ("True", "Inventory is valid; its 1 entries are fewer than the size 3")
        (first,) = clusters(fleet)
        fail(fleet, "UnknownError")
        await fleet.rest()
        assert clusters(fleet) == [], "a broken cluster goes, although the pool is too small"
        fleet.pass_time(timedelta(minutes=11))
        await fleet.rest()
        assert [each.name for each in clusters(fleet)] != [first.name]
        assert len(clusters(fleet)) == 1

    told(story)


def test_missing_entry_is_listed_and_makes_no_cluster() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1, inventory=["later"])
        await fleet.rest()
        assert clusters(fleet) == []
        assert inventory(fleet) == {"BrokenByCloud": [], "BrokenBySyntax": [], "Missing": ["later"]}
        fleet.entry("later")
        await fleet.rest()
        assert len(clusters(fleet)) == 1

    told(story)


def test_entry_that_is_deleted_is_held_while_it_is_reserved() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.entry("c2")
        fleet.pool("edge", 1, inventory=["c1", "c2"])
        await fleet.rest()
        await fleet.delete(CDC, "c1")
        await fleet.delete(CDC, "c2")
        await fleet.rest()
        assert [each.name for each in fleet.objects(CDC) if each.namespace == "fleet"] == ["c1"]
        assert inventory(fleet)["Missing"] == ["c2"]

    told(story)


def test_entry_that_cannot_be_applied_is_broken_and_makes_no_cluster() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("bad", [{"op": "remove", "path": "/none"}])
        fleet.pool("edge", 1, inventory=["bad"])
        await fleet.rest()
        assert clusters(fleet) == []
        assert fleet.objects("Namespace")[-1].name == "kube-system"
        assert says(entry(fleet, "bad"), "ApplySucceeded") == ("False", "BrokenBySyntax")
        assert inventory(fleet)["BrokenBySyntax"] == ["bad"]
        writes = len(fleet.api.writes)
        await fleet.rest()
        assert len(fleet.api.writes) == writes
        mended = entry(fleet, "bad").edited([], "spec", "installConfigPatches")
        fleet.api.put(CDC, {**mended.tree, "metadata": {**mended.mapping("metadata"), "generation": 2}})
        fleet.pass_time(timedelta(minutes=11))
        await fleet.rest()
        assert len(clusters(fleet)) == 1

    told(story)


def test_broken_cluster_is_replaced_and_its_entry_cools_off() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.pool("edge", 1, inventory=["c1"], installAttemptsLimit=1)
        await fleet.rest()
        (first,) = clusters(fleet)
        fail(fleet, "UnknownError")
        await fleet.rest()
        assert clusters(fleet) == []
        assert says(entry(fleet, "c1"), "ApplySucceeded") == ("False", "BrokenByCloud")
        assert inventory(fleet)["BrokenByCloud"] == ["c1"]
        fleet.pass_time(timedelta(minutes=11))
        await fleet.rest()
        (again,) = clusters(fleet)
        assert again.name != first.name

    told(story)


def fail(fleet: ModelFleet, reason: str) -> None:
    """Let every provision that is under way fail."""
    for each in fleet.objects("ClusterProvision"):
        if each.text("spec", "stage") not in ("failed", "complete"):
            said: Any = {
                "type": "ClusterProvisionFailed", "status": "True", "reason": reason, "message": "why",
                "lastTransitionTime": fleet.now.isoformat(),
            }  # fmt: skip
            fleet.api.put(
                each.kind, dict(each.edited("failed", "spec", "stage").edited([said], "status", "conditions").tree)
            )


def test_failure_of_patches_is_not_repeated_and_breaks_the_entry_by_syntax() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.pool("edge", 1, inventory=["c1"])
        await fleet.rest()
        fail(fleet, "ManifestPatchNoMatch")
        await fleet.rest()
        assert says(entry(fleet, "c1"), "ApplySucceeded") == ("False", "BrokenBySyntax")
        assert clusters(fleet) == []

    told(story)


def test_entry_shown_as_available_that_a_cluster_uses_is_reserved_again() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.pool("edge", 1, inventory=["c1"])
        await fleet.rest()
        (made,) = clusters(fleet)
        fleet.api.put(CDC, {**entry(fleet, "c1").tree, "status": {}})
        await fleet.rest()
        assert says(entry(fleet, "c1"), "Available") == ("False", "Reserved")
        assert entry(fleet, "c1").text("status", "clusterDeploymentRef", "name") == made.name

    told(story)


def test_entry_that_is_available_and_names_a_cluster_is_not_used() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        held = {**entry(fleet, "c1").tree, "status": {"clusterDeploymentRef": {"name": "nobody"}}}
        fleet.api.put(CDC, held)
        fleet.pool("edge", 1, inventory=["c1"])
        await fleet.rest()
        assert clusters(fleet) == []
        assert inventory(fleet)["Inconsistent"] == ["c1"]

    told(story)


def test_entry_of_a_cluster_that_vanished_is_used_again() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.pool("edge", 1, inventory=["c1"])
        await fleet.rest()
        (made,) = clusters(fleet)
        fleet.api.put(made.kind, dict(made.edited(None, "metadata", "finalizers").tree))
        await fleet.delete(made.kind, made.name, made.namespace)
        await fleet.rest()
        (again,) = clusters(fleet)
        assert (again.name != made.name, own_customization(again)) == (True, "c1")

    told(story)


def test_entries_are_taken_by_their_success() -> None:
    """The longest ago succeeded, then never used, then broken; what is cooling off is not used at all."""

    async def story(fleet: ModelFleet) -> None:
        moments = {"older": 50, "newer": 20, "broken": 90}
        for name in ("unused", "newer", "older", "broken"):
            fleet.entry(name)
            reason = "BrokenByCloud" if name == "broken" else "Succeeded"
            said = {
                "type": "ApplySucceeded", "status": "False" if name == "broken" else "True", "reason": reason,
                "message": "", "observedGeneration": 1,
                "lastTransitionTime": (fleet.now - timedelta(minutes=moments.get(name, 0))).isoformat(),
            }  # fmt: skip
            if name != "unused":
                fleet.api.put(CDC, {**entry(fleet, name).tree, "status": {"conditions": [said]}})
        fleet.pool("edge", 0, inventory=["unused", "newer", "older", "broken"])
        await fleet.rest()
        taken = []
        for size in range(1, 5):
            edit(fleet, size=size)
            await fleet.rest()
            (new,) = [each for each in clusters(fleet) if own_customization(each) not in taken]
            taken.append(own_customization(new))
        assert taken == ["older", "newer", "unused", "broken"]

    told(story)


def edit(fleet: ModelFleet, **spec: Any) -> None:
    held = pool(fleet)
    fleet.api.put(held.kind, {**held.tree, "spec": {**held.mapping("spec"), **spec}})


def test_finalizers_are_per_pool_and_go_with_the_list_and_with_the_pool() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.entry("c2")
        fleet.pool("edge", 0, inventory=["c1", "c2"])
        fleet.pool("other", 0, inventory=["c1"])
        await fleet.rest()
        assert set(entry(fleet, "c1").finalizers) == {"hive.openshift.io/edge", "hive.openshift.io/other"}
        edit(fleet, inventory=[])
        await fleet.rest()
        assert (entry(fleet, "c1").finalizers, entry(fleet, "c2").finalizers) == (("hive.openshift.io/other",), ())
        await fleet.delete("ClusterPool", "other")
        await fleet.rest()
        assert entry(fleet, "c1").finalizers == ()

    told(story)


def test_missing_dependencies_are_told_together_and_clear_one_by_one() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1, customizationRef={"name": "shared"}, pullSecretRef={"name": "pull"})
        await fleet.rest()
        said = condition(pool(fleet), "MissingDependencies")
        assert said is not None
        for each in ("ClusterImageSet img", "template Secret template", "pull Secret pull", "Customization shared"):
            assert each in said.message
        fleet.dependencies()
        secret = {"metadata": {"name": "pull", "namespace": "fleet"}, "data": {"other": encoded("x")}}
        fleet.api.put("Secret", secret, api_version="v1")
        fleet.entry("shared")
        await fleet.rest()
        said = condition(pool(fleet), "MissingDependencies")
        assert said is not None
        assert said.message == "pull Secret pull has no key .dockerconfigjson"
        fleet.api.put("Secret", {**secret, "data": {".dockerconfigjson": encoded("{}")}}, api_version="v1")
        await fleet.rest()
        assert says(pool(fleet), "MissingDependencies") == ("False", "Verified")
        (made,) = clusters(fleet)
        copied = fleet.api.get("Secret", made.namespace, f"{made.name}-pull-secret", api_version="v1")
        assert copied is not None
        assert made.text("spec", "pullSecretRef", "name") == f"{made.name}-pull-secret"

    told(story, has_dependencies=False)


def test_dependencies_are_looked_at_although_the_pool_is_full() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1)
        await fleet.settle()
        await fleet.delete("ClusterImageSet", "img", "")
        await fleet.rest()
        assert says(pool(fleet), "MissingDependencies") == ("True", "Missing")

    told(story)


def test_running_count_other_than_size_is_refused() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 2, runningCount=1)
        await fleet.rest()
        assert says(pool(fleet), "Accepted") == ("False", "RunningCountUnsupported")
        assert clusters(fleet) == []
        edit(fleet, runningCount=2)
        await fleet.rest()
        assert says(pool(fleet), "Accepted")[0] == "True"
        assert len(clusters(fleet)) == 2

    told(story)


@pytest.mark.parametrize(
    ("size", "limits", "count"),
    [
        pytest.param(5, {"maxSize": 3}, 3, id="maxSize"),
        pytest.param(5, {"maxConcurrent": 2}, 2, id="maxConcurrent"),
        pytest.param(5, {"maxConcurrent": 2, "maxSize": 1}, 1, id="both"),
        pytest.param(0, {}, 0, id="nothing wanted"),
    ],
)
def test_additions_are_bounded(size: int, limits: dict[str, Any], count: int) -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", size, **limits)
        await fleet.rest()
        assert len(clusters(fleet)) == count
        is_full = "maxSize" in limits
        assert says(pool(fleet), "CapacityAvailable")[1] == ("MaxCapacity" if is_full else "Available")

    told(story)


def test_installing_clusters_go_first_when_a_pool_shrinks() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1)
        await fleet.settle()
        (installed,) = clusters(fleet)
        edit(fleet, size=3)
        await fleet.rest()
        assert len(clusters(fleet)) == 3
        edit(fleet, size=1)
        await fleet.rest()
        assert [each.name for each in clusters(fleet)] == [installed.name]

    told(story)


def test_stale_clusters_are_told_and_replaced_only_if_the_pool_says_so() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.entry("c2")
        fleet.pool("edge", 2, inventory=["c1", "c2"])
        await fleet.settle()
        before = {each.name for each in clusters(fleet)}
        assert says(pool(fleet), "AllClustersCurrent") == ("True", "ClusterDeploymentsCurrent")
        data = {"install-config.yaml": encoded(CONFIG + "more: 1\n")}
        fleet.api.put(
            "Secret", {"metadata": {"name": "template", "namespace": "fleet"}, "data": data}, api_version="v1"
        )
        await fleet.settle()
        assert says(pool(fleet), "AllClustersCurrent") == ("False", "SomeClusterDeploymentsStale")
        assert {each.name for each in clusters(fleet)} == before
        held = pool(fleet).edited("true", "metadata", "annotations", REPLACE_STALE)
        fleet.api.put(held.kind, dict(held.tree))
        await fleet.rest()
        assert len({each.name for each in clusters(fleet) if not each.is_deleting} & before) == 1, "one at a time"
        await fleet.settle(rounds=20)
        assert {each.name for each in clusters(fleet)} & before == set()
        assert says(pool(fleet), "AllClustersCurrent") == ("True", "ClusterDeploymentsCurrent")

    told(story)


def test_hash_of_what_a_cluster_is_made_of_stays_that_of_earlier_releases() -> None:
    """Another hash would call every cluster of every fleet stale: a change of it changes its first character, too."""

    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1", [{"op": "replace", "path": "/baseDomain", "value": "patched.example"}])
        fleet.entry("shared")
        fleet.pool("edge", 1, inventory=["c1"], customizationRef={"name": "shared"})
        fleet.pool("plain", 1)
        await fleet.rest()
        made = {each.text("spec", "clusterPoolRef", "poolName"): each for each in clusters(fleet)}
        assert {name: each.annotation(SPEC_HASH) for name, each in made.items()} == {
            "edge": "1-63fcd6185b839d08bac158c40f7bf470",
            "plain": "1-66cf6ac5e70963051571478e08b7786b",
        }

    told(story)


def test_claims_are_served_in_their_order_and_beyond_the_size() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 0)
        for name in ("first", "second"):
            fleet.claim(name, "edge")
            fleet.now += timedelta(seconds=5)
        await fleet.rest()
        waits = {each.name: condition(each, "Pending") for each in fleet.objects("ClusterClaim")}
        assert waits["second"] is not None
        assert waits["second"].message.startswith("position 2 of 2; waits for a cluster that is being installed: edge-")
        await fleet.settle()
        for each in fleet.objects("ClusterClaim"):
            assert says(each, "Pending") == ("False", "ClusterClaimed")
            assert says(each, "ClusterRunning") == ("True", "Running")
        assert {claim_of(each) for each in clusters(fleet)} == {"first", "second"}

    told(story)


def test_claims_end_after_their_time_and_give_their_cluster_up() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 0, claimLifetime={"default": "1h", "maximum": "2h"})
        fleet.claim("short", "edge")
        fleet.claim("long", "edge", lifetime="9h")
        await fleet.settle(rounds=4)
        lifetimes = {each.name: each.text("status", "lifetime") for each in fleet.objects("ClusterClaim")}
        assert lifetimes == {"short": "1h0m0s", "long": "2h0m0s"}
        fleet.pass_time(timedelta(minutes=61))
        await fleet.rest()
        assert [each.name for each in fleet.objects("ClusterClaim")] == ["long"]
        assert len([each for each in clusters(fleet) if each.is_deleting]) == 1

    told(story)


def test_deleted_claim_marks_its_cluster_and_takes_back_the_rights() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 0, maxConcurrent=1)
        fleet.claim("mine", "edge", subjects=[{"kind": "User", "name": "alice"}])
        await fleet.settle()
        (made,) = clusters(fleet)
        rights = [each for each in fleet.objects("RoleBinding") if each.namespace == made.namespace]
        assert [each.entries("subjects")[0]["name"] for each in rights] == ["alice"]
        (role,) = fleet.objects("Role")
        assert role.entries("rules")[1]["resourceNames"] == ["kubeconfig"]
        fleet.claim("busy", "edge")
        await fleet.rest()
        await fleet.delete("ClusterClaim", "mine")
        await fleet.rest()
        # The budget is used up by what is being installed: the cluster is marked, and goes later.
        kept = next(each for each in clusters(fleet) if each.name == made.name)
        assert (kept.annotation(REMOVE), kept.is_deleting) == ("true", False)
        assert [each for each in fleet.objects("RoleBinding") if each.namespace == made.namespace] == []
        await fleet.settle()
        assert made.name not in {each.name for each in clusters(fleet)}

    told(story)


def test_claim_that_lost_its_cluster_to_another_is_served_again() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1)
        await fleet.settle()
        (made,) = clusters(fleet)
        fleet.claim("winner", "edge")
        await fleet.settle(rounds=2)
        fleet.claim("loser", "edge", namespace=made.namespace)
        await fleet.settle()
        served = {each.name: each.text("spec", "namespace") for each in fleet.objects("ClusterClaim")}
        assert served["winner"] == made.namespace
        assert served["loser"] not in ("", made.namespace)

    told(story)


def test_claim_that_names_a_cluster_of_another_pool_neither_gets_nor_removes_it() -> None:
    """The other claim has the same name, in another namespace: only together they say whose the cluster is."""

    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 0)
        fleet.claim("mine", "edge", subjects=[{"kind": "User", "name": "alice"}])
        await fleet.settle()
        (made,) = clusters(fleet)
        fleet.api.put("Namespace", {"metadata": {"name": "strangers"}}, api_version="v1")
        spec = {"clusterPoolName": "edge", "namespace": made.namespace, "subjects": [{"kind": "User", "name": "eve"}]}
        fleet.put("ClusterClaim", "mine", spec, namespace="strangers")
        await fleet.settle()
        theirs = fleet.api.get("ClusterClaim", "strangers", "mine")
        assert theirs is not None
        assert (Stored(theirs).text("spec", "namespace"), says(Stored(theirs), "Pending")) == (
            "", ("True", "AssignmentConflict"),
        )  # fmt: skip
        fleet.api.put("ClusterClaim", {**theirs, "spec": spec})
        await fleet.delete("ClusterClaim", "mine", "strangers")
        await fleet.settle()
        (kept,) = clusters(fleet)
        assert (kept.annotation(REMOVE), claim_of(kept)) == ("", "mine")
        rights = [each for each in fleet.objects("RoleBinding") if each.namespace == made.namespace]
        assert [each.entries("subjects")[0]["name"] for each in rights] == ["alice"]

    told(story)


def test_admins_of_a_pool_are_admins_of_its_clusters() -> None:
    async def story(fleet: ModelFleet) -> None:
        binding: Any = {
            "metadata": {"name": "admins", "namespace": "fleet"}, "subjects": [{"kind": "Group", "name": "ops"}],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "hive-cluster-pool-admin"},
        }  # fmt: skip
        fleet.api.put("RoleBinding", binding, api_version=f"{RBAC}/v1")
        fleet.pool("edge", 1)
        await fleet.rest()
        (made,) = clusters(fleet)
        copies = [each for each in fleet.objects("RoleBinding") if each.namespace == made.namespace]
        assert [(each.name, each.entries("subjects")) for each in copies] == [
            ("hive-cluster-pool-admin-binding", ({"kind": "Group", "name": "ops"},))
        ]
        await fleet.api.delete(ObjectRef("RoleBinding", "fleet", "admins"))
        await fleet.rest()
        assert [each for each in fleet.objects("RoleBinding") if each.namespace == made.namespace] == []

    told(story)


def test_claims_get_no_cluster_of_another_pool_or_namespace() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 2)
        fleet.pool("empty", 0, maxSize=0)
        await fleet.settle()
        fleet.api.put("Namespace", {"metadata": {"name": "strangers"}}, api_version="v1")
        fleet.claim("other-pool", "empty")
        fleet.put("ClusterClaim", "other-namespace", {"clusterPoolName": "edge"}, namespace="strangers")
        await fleet.settle()
        assert {each.text("spec", "namespace") for each in fleet.objects("ClusterClaim")} == {""}
        assert {claim_of(each) for each in clusters(fleet)} == {""}

    told(story)


@pytest.mark.parametrize("state", ["promised", "installing", "installed", "claimed", "given back", "broken"])
def test_pool_ends_whatever_its_clusters_are(state: str) -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.entry("c1")
        fleet.pool("edge", 1, inventory=["c1"], installAttemptsLimit=1)
        if state == "promised":
            while not pool(fleet).annotation(CREATING):
                fleet.controllers[0].hear(WATCHED_KINDS, 10_000)
                await fleet.controllers[0].step()
        else:
            await fleet.rest()
        if state in ("installed", "claimed", "given back"):
            fleet.claim("mine", "edge")
            await fleet.settle()
        if state == "broken":
            fail(fleet, "UnknownError")
        await fleet.delete("ClusterPool", "edge")
        if state != "claimed":
            for each in fleet.objects("ClusterClaim"):
                await fleet.delete(each.kind, each.name)
        await fleet.settle()
        left = clusters(fleet)
        assert [claim_of(each) for each in left] == (["mine"] if state == "claimed" else [])
        assert len(fleet.objects("ClusterPool")) == len(left)
        for each in fleet.objects("ClusterClaim"):
            await fleet.delete(each.kind, each.name)
        await fleet.settle()
        assert (clusters(fleet), fleet.objects("ClusterPool"), fleet.finalizers()) == ([], [], [])
        assert not is_status(entry(fleet, "c1"), "Available", "False")

    told(story)


def test_pool_is_kept_until_all_of_its_clusters_are_gone() -> None:
    async def story(fleet: ModelFleet) -> None:
        fleet.pool("edge", 1)
        fleet.claim("mine", "edge")
        await fleet.settle()
        await fleet.delete("ClusterPool", "edge")
        await fleet.settle()
        (left,) = clusters(fleet)
        assert claim_of(left) == "mine"
        assert says(pool(fleet), "DeletionPossible") == ("False", "ClusterDeploymentsPendingCleanup")
        await fleet.delete("ClusterClaim", "mine")
        await fleet.settle()
        assert (clusters(fleet), fleet.objects("ClusterPool"), fleet.finalizers()) == ([], [], [])

    told(story)


def deployment(fleet: ModelFleet, name: str = "alone", **more: Any) -> None:
    data = {"install-config.yaml": encoded(f"metadata: {{name: {name}}}\n")}
    fleet.api.put("Secret", {"metadata": {"name": "ic", "namespace": "fleet"}, "data": data}, api_version="v1")
    provisioning = {"installConfigSecretRef": {"name": "ic"}, **more.pop("provisioning", {})}
    base = {"clusterName": name, "baseDomain": "x", "platform": {"none": {}}, "provisioning": provisioning}
    fleet.put("ClusterDeployment", name, {**base, **more})


def test_missing_customization_keeps_a_deployment_waiting() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet, provisioning={"customizationRef": {"name": "later"}})
        await fleet.rest()
        (waiting,) = clusters(fleet)
        assert says(waiting, "RequirementsMet") == ("False", "CustomizationRefNotAvailable")
        said = condition(waiting, "RequirementsMet")
        assert said is not None
        assert "fleet/later" in said.message
        assert fleet.objects("ClusterProvision") == []
        fleet.entry("later")
        await fleet.rest()
        assert says(clusters(fleet)[0], "RequirementsMet") == ("True", "AllRequirementsMet")
        (provision,) = fleet.objects("ClusterProvision")
        assert provision.text("spec", "stage") == "initializing"

    told(story)


def test_installed_deployment_is_not_checked() -> None:
    async def story(fleet: ModelFleet) -> None:
        metadata = {"infraID": "i", "clusterID": "c", "adminKubeconfigSecretRef": {"name": "k"}}
        ref = {"customizationRef": {"name": "none"}}
        deployment(fleet, installed=True, clusterMetadata=metadata, provisioning=ref)
        await fleet.rest()
        (installed,) = clusters(fleet)
        assert says(installed, "RequirementsMet") == ("Unknown", "Initialized")
        assert fleet.objects("ClusterProvision") == []

    told(story)


@pytest.mark.parametrize(
    ("provisioning", "reason"),
    [
        pytest.param({"imageSetRef": {"name": "none"}}, "ClusterImageSetNotFound", id="image set"),
        pytest.param({"installConfigSecretRef": {"name": ""}}, "InstallConfigRefNotSet", id="no reference"),
        pytest.param({"installConfigSecretRef": {"name": "none"}}, "InstallConfigValidationFailed", id="no Secret"),
        pytest.param({"manifestsConfigMapRef": {"name": "none"}}, "InstallConfigValidationFailed", id="no ConfigMap"),
    ],
)
def test_requirements_have_their_reasons(provisioning: dict[str, Any], reason: str) -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet, provisioning=provisioning)
        await fleet.rest()
        assert says(clusters(fleet)[0], "RequirementsMet") == ("False", reason)

    told(story)


@pytest.mark.parametrize("is_under_way", [False, True], ids=["before an attempt", "within one"])
@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "ClusterImageSet"])
def test_what_an_attempt_is_made_of_may_come_late(kind: str, is_under_way: bool) -> None:
    """Nothing but the object itself wakes what waits for it: no time passes here."""

    async def story(fleet: ModelFleet) -> None:
        refs = {"ConfigMap": "manifestsConfigMapRef", "Secret": "manifestsSecretRef", "ClusterImageSet": "imageSetRef"}
        name, where = "late", "" if kind == "ClusterImageSet" else "fleet"
        version = "v1" if where else "hive.openshift.io/v1"
        content: Any = {"metadata": {"name": name, **({"namespace": where} if where else {})}}
        content |= {"data": {}} if where else {"spec": {"releaseImage": "r:2"}}
        deployment(fleet, provisioning={refs[kind]: {"name": name}})
        if is_under_way:
            fleet.api.put(kind, content, api_version=version)
            while not fleet.objects("ClusterProvision"):
                fleet.controllers[0].hear(WATCHED_KINDS, 10_000)
                await fleet.controllers[0].step()
            await fleet.delete(kind, name, where)
            await fleet.rest()
            (waiting,) = fleet.objects("ClusterProvision")
            assert fleet.api.get("Secret", "fleet", documents_name(waiting), api_version="v1") is None
        else:
            await fleet.rest()
            assert says(clusters(fleet)[0], "RequirementsMet")[0] == "False"
            assert fleet.objects("ClusterProvision") == []
        fleet.api.put(kind, content, api_version=version)
        await fleet.rest()
        (provision,) = fleet.objects("ClusterProvision")
        assert fleet.api.get("Secret", "fleet", documents_name(provision), api_version="v1") is not None

    told(story)


def test_conditions_of_a_deployment_stand_in_the_order_of_hive() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet, provisioning={"customizationRef": {"name": "later"}})
        await fleet.rest()
        types = [str(each["type"]) for each in clusters(fleet)[0].entries("status", "conditions")]
        assert types[0] == "RequirementsMet"
        assert types[1:] == sorted(types[1:])
        assert len(types) == 15

    told(story)


def test_failed_attempts_are_repeated_after_growing_pauses_up_to_the_limit() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet, installAttemptsLimit=2)
        await fleet.rest()
        fail(fleet, "UnknownError")
        await fleet.rest()
        assert says(clusters(fleet)[0], "ProvisionFailed") == ("True", "UnknownError")
        assert len(fleet.objects("ClusterProvision")) == 1
        fleet.pass_time(timedelta(seconds=61))
        await fleet.rest()
        first, second = sorted(fleet.objects("ClusterProvision"), key=lambda each: each.number("spec", "attempt") or 0)
        assert second.text("spec", "prevProvisionName") == first.name
        fail(fleet, "UnknownError")
        await fleet.rest()
        (stopped,) = clusters(fleet)
        assert says(stopped, "ProvisionStopped") == ("True", "InstallAttemptsLimitReached")
        assert says(stopped, "Provisioned") == ("False", "ProvisionStopped")
        fleet.pass_time(timedelta(days=2))
        await fleet.rest()
        assert len(fleet.objects("ClusterProvision")) == 2, "it is stopped for good"

    told(story)


def test_attempt_that_is_there_is_adopted_unless_it_has_failed() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet)
        await fleet.rest()
        (made,) = fleet.objects("ClusterProvision")
        held = clusters(fleet)[0].edited(None, "status", "provisionRef")
        fleet.api.put(held.kind, dict(held.tree))
        await fleet.rest()
        assert clusters(fleet)[0].text("status", "provisionRef", "name") == made.name
        fail(fleet, "UnknownError")
        held = clusters(fleet)[0].edited(None, "status", "provisionRef").edited(1, "status", "installRestarts")
        fleet.api.put(held.kind, dict(held.tree))
        await fleet.rest()
        (other,) = [each for each in fleet.objects("ClusterProvision") if each.name != made.name]
        assert clusters(fleet)[0].text("status", "provisionRef", "name") == other.name

    told(story)


def test_of_many_failures_the_first_and_the_last_two_are_kept() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet)
        for _ in range(6):
            await fleet.rest()
            fail(fleet, "UnknownError")
            await fleet.rest()
            fleet.pass_time(timedelta(hours=2))
        await fleet.rest()
        attempts = sorted(each.number("spec", "attempt") or 0 for each in fleet.objects("ClusterProvision"))
        assert attempts == [0, 4, 5, 6]

    told(story)


def test_no_attempt_is_made_with_a_limit_of_none() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet, installAttemptsLimit=0)
        await fleet.rest()
        assert says(clusters(fleet)[0], "ProvisionStopped") == ("True", "InstallAttemptsLimitReached")
        assert fleet.objects("ClusterProvision") == []

    told(story)


@pytest.mark.parametrize(("made", "minutes"), [(0, 1), (1, 2), (2, 4), (10, 1024), (11, 1440), (30, 1440)])
def test_pauses_double_up_to_a_day(made: int, minutes: int) -> None:
    assert pause_after(made) == timedelta(minutes=minutes)


def test_deleted_deployment_is_destroyed_once_and_kept_until_then() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet)
        await fleet.settle()
        await fleet.delete("ClusterDeployment", "alone")
        await fleet.rest()
        (deprovision,) = fleet.objects("ClusterDeprovision")
        assert deprovision.text("spec", "infraID") == clusters(fleet)[0].text("spec", "clusterMetadata", "infraID")
        assert says(clusters(fleet)[0], "Provisioned") == ("False", "Deprovisioning")
        await fleet.settle()
        assert (clusters(fleet), fleet.finalizers()) == ([], [])

    told(story)


@pytest.mark.parametrize("field", ["preserveOnDelete", "never begun"])
def test_nothing_is_destroyed_that_is_to_be_kept_or_was_never_made(field: str) -> None:
    async def story(fleet: ModelFleet) -> None:
        if field == "preserveOnDelete":
            deployment(fleet, preserveOnDelete=True)
            await fleet.settle()
        else:
            deployment(fleet)
            await fleet.rest()
        await fleet.delete("ClusterDeployment", "alone")
        await fleet.rest()
        assert fleet.objects("ClusterDeprovision") == []
        assert clusters(fleet) == []

    told(story)


def test_protected_deployment_is_kept_and_says_why() -> None:
    async def story(fleet: ModelFleet) -> None:
        deployment(fleet)
        await fleet.settle()
        held = clusters(fleet)[0].edited("true", "metadata", "annotations", "hive.openshift.io/protected-delete")
        fleet.api.put(held.kind, dict(held.tree))
        await fleet.delete("ClusterDeployment", "alone")
        await fleet.settle()
        assert reason_of(clusters(fleet)[0], "Provisioned") == "DeprovisionFailed"
        assert fleet.objects("ClusterDeprovision") == []

    told(story)


def test_documents_of_an_attempt_stay_what_they_were() -> None:
    """The customization is deleted while the attempt runs: the attempt has its own copy of everything."""

    async def story(fleet: ModelFleet) -> None:
        fleet.entry("shared")
        deployment(fleet, provisioning={"customizationRef": {"name": "shared"}})
        await fleet.rest()
        await fleet.delete(CDC, "shared")
        await fleet.settle()
        (installed,) = clusters(fleet)
        assert is_status(installed, "Provisioned", "True")

    told(story)
