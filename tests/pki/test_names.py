import contextlib
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.model.addresses import parse_ip
from garboard.model.names import subdomain_problems
from garboard.pki.names import AltNames, ControlPlaneEndpoint, is_dns_name, sort_names


@pytest.mark.parametrize(
    ("text", "address"),
    [
        pytest.param("10.0.0.1", "10.0.0.1", id="IPv4"),
        pytest.param("010.000.0.01", "10.0.0.1", id="leading zeros are decimal"),
        pytest.param("fd00::1", "fd00::1", id="IPv6"),
        pytest.param("::ffff:10.0.0.1", "10.0.0.1", id="IPv4 inside IPv6 is IPv4"),
        pytest.param("64:ff9b::10.00.0.1", "64:ff9b::a00:1", id="dotted tail with leading zeros"),
    ],
)
def test_address_is_read(text: str, address: str) -> None:
    assert parse_ip(text) == ip_address(address)


@pytest.mark.parametrize("text", ["", "10.0.0", "10.0.0.256", "1.2.3.4.5", "fe80::1%eth0", "::1::", "1.2.3.٤", "host"])
def test_other_text_is_no_address(text: str) -> None:
    assert parse_ip(text) is None


@given(st.ip_addresses())
def test_printed_address_reads_back(address: object) -> None:
    assert parse_ip(str(address)) == (getattr(address, "ipv4_mapped", None) or address)


@pytest.mark.parametrize("text", ["a", "a.b", "a-b.c", "0", "a" * 253])
def test_subdomain(text: str) -> None:
    assert not subdomain_problems(text)


@pytest.mark.parametrize("text", ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "é", "a" * 254, "*.a"])
def test_no_subdomain(text: str) -> None:
    assert subdomain_problems(text)


def test_wildcard_is_a_name_only_as_the_whole_first_label() -> None:
    assert [is_dns_name(each) for each in ("*.a.b", "*", "a.*.b", "*a.b")] == [True, False, False, False]


def test_extra_names_are_told_apart() -> None:
    found = sort_names(["b.example", "10.0.0.1", "Bad_Name", "*.a.example", "fd00::1"])
    assert found.names == AltNames(("b.example", "*.a.example"), (ip_address("10.0.0.1"), ip_address("fd00::1")))
    assert found.rejected == ("Bad_Name",)


def test_canonical_names_are_sorted_and_addresses_keep_their_order() -> None:
    names = AltNames(("b", "a", "b"), tuple(map(ip_address, ("10.0.0.2", "10.0.0.1", "::ffff:10.0.0.2"))))
    assert names.canonical() == AltNames(("a", "b"), (ip_address("10.0.0.2"), ip_address("10.0.0.1")))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        pytest.param("api.example.com", "https://api.example.com:6443", id="default port"),
        pytest.param("api.example.com:443", "https://api.example.com:443", id="own port"),
        pytest.param("fd00::1", "https://[fd00::1]:6443", id="bare IPv6"),
        pytest.param("[fd00::1]:8443", "https://[fd00::1]:8443", id="IPv6 and port"),
        pytest.param("api.example.com:06443", "https://api.example.com:06443", id="the port stays as it was written"),
        pytest.param("010.0.0.1", "https://010.0.0.1:6443", id="the host stays as it was written"),
    ],
)
def test_endpoint_becomes_a_url(text: str, url: str) -> None:
    assert ControlPlaneEndpoint.parse(text).url(6443) == url


@pytest.mark.parametrize("text", ["", "a:b", "a:0", "a:65536", "a:1:2", "[fd00::1]", "API", "https://a", "[a]:٣"])
def test_other_text_is_no_endpoint(text: str) -> None:
    with pytest.raises(InvalidValue):
        ControlPlaneEndpoint.parse(text)


@given(st.text(max_size=40))
def test_no_text_makes_reading_an_endpoint_fail_otherwise(text: str) -> None:
    with contextlib.suppress(InvalidValue):
        assert ControlPlaneEndpoint.parse(text).host in text
