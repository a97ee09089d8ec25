"""What a server allows nodes to reach: laws, and the spellings somebody might try."""

import contextlib
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.tunnel.destinations import AllowList, Destination, NodeTarget

PORTS = st.integers(1, 65535)
NAMES = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,10}(\.[a-zA-Z0-9][a-zA-Z0-9-]{0,10}){0,2}\.?", fullmatch=True)
ADDRESSES = st.ip_addresses().map(lambda address: f"[{address}]" if address.version == 6 else str(address))
TEXTS = st.builds(lambda host, port: f"{host}:{port}", NAMES | ADDRESSES, PORTS)


@given(TEXTS)
def test_text_of_a_destination_reads_back(text: str) -> None:
    destination = Destination.parse(text)
    assert Destination.parse(str(destination)) == destination


@given(TEXTS)
def test_empty_list_denies_everything(text: str) -> None:
    assert not AllowList().allows(Destination.parse(text))


@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_only_what_is_listed_is_allowed(listed: list[str], asked: str) -> None:
    allowed = AllowList.parse(listed)
    destination = Destination.parse(asked)
    assert allowed.allows(destination) == (destination in {Destination.parse(text) for text in listed})
    assert allowed.refused([destination]) == (() if allowed.allows(destination) else (destination,))


@given(st.lists(TEXTS, min_size=1, max_size=5), st.data())
def test_what_is_listed_is_allowed_in_any_spelling(listed: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(listed))
    host, _, port = text.rpartition(":")
    spelt = data.draw(st.sampled_from([text, text.upper(), text.lower(), f"{host}:0{port}" if len(port) < 5 else text]))
    assert AllowList.parse(listed).allows(Destination.parse(spelt))


@given(st.ip_addresses(v=4), st.integers(0, 32), st.ip_addresses(), PORTS, PORTS)
def test_network_holds_its_literal_addresses_on_its_port_only(
    base: object, bits: int, address: object, port: int, other: int
) -> None:
    network = ip_network(f"{base}/{bits}", strict=False)
    allowed = AllowList.parse([f"{network}:{port}"])
    literal = ip_address(str(address))
    inside = literal.version == 4 and literal in network
    text = f"[{literal}]" if literal.version == 6 else str(literal)
    assert allowed.allows(Destination.parse(f"{text}:{port}")) == inside
    assert not allowed.allows(Destination.parse(f"{text}:{other}")) or (inside and other == port)


@given(NAMES, PORTS)
def test_no_name_is_in_a_network(name: str, port: int) -> None:
    destination = Destination.parse(f"{name}:{port}")
    if not destination.is_address:
        assert not AllowList.parse([f"0.0.0.0/0:{port}", f"[::/0]:{port}"]).allows(destination)


@pytest.mark.parametrize(
    "asked",
    [
        "127.1:6443", "0x7f000001:6443", "2130706433:6443", "0177.0.0.1:6443", "localhost:6443", "127.0.0.1:443",
        "[::ffff:127.0.0.1]:6443", "[::1]:6443", "api.example.org:6443", "api.example:64430",
    ],
)  # fmt: skip
def test_other_ways_to_the_same_place_are_denied(asked: str) -> None:
    allowed = AllowList.parse(["127.0.0.1:6443", "api.example:6443", "10.0.0.0/8:6443"])
    assert not allowed.allows(Destination.parse(asked))


@given(st.text(max_size=40))
def test_any_text_is_a_destination_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(InvalidValue):
        assert Destination.parse(str(Destination.parse(text))) == Destination.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", "h", "h:", ":1", "h:0", "h:65536", "h:-1", "h:+1", "h:１", "::1:80", "[h]:80", "[fe80::1%eth0]:80", "a b:1",
     "a\nb:1", "-h:1", "h..i:1", "10.0.0.1/8:1", "10.0.0.0/33:1", "name/8:1"],
)  # fmt: skip
def test_what_is_no_destination_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        AllowList.parse([text])


@pytest.mark.parametrize(
    ("text", "local", "destination"),
    [
        ("6443:apiserver.svc.cluster.local:6443", 6443, "apiserver.svc.cluster.local:6443"),
        ("443:[2001:db8:1f70::999:de8:7648:6e8]:6443", 443, "[2001:db8:1f70:0:999:de8:7648:6e8]:6443"),
        ("1:10.0.0.1:2", 1, "10.0.0.1:2"),
    ],
)
def test_target_is_parsed(text: str, local: int, destination: str) -> None:
    assert NodeTarget.parse(text) == NodeTarget(local, Destination.parse(destination))


@pytest.mark.parametrize("text", ["6443", "6443:h", "x:h:1", "0:h:1", "6443:::1:6443"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is not a target"):
        NodeTarget.parse(text)


@pytest.mark.parametrize("text", ["10.1.2.3.:6443", "[fd00::1.]:6443", "10.1.2.3..:6443"])
def test_address_with_a_dot_at_its_end_is_no_destination(text: str) -> None:
    """A resolver takes it for a name, and a network for one of its addresses."""
    with pytest.raises(InvalidValue):
        Destination.parse(text)


@pytest.mark.parametrize(
    ("network", "is_allowed"),
    [("::/0", False), ("::/1", False), ("::ffff:0:0/96", True), ("::ffff:10.0.0.0/104", True), ("fd00::/8", False)],
)
def test_network_of_ipv6_addresses_means_no_ipv4_address_unless_it_says_so(network: str, is_allowed: bool) -> None:
    allowed = AllowList.parse([f"[{network}]:6443"])
    assert allowed.allows(Destination.parse("[::ffff:10.0.0.1]:6443")) == is_allowed
