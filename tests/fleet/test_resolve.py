import pytest

from garboard.errors import BadUsage
from garboard.fleet import (
    ProvisionRequest,
    customize,
    patch_install_config,
    resolve_all,
    resolve_deployment,
    resolve_pool,
)
from tests.support.fleet.pool import (
    IMAGE_SET,
    POOL,
    PULL_SECRET,
    TEMPLATE,
    customization,
    documents_of,
    pool_of,
    rules,
    tree,
)

EVERYWHERE = """
installConfigPatches:
- {op: replace, path: /controlPlane/replicas, valueJSON: '5'}
installerManifestPatches:
- manifestSelector: {glob: "openshift/*.yaml"}
  patches:
  - {op: add, path: /metadata/annotations, valueJSON: '{"by": "pool"}'}
"""
SITE_A = """
installConfigPatches:
- {op: replace, path: /controlPlane/replicas, valueJSON: '1'}
installerManifestPatches:
- manifestSelector: {glob: "openshift/99_worker.yaml"}
  patches:
  - {op: replace, path: /metadata/annotations/by, value: site-a}
"""


def content(request: ProvisionRequest, file: str) -> str:
    found = customize(tree(), request.customizations, rules()).tree.content(file)
    assert isinstance(found, bytes)
    return found.decode()


def test_each_entry_of_an_inventory_is_a_request_with_a_name_of_its_own() -> None:
    requests = resolve_pool(pool_of({}), "edge")
    assert [(each.name, each.entry, each.release_image) for each in requests] == [
        ("edge-site-a", "site-a", "registry.example/release:1"),
        ("edge-site-b", "site-b", "registry.example/release:1"),
    ]


def test_pool_gives_name_and_domain_to_the_install_config() -> None:
    request = resolve_deployment(pool_of({}), "edge-site-b")
    patched = patch_install_config(request.install_config, request.install_config_customization, rules())
    assert (patched.cluster_name, patched.base_domain) == ("edge-site-b", "edge.example.com")


def test_patches_of_the_entry_win_over_those_of_the_pool() -> None:
    first, second = resolve_pool(pool_of({"everywhere": EVERYWHERE, "site-a": SITE_A}), "edge")
    assert "by: site-a\n" in content(first, "openshift/99_worker.yaml")
    assert "by: pool\n" in content(first, "openshift/99_master.yaml")
    assert "by: pool\n" in content(second, "openshift/99_worker.yaml")


def test_install_config_patches_count_in_the_inventory_and_are_ignored_in_the_pool_with_a_warning() -> None:
    first, second = resolve_pool(pool_of({"everywhere": EVERYWHERE, "site-a": SITE_A}), "edge")
    configs = [
        patch_install_config(each.install_config, each.install_config_customization, rules())
        for each in (first, second)
    ]
    assert [b"replicas: 1" in each.data for each in configs] == [True, False]
    assert b"replicas: 3" in configs[1].data
    assert "installConfigPatches of everywhere are ignored" in first.warnings[0]


def test_objects_of_one_name_are_told_apart_by_their_namespace() -> None:
    there = "".join(
        each.replace("metadata: {name: ", "metadata: {namespace: there, name: ") + "---\n"
        for each in (
            POOL,
            PULL_SECRET,
            TEMPLATE,
            *(customization(name, "") for name in ("everywhere", "site-a", "site-b")),
        )
    )
    here = (
        POOL,
        IMAGE_SET,
        PULL_SECRET,
        TEMPLATE,
        *(customization(name, "") for name in ("everywhere", "site-a", "site-b")),
    )
    documents = documents_of(*here, there)
    with pytest.raises(BadUsage, match="2 objects of kind ClusterPool are called edge") as raised:
        resolve_pool(documents, "edge")
    assert raised.value.hint == "name one as default/edge or there/edge"
    assert str(resolve_pool(documents, "there/edge")[0].pool) == "there/edge"
    with pytest.raises(BadUsage, match="would be written to the folder site-a"):
        resolve_all(documents)


def test_same_documents_give_the_same_requests_in_the_order_of_the_inventory() -> None:
    turned = POOL.replace("- name: site-a\n  - name: site-b", "- name: site-b\n  - name: site-a")
    assert [each.entry for each in resolve_all(pool_of({}, turned))] == ["site-b", "site-a"]


def test_applying_customizations_one_after_another_is_applying_them_together() -> None:
    request = resolve_pool(pool_of({"everywhere": EVERYWHERE, "site-a": SITE_A}), "edge")[0]
    together = customize(tree(), request.customizations, rules()).tree
    each_alone = tree()
    for one in request.customizations:
        each_alone = customize(each_alone, [one], rules()).tree
    assert {name: together.content(name) for name in together.names} == {
        name: each_alone.content(name) for name in each_alone.names
    }


def test_secrets_are_in_no_repr() -> None:
    request = resolve_all(pool_of({"site-a": SITE_A}))[0]
    assert "pull-secret-of-the-pool" in request.pull_secret
    assert "pull-secret" not in repr(request)
    assert "hunter2" not in repr(request)
    value = documents_of(customization("x", EVERYWHERE.replace("pool", "s3cret"))).customizations
    assert "s3cret" not in repr([each.value for each in value.values()])
    assert "hunter2-in-the-template" in request.secrets
