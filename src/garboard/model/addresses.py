"""IP addresses, networks, host:port pairs and URLs, read the way Go and kubeadm read them."""

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from garboard.errors import InvalidValue
from garboard.model.names import subdomain_problems

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_HOST_BYTES = re.compile(r"[a-zA-Z0-9._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff-]*")


def parse_ip(text: str) -> IpAddress | None:
    """Read an address; like Kubernetes, forgive leading zeros in IPv4 and take a mapped address for IPv4."""
    if "%" in text or not text.isascii():
        return None
    try:
        address = ipaddress.ip_address(_LEADING_ZEROS.sub("", text) if "." in text else text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def parse_networks(text: str) -> tuple[IpNetwork, ...] | None:
    """Read comma-separated CIDRs, host bits cleared; None if any of them is invalid."""
    networks = [_parse_network(part) for part in text.split(",")]
    return None if None in networks else tuple(network for network in networks if network is not None)


def _parse_network(text: str) -> IpNetwork | None:
    address, slash, prefix = text.partition("/")
    base, mapped_bits = parse_ip(address), 0
    if base is None or not slash or not re.fullmatch("[0-9]{1,3}", prefix):
        return None
    if ":" in address and isinstance(base, IPv4Address):
        # An IPv4 network written as IPv6: the prefix counts all bits.
        base, mapped_bits = (base, 96) if int(prefix) >= 96 else (IPv6Address(0xFFFF << 32 | int(base)), 0)
    bits = int(prefix) - mapped_bits
    return ipaddress.ip_network(f"{base}/{bits}", strict=False) if bits <= base.max_prefixlen else None


def is_global_unicast(address: IpAddress) -> bool:
    """Go's IsGlobalUnicast: true for private addresses, false for link-local ones and 255.255.255.255."""
    if address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local:
        return False
    return address != IPv4Address("255.255.255.255")


def split_host_port(text: str) -> tuple[str, str]:
    """Split `host:port` or `[host]:port` as Go's net package does."""
    found = re.fullmatch(r"\[([^\[\]]*)\]:([^:\[\]]*)|([^:\[\]]*):([^:\[\]]*)", text)
    if found is not None:
        return found[1] or found[3] or "", found[2] or found[4] or ""
    if ":" not in text or (text.startswith("[") and text.endswith("]")):
        raise InvalidValue(f"address {text}: missing port in address" if text else "missing port in address")
    raise InvalidValue(f"address {text}: too many colons in address")


def parse_host_port(text: str) -> tuple[str, str]:
    """Read an endpoint whose port may be missing; the host is an address or a DNS name."""
    try:
        host, port = split_host_port(text)
    except InvalidValue:
        host, port = text, ""
    if port and not is_port(port):
        raise InvalidValue(f"hostport {text}: port {port} must be a valid number between 1 and 65535, inclusive")
    if parse_ip(host) is None and subdomain_problems(host):
        raise InvalidValue(
            f"hostport {text}: host '{host}' must be a valid IP address or a valid RFC-1123 DNS subdomain"
        )
    return host, port


def join_host_port(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,20}", text) is not None and 1 <= int(text) <= 65535


def url_scheme(text: str) -> str:
    """Return the scheme of a URL, lower-case, empty if it has none; refuse what Go's net/url refuses."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise InvalidValue(f'parse "{text!r}": net/url: invalid control character in URL')
    if text.startswith(":"):
        raise InvalidValue(f'parse "{text}": missing protocol scheme')
    found = _SCHEME.match(text)
    rest = (text[found.end() :] if found else text).partition("#")[0].partition("?")[0]
    if not found and not rest.startswith("/") and ":" in rest.partition("/")[0]:
        raise InvalidValue(f'parse "{text}": first path segment in URL cannot contain colon')
    if rest.startswith("//"):
        _check_authority(text, rest[2:].partition("/")[0])
    if re.search(r"%(?![0-9a-fA-F]{2})", rest):
        raise InvalidValue(f'parse "{text}": invalid URL escape')
    return found[1].lower() if found else ""


def _check_authority(text: str, authority: str) -> None:
    host = authority.rpartition("@")[2]
    bad = next((char for char in host if not _HOST_BYTES.fullmatch(char)), None)
    if bad is not None:
        raise InvalidValue(f'parse "{text}": invalid character "{bad}" in host name')
    if host.startswith("[") and "]" not in host:
        raise InvalidValue(f"parse \"{text}\": missing ']' in host")
    port = host.rpartition("]")[2] if host.startswith("[") else ":" + host.rpartition(":")[2] if ":" in host else ""
    if port and not re.fullmatch(":[0-9]*", port):
        raise InvalidValue(f'parse "{text}": invalid port "{port}" after host')


def address_at(subnets: str, index: int) -> IpAddress | None:
    """Return the address `index` places into the first CIDR of `subnets`; nothing if there is none."""
    networks = parse_networks(subnets)
    if not networks or index >= networks[0].num_addresses:
        return None
    return networks[0][index]
