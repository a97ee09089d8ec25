"""ConfigMaps, RBAC, tokens and addons: what `kubeadm init --dry-run` would send and what we render, byte for byte."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from garboard.config.load import Loaded
from garboard.config.printing import cluster_text
from garboard.documents import write_yaml
from garboard.manifests import ClusterObject, NodeHost
from garboard.manifests.bootstrap_token import bootstrap_rbac, cluster_info_objects, token_secret
from garboard.manifests.coredns import coredns_objects
from garboard.manifests.kube_proxy import control_plane_url, kube_proxy_objects
from garboard.manifests.kubelet import with_resolv_conf
from garboard.manifests.uploaded import (
    CERTIFICATES_TTL,
    as_uploaded,
    certificates_token,
    kubeadm_certs_rbac,
    kubeadm_certs_secret,
    kubeadm_config_objects,
    kubelet_config_objects,
)
from garboard.model.duration import Duration
from garboard.model.lifecycle import InitConfiguration
from tests.support.parity.dry_run import DryRun, dry_run_init
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import CONFIGURATIONS, Configuration
from tests.support.parity.rendering import host_of, load, patcher_of

pytestmark = pytest.mark.real

NAMES = (
    "component-configurations",
    "defaults",
    "dual-stack-ipv6-first",
    "external-etcd",
    "image-tag-only",
    "images",
    "ipv6",
    "patches-json",
    "patches-merge",
    "patches-strategic",
    "systemd-resolved",
    "timeouts-and-node",
    "tokens",
    "volumes-and-envs",
)
# Making keys is most of the time of a dry run, and these are made faster.
ADDED = "encryptionAlgorithm: ECDSA-P256\n"
CASES = [Configuration(CONFIGURATIONS / f"{name}.yaml", ADDED) for name in NAMES]


@pytest.mark.parametrize("configuration", CASES, ids=lambda each: each.name)
def test_objects_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, configuration: Configuration) -> None:
    theirs = dry_run_init(kubeadm, configuration, tmp_path / "theirs")
    loaded = load(configuration, kubeadm.version, theirs.token)
    host = host_of(configuration, configuration.machine(tmp_path / "ours", kubeadm.version))
    ours = list(rendered(loaded, host, configuration, theirs))
    assert [f"{each.kind} {each.name}" for each in ours] == theirs.names()
    for text, each in zip(theirs.texts, ours, strict=True):
        assert write_yaml(each.content) == text


def test_uploaded_certificates_are_kept_as_kubeadm_keeps_them(kubeadm: Kubeadm, tmp_path: Path) -> None:
    theirs = dry_run_init(kubeadm, CASES[1], tmp_path, "--upload-certs")
    token = certificates_token(theirs.token)
    ends_at = theirs.token_expirations()[token.token_id]
    owner = token_secret(token, ends_at - CERTIFICATES_TTL.as_timedelta)
    names = (
        "ca.crt",
        "ca.key",
        "etcd-ca.crt",
        "etcd-ca.key",
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "sa.key",
        "sa.pub",
    )
    certificates = kubeadm_certs_secret(dict.fromkeys(names, b""), owner.name, "")
    expected = [write_yaml(each.content) for each in (owner, certificates, *kubeadm_certs_rbac())]
    # A dry run has nothing to seal, and prints that as null.
    found = [text.replace(": null\n", ': ""\n') for text in theirs.texts[6:10]]
    assert expected == found


def rendered(
    loaded: Loaded[InitConfiguration], host: NodeHost, configuration: Configuration, theirs: DryRun
) -> Iterator[ClusterObject]:
    """Render in the order of init's phases; what is drawn anew each time is taken from theirs."""
    init, cluster = loaded.config, loaded.config.cluster
    patcher = patcher_of(configuration.patches, init)
    kubelet = loaded.components.kubelet.printed(cluster.facts)
    if cluster.facts.has_resolv_conf_leak:
        kubelet = with_resolv_conf(kubelet, host)
    yield from kubeadm_config_objects(cluster_text(as_uploaded(cluster), cluster.facts))
    yield from kubelet_config_objects(kubelet, is_user_supplied=loaded.components.kubelet.is_user_supplied)
    expirations = theirs.token_expirations()
    for token in init.bootstrap_tokens:
        ends_at = expirations.get(token.token_id, datetime.now(UTC))
        yield token_secret(token, ends_at - (token.ttl or Duration()).as_timedelta)
    yield from bootstrap_rbac()
    ca = base64.b64encode(theirs.ca).decode()
    server = control_plane_url(cluster, init.local_api_endpoint)
    yield from cluster_info_objects({"certificate-authority-data": ca, "server": server})
    if not cluster.dns.disabled:
        yield from coredns_objects(cluster, patcher=patcher)
    if not cluster.is_proxy_disabled:
        proxy = loaded.components.kube_proxy
        yield from kube_proxy_objects(
            cluster,
            init.local_api_endpoint,
            proxy.printed(cluster.facts),
            is_user_supplied=proxy.is_user_supplied,
            environment=host.environment,
            patcher=patcher,
        )
