"""Names, numbers and addresses as Kubernetes demands them: each check returns what is wrong, or nothing."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_SEARCH_LABEL = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_DOMAIN = re.compile(rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*")
_KEY = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PORT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_PRINTABLE = re.compile(r"[ -<>-~]+")  # ASCII but '='
_SYSCTL_SEGMENT = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"({_SYSCTL_SEGMENT}[./])*{_SYSCTL_SEGMENT}")
_MAX_LABEL, _MAX_SUBDOMAIN, _MAX_PORT_NAME = 63, 253, 15
_HOST_PART = r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = rf"({_HOST_PART}(\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(:[0-9]+)?"
_IMAGE_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})"
_IMAGE = re.compile(
    rf"(?P<name>({_REGISTRY}/)?{_IMAGE_PART}(/{_IMAGE_PART})*)(:\w[\w.-]{{0,127}})?(@{_DIGEST})?", re.ASCII
)
_MAX_IMAGE_NAME = 255


def dns_label(text: str) -> str | None:
    if _LABEL.fullmatch(text) is None:
        return "must be a DNS label: lower-case letters, digits and dashes, a letter or digit first and last"
    return f"must have at most {_MAX_LABEL} characters" if len(text) > _MAX_LABEL else None


def dns_subdomain(text: str) -> str | None:
    return _domain(text, _SUBDOMAIN)


def search_domain(text: str) -> str | None:
    """Check a domain that resolvers search: a dot alone or at the end, and underscores, are fine."""
    return None if text == "." else _domain(text.removesuffix("."), _SEARCH_DOMAIN)


def _domain(text: str, pattern: re.Pattern[str]) -> str | None:
    if pattern.fullmatch(text) is None:
        return "must be a DNS name: lower-case letters, digits, dashes and dots, a letter or digit first and last"
    return f"must have at most {_MAX_SUBDOMAIN} characters" if len(text) > _MAX_SUBDOMAIN else None


def qualified_name(text: str) -> str | None:
    """Check a label key: a name, with the domain of its owner and a slash before it if it has one."""
    prefix, slash, name = text.rpartition("/")
    if slash and dns_subdomain(prefix) is not None:
        return "must have a DNS name before the slash"
    if _KEY.fullmatch(name) is None or len(name) > _MAX_LABEL:
        return "must be a name of at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last"
    return None


def label_value(text: str) -> str | None:
    return None if not text else qualified_name(text) if "/" not in text else "must be a label value, without a slash"


def image_reference(text: str) -> str | None:
    """Check a reference of an image: a registry, a name, a tag and a digest, of which only the name must be there."""
    found = _IMAGE.fullmatch(text)
    if found is None or len(found["name"]) > _MAX_IMAGE_NAME or re.fullmatch("[a-f0-9]{64}", text):
        return "must be a reference of an image, such as registry.k8s.io/pause:3.10"
    return None


def port_name(text: str) -> str | None:
    if _PORT.fullmatch(text) is None or len(text) > _MAX_PORT_NAME or re.search("[a-z]", text) is None:
        return "must be a port name: at most 15 lower-case letters, digits and single dashes, with a letter among them"
    return None


def header_name(text: str) -> str | None:
    return None if _HEADER.fullmatch(text) else "must be a header name: letters, digits and dashes"


def variable_name(text: str) -> str | None:
    return None if _PRINTABLE.fullmatch(text) else "must be printable ASCII characters other than '='"


def dotted_sysctl(name: str) -> str:
    """Return the name of a sysctl with dots between its parts: one that begins with a slash part has them swapped."""
    first = next((letter for letter in name if letter in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


def sysctl_name(text: str) -> str | None:
    fits = _SYSCTL.fullmatch(text) is not None and len(text) <= _MAX_SUBDOMAIN
    return None if fits else "must be the name of a sysctl, such as net.core.somaxconn"


def relative_path(text: str) -> str | None:
    return "must be a relative path" if text.startswith("/") else no_backstep(text)


def local_path(text: str) -> str | None:
    """Check the path of a file in a volume."""
    return relative_path(text) or ("must not begin with '..'" if text.startswith("..") else None)


def no_backstep(text: str) -> str | None:
    return "must not contain '..'" if ".." in text.split("/") else None


def address(text: str) -> str | None:
    """Check an IP address as strictly as new objects are: no leading zeros, no IPv4 in IPv6."""
    try:
        found: IPv4Address | IPv6Address | None = ip_address(text)
    except ValueError:
        found = None
    is_mapped = isinstance(found, IPv6Address) and found.ipv4_mapped is not None
    return "must be an IP address, such as 10.0.0.1 or fd00::1" if found is None or is_mapped or "%" in text else None
