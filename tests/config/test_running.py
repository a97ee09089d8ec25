import pytest

from garboard.config.running import check_bind_address, ignored_checks
from garboard.errors import BadUsage, InvalidValue


def test_ignored_checks_of_both_places_are_united() -> None:
    assert ignored_checks(["Swap"], ["NumCPU", "swap"]) == {"swap", "numcpu"}
    assert ignored_checks(["all"], ["ALL"]) == {"all"}


def test_all_checks_and_single_ones_do_not_go_together() -> None:
    with pytest.raises(BadUsage, match='Invalid value: "all,swap": don\'t specify individual checks'):
        ignored_checks(["Swap"], ["ALL"])


@pytest.mark.parametrize("address", ["0.0.0.0", "169.254.1.1", "fe80::1", "224.0.0.1", "255.255.255.255", "nonsense"])
def test_an_address_that_nobody_could_reach_is_refused(address: str) -> None:
    with pytest.raises(InvalidValue, match=f'cannot use "{address}" as the bind address'):
        check_bind_address(address)


@pytest.mark.parametrize("address", ["10.0.0.1", "240.0.0.1", "fd00::1"])
def test_global_addresses_are_taken(address: str) -> None:
    check_bind_address(address)
