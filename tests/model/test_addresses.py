import pytest

from garboard.errors import InvalidValue
from garboard.model.addresses import address_at, parse_host_port, parse_ip, parse_networks, split_host_port, url_scheme
from garboard.model.names import is_image_repository


@pytest.mark.parametrize(("text", "address"), [
    ("10.0.0.1", "10.0.0.1"),
    ("010.000.0.01", "10.0.0.1"),
    ("::ffff:10.0.0.1", "10.0.0.1"),
    ("FD00:0:0::1", "fd00::1"),
    ("fe80::1%eth0", None),
    ("10.0.0", None),
    ("10.0.0.256", None),
    ("", None),
    ("٣.1.1.1", None),
])  # fmt: skip
def test_addresses_are_read_as_kubernetes_does(text: str, address: str | None) -> None:
    found = parse_ip(text)
    assert (None if found is None else str(found)) == address


@pytest.mark.parametrize(("text", "networks"), [
    ("10.0.0.5/8", ["10.0.0.0/8"]),
    ("10.0.0.0/16,fd00::/56", ["10.0.0.0/16", "fd00::/56"]),
    ("::ffff:10.0.0.5/112", ["10.0.0.0/16"]),
    ("::ffff:10.0.0.5/90", ["::ffc0:0:0/90"]),
    ("::ffff:10.0.0.5/129", None),
    ("10.0.0.0", None),
    ("10.0.0.0/33", None),
    ("10.0.0.0/255.0.0.0", None),
    ("10.0.0.0/16,", None),
    ("10.0.0.0/-1", None),
])  # fmt: skip
def test_networks_lose_their_host_bits(text: str, networks: list[str] | None) -> None:
    found = parse_networks(text)
    assert (None if found is None else [str(network) for network in found]) == networks


def test_the_tenth_address_of_the_first_network() -> None:
    assert str(address_at("10.96.0.0/12,fd00::/112", 10)) == "10.96.0.10"
    assert str(address_at("fd00::/112", 10)) == "fd00::a"
    assert address_at("10.0.0.0/30", 10) is None


@pytest.mark.parametrize(("text", "parts"), [
    ("host:1", ("host", "1")),
    ("[fd00::1]:6443", ("fd00::1", "6443")),
    ("host:", ("host", "")),
    (":1", ("", "1")),
])  # fmt: skip
def test_host_and_port_are_split(text: str, parts: tuple[str, str]) -> None:
    assert split_host_port(text) == parts


@pytest.mark.parametrize(("text", "message"), [
    ("host", "address host: missing port in address"),
    ("fd00::1", "address fd00::1: too many colons in address"),
    ("", "missing port in address"),
])  # fmt: skip
def test_what_has_no_port_is_told_as_go_does(text: str, message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        split_host_port(text)
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["lb.example.com", "lb.example.com:6443", "10.0.0.1", "fd00::1", "[fd00::1]:1"])
def test_an_endpoint_may_lack_its_port(text: str) -> None:
    assert parse_host_port(text)


@pytest.mark.parametrize("text", ["a_b", "a:0", "a:65536", "a:http", "-a", "https://a"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_host_port(text)


@pytest.mark.parametrize(("text", "scheme"), [
    ("https://10.0.0.1:2379", "https"),
    ("HTTPS://a", "https"),
    ("localhost:2379", "localhost"),
    ("/a/path", ""),
    ("unix:///run/x.sock", "unix"),
])  # fmt: skip
def test_scheme_of_a_url(text: str, scheme: str) -> None:
    assert url_scheme(text) == scheme


@pytest.mark.parametrize(("text", "message"), [
    ("10.0.0.1:2379", 'parse "10.0.0.1:2379": first path segment in URL cannot contain colon'),
    (":x", 'parse ":x": missing protocol scheme'),
    ("https://a:b", 'parse "https://a:b": invalid port ":b" after host'),
])  # fmt: skip
def test_a_url_that_go_refuses(text: str, message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        url_scheme(text)
    assert caught.value.message == message


@pytest.mark.parametrize(("text", "is_one"), [
    ("registry.k8s.io", True),
    ("example.com:5000/a/b", True),
    ("UPPER/case", True),
    ("a b", False),
    ("-x", False),
    ("", False),
    ("a/B/c", False),
])  # fmt: skip
def test_image_repositories(text: str, *, is_one: bool) -> None:
    assert is_image_repository(text) == is_one
