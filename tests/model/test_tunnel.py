"""What a tunnel is asked for, read from text."""

import pytest

from garboard.errors import InvalidValue
from garboard.model.tunnel import parse_bind_address, parse_servers


@pytest.mark.parametrize("text", ["127.0.0.1", "169.254.1.1", "fe80::1", "224.0.0.1", "0.0.0.0", "api.test", ""])
def test_address_that_no_service_leads_to_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_bind_address(text)


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        pytest.param("k.example", (("k.example", 8132),), id="a name"),
        pytest.param("k.example:9000", (("k.example", 9000),), id="with a port"),
        pytest.param("10.0.0.1, [2001:db8::1]:9000", (("10.0.0.1", 8132), ("2001:db8::1", 9000)), id="several"),
    ],
)
def test_servers_are_read_with_their_ports(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert parse_servers(text) == servers


@pytest.mark.parametrize("text", ["", "a,,b", "k.example:0", "k example", "https://k.example"])
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is not the address of a proxy server"):
        parse_servers(text)
