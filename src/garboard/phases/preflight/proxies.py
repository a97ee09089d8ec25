"""HTTPProxy and HTTPProxyCIDR: whether a proxy would stand between this node and the addresses of the cluster."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from urllib.parse import urlsplit

from garboard.model.addresses import address_at, parse_ip
from garboard.phases.preflight.exam import Exam
from garboard.phases.preflight.outcome import Check


def no_proxy_to(host: str) -> Check:
    def look(exam: Exam) -> Iterator[tuple[str, bool]]:
        if proxy := proxy_for(host, exam.environment()):
            yield f"connections to {host} use the proxy {_shown(proxy)}: add it to NO_PROXY if that is not meant", False

    return Check("HTTPProxy", look)


def no_proxy_to_network(cidr: str) -> Check:
    def look(exam: Exam) -> Iterator[tuple[str, bool]]:
        first = address_at(cidr, 1)
        if first is not None and (proxy := proxy_for(str(first), exam.environment())):
            told = f"connections to {cidr} use the proxy {_shown(proxy)}"
            yield f"{told}; pods and services may not be reached: add it to NO_PROXY", False

    return Check("HTTPProxyCIDR", look)


def proxy_for(host: str, environment: Mapping[str, str]) -> str:
    """Return the proxy of an HTTPS connection to `host`, as Go programs read the environment; empty without one."""
    proxy = environment.get("HTTPS_PROXY") or environment.get("https_proxy") or ""
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    address = parse_ip(host)
    is_local = host == "localhost" or (address is not None and address.is_loopback)
    if not proxy or is_local or any(_covers(part.strip(), host) for part in exceptions.split(",")):
        return ""
    return proxy


def _covers(exception: str, host: str) -> bool:
    if not exception:
        return False
    if exception == "*":
        return True
    address = parse_ip(host)
    if "/" in exception:
        try:
            return address is not None and address in ip_network(exception, strict=False)
        except ValueError:
            return False
    name = exception.removeprefix("*").lower()
    return host.lower() == name.removeprefix(".") or (address is None and host.lower().endswith(f".{name.lstrip('.')}"))


def _shown(proxy: str) -> str:
    """Return the proxy without a user's password."""
    parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
