"""What 1.37 refuses and 1.36 accepted is named before an upgrade, with where it stands and the way on."""

import pytest

from garboard.manifests.coredns import coredns_objects
from garboard.model import KubernetesVersion
from garboard.phases.upgrade.context import UpgradeOptions
from garboard.phases.upgrade.preflight import upgrade_checks
from garboard.phases.upgrade.removals import (
    baseline,
    dns_limits,
    removed_flags,
    removed_from_kubelets,
    removed_from_proxies,
    removed_kubelet_flags,
)
from tests.support.phases.machines import load
from tests.support.phases.upgrades import CONFIG, DnsObjects, upgrade_context

CONFIG_MAP = "ConfigMap kube-system/kubeadm-config"
SYNCS = "concurrent-service-syncs"
KUBELET = "---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
PROXY = "---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
FLAGS_FILE = "/var/lib/kubelet/kubeadm-flags.env"


def extra(component: str, name: str, value: str) -> str:
    return f"{component}: {{extraArgs: [{{name: {name}, value: '{value}'}}]}}\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param(
            extra("controllerManager", SYNCS, "2"),
            f"has no flag --concurrent-service-syncs (controllerManager.extraArgs: {SYNCS} in {CONFIG_MAP})",
            id="flag of the controller manager",
        ),
        pytest.param(
            extra("controllerManager", "controllers", "*,-service-lb-controller"),
            f"is not known to this minor (controllerManager.extraArgs: controllers in {CONFIG_MAP})",
            id="controller that was switched off",
        ),
        pytest.param(
            extra("apiServer", "feature-gates", "AnyVolumeDataSource=true"),
            f"has no feature gate 'AnyVolumeDataSource' (apiServer.extraArgs: feature-gates in {CONFIG_MAP})",
            id="feature gate",
        ),
        pytest.param(
            extra("apiServer", "enable-admission-plugins", "NodeRestriction,JobValidation"),
            "'JobValidation' is not known to this minor",
            id="admission plugin",
        ),
        pytest.param(
            "etcd: {local: {extraArgs: [{name: experimental-watch-progress-notify-interval, value: 5s}]}}\n",
            "--watch-progress-notify-interval has replaced it, and the present minor knows it too",
            id="etcd flag that lost its prefix",
        ),
        pytest.param(
            "etcd: {local: {extraArgs: [{name: experimental-compact-hash-check-enabled, value: 'true'}]}}\n",
            "--feature-gates=CompactHashCheck=... has replaced it",
            id="etcd flag that became a feature gate",
        ),
        pytest.param(
            "etcd: {local: {extraArgs: [{name: discovery, value: http://x.example}]}}\n",
            "etcd of Kubernetes 1.37 has no flag --discovery",
            id="etcd flag that has gone",
        ),
    ],
)
def test_arguments_of_the_configuration_are_named(more: str, told: str) -> None:
    found = [*removed_flags(upgrade_context(more))]
    assert len(found) == 1, found
    assert told in found[0][0]
    assert "edit the ConfigMap" in found[0][0]
    assert found[0][1], "an error"


def test_nothing_is_named_in_a_cluster_without_arguments_of_its_own() -> None:
    context = upgrade_context()
    finders = (removed_flags, removed_kubelet_flags, removed_from_kubelets, removed_from_proxies, dns_limits)
    assert [[*find(context)] for find in finders] == [[]] * 5


def test_what_the_minor_before_refused_as_well_is_not_the_upgrade_s_business() -> None:
    assert not [*removed_flags(upgrade_context(extra("scheduler", "no-such-flag", "1")))]


def test_patch_is_named_with_its_file() -> None:
    patch = '[{"op": "add", "path": "/spec/containers/0/command/-", "value": "--concurrent-service-syncs=3"}]'
    patched = {"kube-controller-manager+json.json": patch, "kube-scheduler.yaml": "metadata: {labels: {a: b}}"}
    ((text, is_error),) = removed_flags(upgrade_context(patched=patched))
    assert "(patches/kube-controller-manager+json.json)" in text
    assert "name its directory with --patches" in text
    assert is_error


def test_etcd_that_stays_may_keep_its_flags() -> None:
    more = "etcd: {local: {extraArgs: [{name: experimental-corrupt-check-time, value: 1h}]}}\n"
    assert [*removed_flags(upgrade_context(more))]
    stays = UpgradeOptions(is_first=True, upgrades_etcd=False)
    assert not [*removed_flags(upgrade_context(more, options=stays))]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (FLAGS_FILE, 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.10 --containerd=/run/c.sock"\n'),
        ("/etc/default/kubelet", "# --boot-id-file=x\nKUBELET_EXTRA_ARGS=--containerd=/run/c.sock\n"),
        ("/etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS='--containerd=/run/c.sock'\n"),
    ],
)
def test_flags_of_the_kubelet_are_named_with_their_file(path: str, text: str) -> None:
    ((told, is_error),) = removed_kubelet_flags(upgrade_context(files={path: text}))
    assert "has no flag --containerd (" + path in told
    assert f"edit {path} on this node and restart the kubelet" in told
    assert is_error


def test_pause_image_of_older_minors_is_named_although_this_one_refuses_it_too() -> None:
    text = 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.10"\n'
    ((told, _),) = removed_kubelet_flags(upgrade_context(files={FLAGS_FILE: text}))
    assert "--pod-infra-container-image" in told


def test_kubelet_configuration_is_looked_at_as_it_will_be_written() -> None:
    ((told, is_error),) = removed_from_kubelets(upgrade_context(KUBELET + "featureGates: {SidecarContainers: true}\n"))
    assert "(featureGates.SidecarContainers in ConfigMap kube-system/kubelet-config)" in told
    assert is_error
    patched = {"kubeletconfiguration.yaml": "featureGates: {SidecarContainers: true}\n"}
    ((told, _),) = removed_from_kubelets(upgrade_context(patched=patched))
    assert "(featureGates.SidecarContainers in patches/kubeletconfiguration.yaml)" in told


def test_value_that_means_something_else_is_a_warning() -> None:
    ((told, is_error),) = removed_from_kubelets(upgrade_context(KUBELET + "eventRecordQPS: 0\n"))
    assert "no limit in 1.37" in told
    assert not is_error


def test_feature_gates_of_kube_proxy_are_named() -> None:
    ((told, is_error),) = removed_from_proxies(upgrade_context(PROXY + "featureGates: {SidecarContainers: true}\n"))
    assert "kube-proxy of Kubernetes 1.37 has no feature gate 'SidecarContainers'" in told
    assert is_error


def stored_corefile() -> str:
    objects = {each.kind: each.content for each in coredns_objects(load(CONFIG).config.cluster)}
    data = objects["ConfigMap"]["data"]
    assert isinstance(data, dict)
    return str(data["Corefile"])


def test_plugin_that_the_image_lacks_is_a_warning_with_the_image_to_choose() -> None:
    text = stored_corefile().replace("cache 30", "cache 30\n    kubernetai cluster.local")
    ((told, is_error),) = dns_limits(upgrade_context(dns=DnsObjects(corefile=text)))
    assert "does not have the plugins kubernetai" in told
    assert "dns.imageRepository" in told
    assert not is_error


def test_plugin_that_is_gone_is_migrated_and_said() -> None:
    text = stored_corefile().replace("forward .", "proxy .")
    found = [*dns_limits(upgrade_context(dns=DnsObjects(corefile=text, tag="1.4.0")))]
    assert (
        'Corefile: Plugin "proxy" is removed in 1.5.0. It is migrated; Corefile-backup keeps the present one',
        False,
    ) in found


def test_release_that_nobody_knows_stops_the_upgrade_before_it_begins() -> None:
    text = stored_corefile().replace("cache 30", "cache 60")
    found = [*dns_limits(upgrade_context(dns=DnsObjects(corefile=text, tag="v9.9.9")))]
    assert found
    assert found[0][1]
    assert "9.9.9" in found[0][0]
    without = upgrade_context("dns: {disabled: true}\n", dns=DnsObjects(corefile=text, tag="v9.9.9"))
    assert not [*dns_limits(without)]


def test_second_node_is_compared_with_the_minor_before_too() -> None:
    assert baseline(KubernetesVersion.parse("v1.37.0")).minor == 36
    assert baseline(KubernetesVersion.parse("v1.36.1")) == KubernetesVersion.parse("v1.36.1")


def test_checks_have_names_that_can_be_ignored() -> None:
    names = [each.name for each in upgrade_checks(upgrade_context())]
    wanted = {"ComponentFlags", "KubeletFlags", "KubeletConfiguration", "KubeProxyConfiguration", "CoreDNSMigration"}
    assert wanted <= {*names}
    assert len(names) == len({*names})
