import pytest

from garboard.errors import InvalidValue
from garboard.tunnel.identifiers import Identifiers


def test_identifiers_are_a_query_string() -> None:
    found = Identifiers.parse(
        "ipv4=10.0.0.1&ipv4=10.0.0.2&host=a%2Eb&ipv6=fd00::1&cidr=10.0.0.0%2F8&default-route=true"
    )
    assert found == Identifiers(frozenset({"10.0.0.1", "10.0.0.2", "a.b", "fd00::1"}), ("10.0.0.0/8",), True)
    assert Identifiers.parse("") == Identifiers()


def test_unknown_keys_pass_from_others_and_not_from_our_own_flag() -> None:
    assert Identifiers.parse("uid=1&future=x&host=h").hosts == {"h"}
    with pytest.raises(InvalidValue, match="future"):
        Identifiers.parse("future=x", strict=True)


@pytest.mark.parametrize("text", ["default-route=maybe", "default-route="])
def test_default_route_is_a_truth_value(text: str) -> None:
    with pytest.raises(InvalidValue):
        Identifiers.parse(text)
