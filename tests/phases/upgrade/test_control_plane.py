"""What is planned for the static pods of a node: one outage, what comes before it, and what never goes back."""

from dataclasses import replace
from typing import Literal, TypeAlias

import pytest

from garboard.engine import AcquireLease, Action, AwaitGate, Note, PullImage, RemoveFile, SaveSnapshot, Step, WriteFile
from garboard.model.paths import manifest_path
from garboard.phases.gates import ClusterVersionRaised, EtcdSparesMember, MemberCaughtUp
from garboard.phases.static_pods import ORDER
from garboard.phases.upgrade.context import SnapshotRoom, UpgradeContext
from garboard.phases.upgrade.control_plane import plan_control_plane, saves_snapshot
from garboard.phases.upgrade.preflight import upgrade_checks
from garboard.phases.upgrade.tree import plan_dns
from tests.support.phases.preflight.inspectors import MemoryInspector
from tests.support.phases.upgraded_nodes import MemoryObjects, edited, patch_files, upgraded_node

ETCD = manifest_path("etcd")
MIB = 1 << 20


def without_renewal(context: UpgradeContext) -> UpgradeContext:
    return replace(context, options=replace(context.options, renews_certificates=False))


def planned(context: UpgradeContext) -> tuple[list[Step], list[str]]:
    """Return the steps and the notes of a node whose certificates are left alone."""
    found = [*plan_control_plane(without_renewal(context))]
    return [each for each in found if isinstance(each, Step)], [each.text for each in found if isinstance(each, Note)]


def actions(context: UpgradeContext) -> list[Action]:
    return [each.action for each in planned(context)[0]]


def with_etcds(context: UpgradeContext, **images: str) -> UpgradeContext:
    """Return a node of a cluster with members of etcd of these images, by node, in which a dash is an underscore."""
    found = {name.replace("_", "-"): image for name, image in images.items()}
    return replace(context, upgraded=replace(context.upgraded, etcds=found))


def written(context: UpgradeContext, path: str) -> str:
    (found,) = (each for each in actions(context) if isinstance(each, WriteFile) and each.path == path)
    return found.content.decode()


def test_quorum_is_asked_for_and_a_snapshot_saved_before_anything_is_taken_away() -> None:
    found = actions(upgraded_node(others=("node-2", "node-3")))
    kinds = [type(each.gate) if isinstance(each, AwaitGate) else type(each) for each in found]
    assert kinds[:3] == [AcquireLease, EtcdSparesMember, SaveSnapshot]
    assert kinds.index(SaveSnapshot) < kinds.index(RemoveFile)
    assert [each.path for each in found if isinstance(each, RemoveFile)] == [manifest_path(each) for each in ORDER]
    (snapshot,) = (each for each in found if isinstance(each, SaveSnapshot))
    assert snapshot.path.startswith("/var/lib/garboard/etcd-snapshots/v1.36.4-")
    assert snapshot.keeps == 2


FORMER, NEW = "registry.k8s.io/etcd:3.6.8-0", "registry.k8s.io/etcd:3.7.0-0"


@pytest.mark.parametrize(
    ("others", "is_saved"),
    [
        pytest.param({"node_2": NEW, "node_3": FORMER}, False, id="after apply"),
        pytest.param({"node_2": f"{NEW}@sha256:{'0' * 64}"}, False, id="after apply, with a digest"),
        pytest.param({"node_2": FORMER, "node_3": FORMER}, True, id="apply has left etcd as it was"),
    ],
)
def test_first_node_with_another_etcd_saves_a_snapshot_also_without_apply(
    others: dict[str, str], is_saved: bool
) -> None:
    context = with_etcds(upgraded_node(others=("node-2", "node-3"), is_first=False), node_1=FORMER, **others)
    assert any(isinstance(each, SaveSnapshot) for each in actions(context)) is is_saved
    assert saves_snapshot(context) is is_saved


@pytest.mark.parametrize("is_first", [True, False], ids=["apply", "node"])
def test_snapshot_that_has_no_room_stops_every_node_that_would_save_one(is_first: bool) -> None:
    context = with_etcds(upgraded_node(is_first=is_first), node_1=FORMER, node_2=FORMER)
    context = replace(context, room=SnapshotRoom(100 * MIB, 150 * MIB))
    (check,) = (each for each in upgrade_checks(context) if each.name == "EtcdSnapshotSpace")
    ((text, is_error),) = check.look(MemoryInspector())
    assert "200 MiB have to be free there, and 150 MiB are" in text
    assert is_error


def test_etcd_that_is_newer_than_the_target_s_stays() -> None:
    context = edited(upgraded_node(), "etcd", "etcd:3.6.8-0", "etcd:3.8.0-0")
    steps, notes = planned(context)
    assert "etcd 3.8.0-0 is newer than 3.7.0-0, and stays as it is" in notes
    assert ETCD not in [each.action.path for each in steps if isinstance(each.action, WriteFile)]


def test_patch_cannot_choose_an_etcd_below_the_one_that_runs() -> None:
    patches = patch_files(etcd=f"spec: {{containers: [{{name: etcd, image: '{FORMER}'}}]}}\n")
    context = replace(edited(upgraded_node(), "etcd", "etcd:3.6.8-0", "etcd:3.7.0-0"), patches=patches)
    steps, notes = planned(context)
    assert "etcd 3.7.0-0 is newer than 3.6.8-0, and stays as it is" in notes
    assert ETCD not in [each.action.path for each in steps if isinstance(each.action, WriteFile)]
    assert "kube-apiserver:v1.37.1" in written(context, manifest_path("kube-apiserver"))


@pytest.mark.parametrize(
    ("image", "above"),
    [(NEW, "3.6"), (f"mirror.example:5000/{NEW}@sha256:{'9' * 64}", "3.6"), ("registry.k8s.io/etcd:3.6.9-0", None)],
    ids=["another minor", "another minor with a digest", "the same minor"],
)
def test_etcd_of_a_patch_decides_whether_it_can_go_back_later(image: str, above: str | None) -> None:
    patches = patch_files(etcd=f"spec: {{containers: [{{name: etcd, image: '{image}'}}]}}\n")
    # Within a minor of Kubernetes, whose own etcd stays the same.
    context = replace(upgraded_node(target="v1.36.5" if above else "v1.37.1"), patches=patches)
    (step,) = (each for each in planned(context)[0] if isinstance(each.action, WriteFile) and each.action.path == ETCD)
    assert step.lasts_once == (ClusterVersionRaised(above=above) if above else None)


EXTERNAL = "etcd: {external: {endpoints: ['https://192.0.2.9:2379'], caFile: /c, certFile: /d, keyFile: /e}}\n"


def test_external_etcd_is_asked_for_its_version_and_left_alone() -> None:
    context = upgraded_node(EXTERNAL)
    found = actions(context)
    assert [each.path for each in found if isinstance(each, RemoveFile)] == [manifest_path(each) for each in ORDER[:3]]
    assert not any(isinstance(each, SaveSnapshot) for each in found)
    gates = [each.gate for each in found if isinstance(each, AwaitGate)]
    assert not any(isinstance(each, EtcdSparesMember | MemberCaughtUp) for each in gates)
    assert not saves_snapshot(context)
    (check,) = (each for each in upgrade_checks(context) if each.name == "ExternalEtcdVersion")
    assert [*check.look(MemoryInspector(etcd="3.6.1"))] == []
    ((text, is_error),) = check.look(MemoryInspector(etcd="3.5.1"))
    assert "etcd at https://192.0.2.9:2379 is 3.5.1" in text
    assert is_error


def test_member_that_an_external_etcd_has_replaced_is_left_alone() -> None:
    """The configuration says external, and the manifest of a former member is still there."""
    context = upgraded_node(EXTERNAL)
    context = replace(context, manifests={**context.manifests, "etcd": upgraded_node().manifests["etcd"]})
    paths = [each.path for each in actions(context) if isinstance(each, RemoveFile | WriteFile)]
    assert len(paths) == 6
    assert ETCD not in paths


def test_control_plane_without_a_member_upgrades_the_rest() -> None:
    context = upgraded_node()
    context = replace(context, manifests={name: data for name, data in context.manifests.items() if name != "etcd"})
    paths = [each.path for each in actions(context) if isinstance(each, RemoveFile | WriteFile)]
    assert len(paths) == 6
    assert ETCD not in paths


def test_member_is_known_by_the_url_of_its_manifest() -> None:
    own = "https://10.9.9.9:2380"
    text = f"etcd: {{local: {{extraArgs: [{{name: initial-advertise-peer-urls, value: '{own}'}}]}}}}\n"
    gates = [each.gate for each in actions(upgraded_node(text)) if isinstance(each, AwaitGate)]
    urls = [each.peer_url for each in gates if isinstance(each, EtcdSparesMember | MemberCaughtUp)]
    assert urls == [own] * 3


def test_member_is_known_by_the_address_of_its_node_if_its_manifest_says_nothing() -> None:
    flag = "    - --initial-advertise-peer-urls=https://192.0.2.10:2380\n"
    gates = [each.gate for each in actions(edited(upgraded_node(), "etcd", flag, "")) if isinstance(each, AwaitGate)]
    urls = {each.peer_url for each in gates if isinstance(each, EtcdSparesMember | MemberCaughtUp)}
    assert urls == {"https://192.0.2.10:2380"}


PullPolicy: TypeAlias = Literal["Always", "IfNotPresent", "Never"]


def pulls(policy: PullPolicy, *, is_serial: bool, there: tuple[str, ...] = ()) -> list[tuple[int, bool]]:
    """Return how many images each pull is for, and whether they are pulled although they are there."""
    context = upgraded_node()
    registration = replace(context.node_registration, image_pull_policy=policy, image_pull_serial=is_serial)
    inspector = MemoryInspector(images=set(there))
    found = actions(replace(context, node_registration=registration, inspector=inspector))
    return [(1 + len(each.beside), each.is_always) for each in found if isinstance(each, PullImage)]


def test_images_are_pulled_as_the_configuration_says() -> None:
    assert pulls("IfNotPresent", is_serial=True) == [(1, False)] * 4
    assert pulls("IfNotPresent", is_serial=False) == [(4, False)]
    assert pulls("IfNotPresent", is_serial=False, there=(NEW,)) == [(3, False)]
    assert pulls("Always", is_serial=False, there=(NEW,)) == [(4, True)]
    assert pulls("Never", is_serial=True) == []


def test_coredns_that_is_newer_than_the_target_s_stays() -> None:
    context = upgraded_node()
    assert isinstance(context.objects, MemoryObjects)
    spec = context.objects.objects["Deployment", "coredns"]["spec"]
    spec["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/coredns/coredns:v1.99.0"  # type: ignore[index,call-overload]
    (note,) = plan_dns(context)
    assert isinstance(note, Note)
    assert "CoreDNS v1.99.0 is newer than" in note.text


@pytest.mark.parametrize(("tag", "is_put"), [("v1.14.1", False), ("v1.14.5", True), ("ours", True)])
def test_patch_cannot_choose_a_coredns_below_the_one_that_runs(tag: str, is_put: bool) -> None:
    image = f"mirror.example:5000/coredns:{tag}@sha256:{'0' * 64}"
    text = f"spec: {{template: {{spec: {{containers: [{{name: coredns, image: '{image}'}}]}}}}}}\n"
    found = [*plan_dns(replace(upgraded_node(), patches=patch_files(corednsdeployment=text)))]
    assert any(isinstance(each, Step) for each in found) is is_put
    told = "CoreDNS v1.14.2 is newer than v1.14.1, and stays as it is"
    assert (told in [each.text for each in found if isinstance(each, Note)]) is not is_put


@pytest.mark.parametrize(
    ("gate", "algorithm", "found"),
    [
        pytest.param(
            "true", "RSA-2048", [("keys would be RSA-2048", "encryptionAlgorithm: ECDSA-P256", True)], id="on"
        ),
        pytest.param("true", "ECDSA-P256", [("has no effect any more", "", False)], id="on, and chosen otherwise too"),
        pytest.param(
            "false", "ECDSA-P256", [("keys would be ECDSA-P256", "encryptionAlgorithm: RSA-2048", False)], id="off"
        ),
    ],
)
def test_gate_that_chose_the_keys_is_named_before_keys_change(
    gate: str, algorithm: str, found: list[tuple[str, str, bool]]
) -> None:
    context = upgraded_node(f"featureGates: {{PublicKeysECDSA: {gate}}}\n")
    former, cluster = (
        replace(each, encryption_algorithm=algorithm)  # type: ignore[arg-type]
        for each in (context.upgraded.former, context.cluster)
    )
    context = replace(context, upgraded=replace(context.upgraded, former=former), cluster=cluster)
    (check,) = (each for each in upgrade_checks(context) if each.name == "FeatureGates")
    told = [*check.look(MemoryInspector())]
    assert [is_error for _, is_error in told] == [is_error for *_, is_error in found]
    for (text, _), (first, second, _) in zip(told, found, strict=True):
        assert "PublicKeysECDSA is gone in 1.37" in text
        assert first in text
        assert second in text
