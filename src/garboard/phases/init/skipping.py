"""Skipping the addons and disabling them in the configuration mean the same: each entails the other."""

from collections.abc import Iterable
from dataclasses import replace

from garboard.model.lifecycle import InitConfiguration

_ADDON, _COREDNS, _KUBE_PROXY = "addon", "addon/coredns", "addon/kube-proxy"


def with_disabled_addons(config: InitConfiguration, skip: Iterable[str]) -> tuple[InitConfiguration, tuple[str, ...]]:
    """Return the configuration that is stored, in which skipped addons are disabled, and all phases to skip."""
    skipped = tuple(skip)
    cluster = config.cluster
    cluster = replace(
        cluster,
        dns=replace(cluster.dns, disabled=cluster.dns.disabled or _ADDON in skipped or _COREDNS in skipped),
        is_proxy_disabled=cluster.is_proxy_disabled or _ADDON in skipped or _KUBE_PROXY in skipped,
    )
    disabled = {_COREDNS: cluster.dns.disabled, _KUBE_PROXY: cluster.is_proxy_disabled}
    added = tuple(name for name, is_off in disabled.items() if is_off and name not in skipped)
    return replace(config, cluster=cluster), (*skipped, *added)
