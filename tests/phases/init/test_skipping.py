from dataclasses import replace

import pytest

from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import Dns
from garboard.model.lifecycle import InitConfiguration
from garboard.phases.init.skipping import with_disabled_addons


@pytest.mark.parametrize(
    ("skip", "is_dns_off", "is_proxy_off"),
    [
        pytest.param((), False, False, id="nothing"),
        pytest.param(("addon",), True, True, id="both addons"),
        pytest.param(("addon/coredns",), True, False, id="DNS"),
        pytest.param(("certs", "addon/kube-proxy"), False, True, id="the proxy and something else"),
    ],
)
def test_skipped_addon_is_stored_as_disabled(skip: tuple[str, ...], is_dns_off: bool, is_proxy_off: bool) -> None:
    config, skipped = with_disabled_addons(InitConfiguration(), skip)
    assert (config.cluster.dns.disabled, config.cluster.is_proxy_disabled) == (is_dns_off, is_proxy_off)
    assert skipped[: len(skip)] == skip


def test_disabled_addon_is_skipped() -> None:
    cluster = ClusterConfiguration(dns=Dns(disabled=True), is_proxy_disabled=True)
    config = replace(InitConfiguration(), cluster=cluster)
    assert with_disabled_addons(config, ()) == (config, ("addon/coredns", "addon/kube-proxy"))
