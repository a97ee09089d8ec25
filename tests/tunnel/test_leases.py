from garboard.tunnel.leases import valid_count
from tests.support.tunnel.leases import lease

NOW = 1_000_000.0


def test_lease_is_valid_until_its_time_is_over() -> None:
    assert lease("a", NOW - 29).is_valid(NOW)
    assert not lease("a", NOW - 30).is_valid(NOW)
    assert lease("a", None, NOW - 29).is_valid(NOW)
    assert not lease("a", None).is_valid(NOW)
    assert valid_count((lease("a", NOW), lease("b", NOW - 60)), NOW) == 1
