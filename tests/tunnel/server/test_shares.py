"""What a worker has of its server's quotas."""

from garboard.tunnel.frontend.protocol import TunnelQuota
from garboard.tunnel.server.shares import quota_share, share_of


def test_shares_add_up_to_the_quota_or_a_little_more_and_are_never_nothing() -> None:
    for workers in range(1, 65):
        for quota in (1, 8, 400, 40_000):
            share = share_of(quota, workers)
            assert share >= 1
            assert quota <= share * workers < quota + workers


def test_every_number_of_a_quota_is_divided() -> None:
    assert quota_share(TunnelQuota(), 1) == TunnelQuota()
    assert quota_share(TunnelQuota(), 4) == TunnelQuota(
        open_per_peer=2500, pending_per_peer=250, open=10_000, pending=1000
    )
