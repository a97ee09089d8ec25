"""Rendering, of what needs no folder: garboard's own installer."""

import pytest

from garboard.errors import BadDocument
from garboard.fleet import ProvisionRequest, resolve_pool
from garboard.fleet.render import Renderer, files_of
from tests.support.fleet.install_configs import CONFIG
from tests.support.fleet.pool import IMAGE_SET, POOL, PULL_SECRET, customization, documents_of, pool_of, rules

TEMPLATE = "apiVersion: v1\nkind: Secret\nmetadata: {name: template}\nstringData:\n  install-config.yaml: |\n"
INDENTED = "".join(f"    {line}\n" for line in CONFIG.splitlines())
PATCHES = """
installerManifestPatches:
- manifestSelector: {glob: kubeadm/ClusterConfiguration.yaml}
  patches: [{op: add, path: /clusterName, value: patched}]
"""
HOST = """
installConfigPatches:
- {op: replace, path: /hosts/0/address, value: 10.9.9.9}
- {op: ROLE, path: /hosts}
"""


def renderer_of(site_b: str) -> tuple[Renderer, tuple[ProvisionRequest, ...]]:
    documents = (customization("everywhere", PATCHES), customization("site-a", ""), customization("site-b", site_b))
    found = documents_of(POOL, IMAGE_SET, PULL_SECRET, TEMPLATE + INDENTED, *documents)
    return Renderer(None, rules()), resolve_pool(found, "edge")


def test_manifests_of_hosts_are_rendered_and_patched_without_a_folder() -> None:
    renderer, requests = renderer_of("\n".join(HOST.splitlines()[:-1]))
    rendering = renderer.render(requests)
    assert rendering.failed == ()
    for cluster in rendering.clusters:
        assert b"clusterName: patched\n" in files_of(cluster)["kubeadm/ClusterConfiguration.yaml"]
    assert b"10.9.9.9" in files_of(rendering.clusters[1])["hosts/cp1/InitConfiguration.yaml"]


def test_patched_install_config_that_the_installer_refuses_is_told_with_its_cluster() -> None:
    renderer, requests = renderer_of(HOST.replace("ROLE", "remove"))
    with pytest.raises(BadDocument, match="edge-site-b: "):
        renderer.render(requests)


def test_other_install_configs_need_a_folder() -> None:
    rendering = Renderer(None, rules()).render(resolve_pool(pool_of({}), "edge"))
    assert [each.tree for each in rendering.clusters] == [None, None]
