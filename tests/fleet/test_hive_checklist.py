"""Hive's behaviours and defects that concern documents and patches, item by item.

An item is named by what Hive's own tests prove, by what they leave out, or by the defect that is avoided on purpose.
Those of conditions, finalizers, leases and attempts belong to controllers.
"""

from collections.abc import Callable

import pytest

from garboard.errors import BadDocument, BadUsage
from garboard.fleet import ProvisionRequest, resolve_all, resolve_deployment, resolve_pool
from garboard.fleet.render import FleetRendering, OneTree, Renderer
from tests.support.fleet.pool import (
    IMAGE_SET,
    MANIFESTS,
    POOL,
    PULL_SECRET,
    TEMPLATE,
    customization,
    documents_of,
    pool_of,
    rules,
)

DEPLOYMENT = """\
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: one}
spec:
  clusterName: one
  baseDomain: edge.example.com
  platform: {none: {}}
  provisioning:
    installConfigSecretRef: {name: config}
    customizationRef: {name: everywhere}
"""
OF_POOL = """\
  clusterPoolRef:
    namespace: default
    poolName: edge
    clusterDeploymentCustomization: {name: site-a}
"""
CONFIG = TEMPLATE.replace("{name: template}", "{name: config}").replace("name: template\n", "name: one\n")
SETS_REPLICAS = "installConfigPatches: [{op: replace, path: /controlPlane/replicas, valueJSON: '1'}]"
RENAMES = "installConfigPatches: [{op: replace, path: /metadata/name, value: renamed}]"
WORKER = "openshift/99_worker.yaml"


def labels(value: str) -> str:
    add = f"[{{op: add, path: /metadata/labels/by, value: {value}}}]"
    return f"installerManifestPatches: [{{manifestSelector: {{glob: {WORKER}}}, patches: {add}}}]"


def rendered(*requests: ProvisionRequest) -> FleetRendering:
    return Renderer(OneTree(MANIFESTS), rules()).render(requests)


def written(request: ProvisionRequest, file: str = WORKER) -> str:
    """Return a file of a cluster as it is rendered."""
    rendering = rendered(request)
    rendering.refuse_failures()
    cluster = rendering.clusters[0]
    content = cluster.tree.content(file) if file in MANIFESTS and cluster.tree else cluster.install_config.data
    assert isinstance(content, bytes)
    return content.decode()


def deployment_of(text: str, *more: str) -> ProvisionRequest:
    return resolve_deployment(documents_of(text, CONFIG, *more), "one")


def refusal(of: Callable[[], object]) -> str:
    with pytest.raises(BadDocument) as raised:
        of()
    return raised.value.message


class TestWhatHiveProves:
    """The checklist of behaviours that Hive's own tests prove."""

    def test_missing_customization_of_a_deployment_is_refused(self) -> None:
        assert "customizationRef.name: ClusterDeploymentCustomization default/everywhere" in refusal(
            lambda: deployment_of(DEPLOYMENT)
        )

    def test_missing_customization_of_the_pool_reference_is_refused(self) -> None:
        text = DEPLOYMENT.replace("    customizationRef: {name: everywhere}\n", "") + OF_POOL
        told = refusal(lambda: deployment_of(text))
        assert (
            "clusterPoolRef.clusterDeploymentCustomization.name: ClusterDeploymentCustomization default/site-a" in told
        )

    def test_missing_customization_of_an_installed_cluster_is_not_looked_for(self) -> None:
        metadata = "  clusterMetadata: {clusterID: a, infraID: b, adminKubeconfigSecretRef: {name: c}}\n"
        text = f"{DEPLOYMENT}  installed: true\n{metadata}"
        assert resolve_all(documents_of(text)) == ()
        with pytest.raises(BadUsage, match="not to be provisioned"):
            resolve_deployment(documents_of(text), "one")

    def test_customization_that_is_there_makes_a_request(self) -> None:
        request = deployment_of(DEPLOYMENT, customization("everywhere", labels("all")))
        assert "by: all\n" in written(request)

    def test_existing_inventory_entry_makes_one_cluster(self) -> None:
        one = POOL.replace("  - name: site-b\n", "").replace("  customizationRef: {name: everywhere}\n", "")
        (request,) = resolve_pool(pool_of({"site-a": labels("a")}, one), "edge")
        assert [each.name for each in request.customizations] == ["site-a"]

    def test_inventory_and_customization_of_the_pool_apply_both(self) -> None:
        request = resolve_pool(pool_of({}), "edge")[0]
        assert [each.name for each in request.customizations] == ["everywhere", "site-a"]

    def test_customization_of_the_pool_alone_makes_one_request(self) -> None:
        (request,) = resolve_pool(pool_of({"everywhere": labels("all")}, POOL.partition("  inventory:")[0]), "edge")
        assert [each.name for each in request.customizations] == ["everywhere"]
        assert "by: all\n" in written(request)

    def test_unknown_inventory_entry_is_refused_by_name(self) -> None:
        pool = POOL.replace("name: site-b", "name: site-c")
        assert "default/site-c is not in these files" in refusal(lambda: resolve_pool(pool_of({}, pool), "edge"))

    def test_install_config_patch_that_does_not_apply_makes_no_cluster(self) -> None:
        spec = "installConfigPatches: [{op: replace, path: /none/there, value: x}]"
        rendering = rendered(*resolve_pool(pool_of({"site-a": spec}), "edge"))
        assert [str(each.failures[0].reason) for each in rendering.failed] == ["InstallConfigPatchFailed"]
        assert [each.request.entry for each in rendering.clusters] == ["site-b"]

    def test_missing_dependencies_are_told_together(self) -> None:
        told = refusal(lambda: resolve_pool(documents_of(POOL), "edge"))
        for each in ("ClusterImageSet v1", "Secret default/template", "Secret default/pull", "default/everywhere"):
            assert f"{each} is not in these files" in told

    @pytest.mark.parametrize(("secret", "key"), [(PULL_SECRET, ".dockerconfigjson"), (TEMPLATE, "install-config.yaml")])
    def test_secret_without_the_right_key_is_refused(self, secret: str, key: str) -> None:
        others = [each for each in (PULL_SECRET, TEMPLATE) if each != secret]
        made = [customization(name, "") for name in ("everywhere", "site-a", "site-b")]
        documents = documents_of(POOL, IMAGE_SET, secret.replace(f"{key}:", "other:"), *others, *made)
        assert f"has no key {key}" in refusal(lambda: resolve_pool(documents, "edge"))


class TestWhatHiveLeavesOut:
    """What no test of Hive covers. Globs, selectors, links and operations are in `customize/`."""

    def test_specific_patches_come_last_and_win(self) -> None:
        pool = pool_of({"everywhere": labels("all"), "site-a": labels("a")})
        assert "by: a\n" in written(resolve_deployment(pool, "edge-site-a"))
        assert "by: all\n" in written(resolve_deployment(pool, "edge-site-b"))

    def test_install_config_that_a_pool_has_made_is_not_patched_again(self) -> None:
        request = deployment_of(
            DEPLOYMENT + OF_POOL, customization("everywhere", ""), customization("site-a", SETS_REPLICAS)
        )
        assert "replicas: 3" in written(request, "install-config.yaml")
        assert "are not applied again" in request.warnings[0]

    def test_deployment_of_a_pool_without_an_install_config_gets_that_of_the_template(self) -> None:
        text = DEPLOYMENT.replace("    installConfigSecretRef: {name: config}\n", "") + OF_POOL
        made = [
            customization(name, spec) for name, spec in (("everywhere", ""), ("site-a", SETS_REPLICAS), ("site-b", ""))
        ]
        documents = documents_of(POOL, IMAGE_SET, PULL_SECRET, TEMPLATE, text, *made)
        config = written(resolve_deployment(documents, "one"), "install-config.yaml")
        assert "name: one\n" in config
        assert "replicas: 1\n" in config

    def test_user_manifests_come_before_patches_which_may_change_them(self) -> None:
        more = "    manifestsConfigMapRef: {name: more}\n"
        config_map = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata:\n  x.yaml: '{kind: Mine, metadata: {}}'\n"
        )
        spec = labels("me").replace(WORKER, "manifests/x.yaml").replace("/metadata/labels/by", "/metadata/name")
        request = deployment_of(DEPLOYMENT + more, config_map, customization("everywhere", spec))
        cluster = rendered(request).clusters[0]
        assert cluster.tree is not None
        assert cluster.tree.content("manifests/x.yaml") == b"kind: Mine\nmetadata:\n  name: me\n"

    def test_explicit_release_image_wins_over_the_image_set(self) -> None:
        more = "    imageSetRef: {name: v1}\n    releaseImage: registry.example/explicit:2\n"
        request = deployment_of(DEPLOYMENT + more, IMAGE_SET, customization("everywhere", ""))
        assert (request.image_set, request.release_image) == ("v1", "registry.example/explicit:2")


class TestDefectsOfHive:
    """Defects that are avoided on purpose, by their numbers."""

    def test_d1_size_larger_than_the_inventory_is_told(self) -> None:
        request = resolve_pool(pool_of({}, POOL.replace("size: 2", "size: 3")), "edge")[0]
        assert any("size 3 is larger than the inventory" in each for each in request.warnings)

    def test_d2_entry_of_two_pools_is_told(self) -> None:
        made = [customization(name, "") for name in ("everywhere", "site-a", "site-b")]
        other = POOL.replace("name: edge", "name: other")
        requests = resolve_pool(documents_of(POOL, other, IMAGE_SET, PULL_SECRET, TEMPLATE, *made), "edge")
        assert any(
            "site-a is in the inventory of ClusterPool default/other too" in each for each in requests[0].warnings
        )

    def test_d9_one_customization_in_both_roles_is_applied_once(self) -> None:
        pool = POOL.replace("{name: everywhere}", "{name: site-a}")
        spec = f"{SETS_REPLICAS}\n{labels('once')}"
        request = resolve_pool(pool_of({"site-a": spec}, pool), "edge")[0]
        assert [each.name for each in request.customizations] == ["site-a"]
        assert "replicas: 1" in written(request, "install-config.yaml")
        assert any("its patches are applied once" in each for each in request.warnings)

    def test_d10_name_that_stands_twice_in_an_inventory_counts_once(self) -> None:
        requests = resolve_pool(pool_of({}, f"{POOL}  - name: site-a\n"), "edge")
        assert [each.entry for each in requests] == ["site-a", "site-b"]
        assert any("stands in the inventory a second time" in each for each in requests[0].warnings)

    def test_d11_request_holds_the_patches_themselves(self) -> None:
        request = resolve_pool(pool_of({"site-a": labels("a")}), "edge")[0]
        assert request.customizations[1].manifests[0].patch is not None

    def test_d12_missing_customization_is_named_with_its_line_and_the_nearest_one(self) -> None:
        with pytest.raises(BadDocument) as raised:
            resolve_pool(pool_of({}, POOL.replace("name: site-b", "name: site-bb")), "edge")
        assert raised.value.message.startswith("fleet.yaml:14:5: spec.inventory[1].name: ")
        assert raised.value.hint == "did you mean 'site-b'?"

    def test_d14_patched_name_is_the_name_of_the_cluster(self) -> None:
        rendering = rendered(resolve_pool(pool_of({"site-a": RENAMES}), "edge")[0])
        assert rendering.clusters[0].install_config.cluster_name == "renamed"

    @pytest.mark.parametrize(
        ("operation", "said"),
        [
            ("{op: remove, path: /metadata}", "metadata.name is no name: it has to be text"),
            ("{op: replace, path: /metadata/name, valueJSON: '5'}", "metadata.name is no name: it has to be text"),
            ("{op: replace, path: /metadata/name, value: A B}", "metadata.name 'A B' is no name"),
            ("{op: replace, path: /metadata/name, value: ''}", "metadata.name '' is no name"),
            ("{op: remove, path: /baseDomain}", "baseDomain is no name"),
            ("{op: replace, path: /baseDomain, value: a..b}", "baseDomain 'a..b' is no name"),
            ("{op: replace, path: '', valueJSON: '[]'}", "it is no mapping"),
        ],
    )
    def test_d14_config_that_its_patches_leave_without_a_name_is_refused(self, operation: str, said: str) -> None:
        """No installer could make a cluster of it."""
        rendering = rendered(*resolve_pool(pool_of({"site-a": f"installConfigPatches: [{operation}]"}), "edge"))
        ((failure,),) = (each.failures for each in rendering.failed)
        assert (str(failure.reason), said in failure.message) == ("InstallConfigPatchFailed", True)
        assert [each.request.entry for each in rendering.clusters] == ["site-b"]

    def test_d14_deployment_that_contradicts_its_install_config_is_refused(self) -> None:
        text = DEPLOYMENT.replace("clusterName: one", "clusterName: two")
        told = refusal(lambda: deployment_of(text, customization("everywhere", "")))
        assert "'two' is not the name in the install config, which is 'one'" in told

    def test_d15_failure_has_a_reason_of_its_own(self) -> None:
        spec = labels("x").replace(WORKER, "none.yaml")
        rendering = rendered(resolve_pool(pool_of({"site-a": spec}), "edge")[0])
        assert rendering.failed[0].failures[0].as_json == {
            "reason": "ManifestPatchNoMatch",
            "customization": "site-a",
            "step": "installerManifestPatches",
            "entry": 0,
            "selector": "glob 'none.yaml'",
            "message": "no manifest matches",
            "where": "fleet.yaml:51:30",
        }

    def test_d16_empty_file_is_refused_and_no_document_is_lost(self) -> None:
        """A path out of the folder is in `test_hostile.py`, several documents in `customize/test_apply.py`."""
        spec = labels("x").replace(WORKER, "manifests/empty.yaml")
        request = resolve_pool(pool_of({"site-a": spec}), "edge")[0]
        rendering = Renderer(OneTree({**MANIFESTS, "manifests/empty.yaml": b""}), rules()).render([request])
        assert rendering.failed[0].failures[0].message == "it is empty"

    def test_d17_customization_that_nothing_uses_is_checked_too(self) -> None:
        unused = pool_of({"spare": "installConfigPatches: [{op: add, path: a}]"})
        assert "spare: installConfigPatches, op 0" in refusal(lambda: resolve_all(unused))
        assert len(resolve_pool(unused, "edge")) == 2

    @pytest.mark.parametrize(
        "operation", ["{op: add, path: a}", "{op: move, path: /a}", "{op: add, path: /a, valueJSON: '{'}"]
    )
    def test_d17_operation_is_checked_before_anything_is_made(self, operation: str) -> None:
        pool = pool_of({"site-a": f"installConfigPatches: [{operation}]"})
        assert "installConfigPatches, op 0" in refusal(lambda: resolve_pool(pool, "edge"))
