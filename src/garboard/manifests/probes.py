"""The addresses that probes ask, out of the addresses that components listen on."""

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from garboard.errors import InvalidValue
from garboard.manifests.arguments import last_arg
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.pod import Probes
from garboard.manifests.sources import ConfigField, cluster_field
from garboard.model.addresses import is_port, url_scheme
from garboard.model.component import Arg, LocalEtcd

ETCD_METRICS_PORT = 2381
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


def probe_host(listens_on: str) -> str:
    """Return the host to ask; nothing, which means the pod's own address, for a component that listens everywhere."""
    return "" if listens_on in _EVERYWHERE else listens_on


def bind_address_probes(args: Sequence[Arg], field: ConfigField, probes: Probes) -> Probes:
    """Return probes that ask where the component listens, should the user have moved it."""
    found = last_arg(args, "bind-address")
    if found is None:
        return probes
    index, arg = found
    return Probes(
        host=probe_host(arg.value),
        port=probes.port,
        liveness=probes.liveness,
        startup=probes.startup,
        readiness=probes.readiness,
        host_source=field / index,
    )


def etcd_probes(node: ControlPlaneNode, local: LocalEtcd) -> Probes:
    """Return probes of the first metrics URL that the user gives, as far as it can be read."""
    found = last_arg(local.extra_args, "listen-metrics-urls")
    host, port, scheme, source = node.loopback, ETCD_METRICS_PORT, "HTTP", None
    if found is not None:
        index, arg = found
        host, port, scheme = _metrics_endpoint(arg.value.partition(",")[0], node.loopback)
        source = cluster_field("etcd", "local", "extraArgs") / index
    return Probes(
        host=host,
        port=port,
        scheme=scheme,
        liveness="/livez",
        readiness="/readyz",
        startup="/readyz",
        host_source=source,
        port_source=source,
    )


def _metrics_endpoint(url: str, loopback: str) -> tuple[str, int, str]:
    try:
        scheme = url_scheme(url)
    except InvalidValue:
        return loopback, ETCD_METRICS_PORT, "HTTP"
    authority = urlsplit(url).netloc.rpartition("@")[2] if "//" in url else ""
    host, port = _split_authority(authority)
    number = int(port) if is_port(port) else ETCD_METRICS_PORT
    return unquote(host) or loopback, number, "HTTPS" if scheme == "https" else "HTTP"


def _split_authority(authority: str) -> tuple[str, str]:
    """Split as Go's url.Hostname and url.Port do: the last colon counts, unless brackets hold it."""
    head, bracket, tail = authority.rpartition("]")
    if bracket:
        return head.removeprefix("["), tail.removeprefix(":")
    host, colon, port = authority.rpartition(":")
    return (host, port) if colon else (authority, "")
