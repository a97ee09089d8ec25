"""Flags of one component that it refuses together, or that it cannot start without."""

import re
from collections.abc import Callable, Iterator, Mapping

from garboard.model.addresses import parse_networks
from garboard.rules.command_line import CommandLine
from garboard.rules.field_values import nanoseconds
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.flag_api_server import check_api_server
from garboard.rules.flag_etcd import check_etcd
from garboard.rules.flag_limits import CURVES, check_limits
from garboard.rules.flag_values import whole_number
from garboard.schema import Schema

_LEASE_S, _RENEW_S, _RETRY_S = 15, 10, 2  # what components take if they are not told
_JITTER = 1.2
_HTTP2_SUITES = tuple(f"TLS_ECDHE_{key}_WITH_AES_128_GCM_SHA256" for key in ("RSA", "ECDSA"))
_NODE_MASKS = {4: 24, 6: 64}
_MOST_NODE_BITS = 16
_METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HEADERS = tuple(f"requestheader-{each}" for each in ("username-headers", "group-headers", "extra-headers-prefix"))
_SIGNERS = ("kubelet-serving", "kubelet-client", "kube-apiserver-client", "legacy-unknown")


def check_together(line: CommandLine, schema: Schema) -> Found:
    """Yield what a program refuses after it has read all its flags."""
    check = _BY_PROGRAM.get(line.program)
    if check is None or not line.is_certain:
        return
    yield from check_limits(line)
    yield from check(line, schema)


def _check_etcd(line: CommandLine, _schema: Schema) -> Found:
    yield from check_etcd(line)


def _check_api_server(line: CommandLine, schema: Schema) -> Found:
    yield from check_api_server(line, schema)
    yield from _check_common(line, schema)


def _check_controller_manager(line: CommandLine, schema: Schema) -> Found:
    yield from _check_common(line, schema)
    yield from _check_election(line)
    yield from _check_client(line)
    if len(line.value("service-cluster-ip-range").split(",")) > 2:
        yield line.finding("bad-flag-value", "service-cluster-ip-range", "it takes one range, or one of each family")
    yield from _check_signing(line)
    if line.is_on("allocate-node-cidrs") and parse_networks(line.value("cluster-cidr") or "-") is None:
        message = "it needs --cluster-cidr with a range of addresses, such as 10.244.0.0/16"
        yield line.finding("missing-flag", "allocate-node-cidrs", message)
    elif line.is_on("allocate-node-cidrs"):
        yield from _check_node_masks(line)


def _check_node_masks(line: CommandLine) -> Found:
    """Yield sizes of the ranges of nodes that are no part of the range of the cluster."""
    for network in parse_networks(line.value("cluster-cidr")) or ():
        names = ("node-cidr-mask-size", f"node-cidr-mask-size-ipv{network.version}")
        given = [(name, whole_number(line.value(name))) for name in names if line.last(name)]
        name, size = given[-1] if given else ("cluster-cidr", None)
        mask = size or _NODE_MASKS[network.version]
        if not network.prefixlen <= mask <= network.prefixlen + _MOST_NODE_BITS:
            message = f"the range of a node (/{mask}) must be in that of the cluster (/{network.prefixlen}), at most"
            yield line.finding("out-of-range", name, f"{message} {_MOST_NODE_BITS} bits smaller")


def _check_signing(line: CommandLine) -> Found:
    pairs = {signer: [f"cluster-signing-{signer}-{kind}-file" for kind in ("cert", "key")] for signer in _SIGNERS}
    for names in pairs.values():
        given = [name for name in names if line.value(name)]
        if len(given) == 1:
            yield line.finding("missing-flag", given[0], "a certificate and its key belong together")
    used = [name for names in pairs.values() for name in names if line.value(name)]
    single = [name for name in ("cluster-signing-cert-file", "cluster-signing-key-file") if line.value(name)]
    if used and single:
        yield line.finding("flag-conflict", single[0], f"it excludes --{', --'.join(used)}")


def _check_scheduler(line: CommandLine, schema: Schema) -> Found:
    yield from _check_common(line, schema)
    if not line.value("config"):  # a configuration file says it instead
        yield from _check_election(line)
        yield from _check_client(line)


def _check_election(line: CommandLine) -> Found:
    """Yield lengths of time with which no leader can be elected."""
    if not line.is_on("leader-elect", default=True):
        return
    lock = line.last("leader-elect-resource-lock")
    if lock is not None and lock.value != "leases":
        yield line.finding("bad-flag-value", "leader-elect-resource-lock", "the only one is leases")
    lease, renew, retry = (
        _length(line, f"leader-elect-{name}", default)
        for name, default in (("lease-duration", _LEASE_S), ("renew-deadline", _RENEW_S), ("retry-period", _RETRY_S))
    )
    names = ("leader-elect-renew-deadline", "leader-elect-lease-duration", "leader-elect-retry-period")
    at = next((name for name in names if line.last(name)), names[0])
    if lease <= renew:
        yield line.finding(
            "out-of-range", at, "--leader-elect-lease-duration must be above --leader-elect-renew-deadline"
        )
    elif renew <= int(_JITTER * retry) or min(lease, renew, retry) < 1:
        message = "--leader-elect-renew-deadline must be above 1.2 times --leader-elect-retry-period, and none be zero"
        yield line.finding("out-of-range", at, message)


def _check_client(line: CommandLine) -> Found:
    """Yield a limit of requests to the API server with which none could be made."""
    rate, burst = line.value("kube-api-qps"), whole_number(line.value("kube-api-burst"))
    if burst is not None and burst <= 0 and not re.fullmatch(r"[-+]?0*\.?0*|-.*", rate or "1"):
        yield line.finding("out-of-range", "kube-api-burst", "it must be above zero")


def _length(line: CommandLine, name: str, default_s: int) -> int:
    found = nanoseconds(line.value(name)) if line.last(name) else None
    return default_s * 10**9 if found is None else found


def _check_common(line: CommandLine, schema: Schema) -> Found:
    """Yield what all components of Kubernetes refuse: in logging, metrics and the headers of proxies."""
    curves = [whole_number(each) for each in line.value("tls-curve-preferences").split(",") if each]
    if any(each is not None and each not in CURVES for each in curves) or len(set(curves)) != len(curves):
        message = f"it is none of {', '.join(map(str, CURVES))}, or stands twice"
        yield line.finding("bad-flag-value", "tls-curve-preferences", message)
    suites = line.values("tls-cipher-suites")
    is_http2 = not line.is_on("disable-http2-serving") and line.value("tls-min-version") != "VersionTLS13"
    if suites and is_http2 and not {*suites} & {*_HTTP2_SUITES}:
        message = f"HTTP/2 needs one of {', '.join(_HTTP2_SUITES)}"
        yield line.finding("bad-flag-value", "tls-cipher-suites", message)
    if line.value("vmodule") and line.value("logging-format") == "json":
        yield line.finding("flag-conflict", "vmodule", "only the format text has it")
    for name in ("log-text-split-stream", "log-json-split-stream"):
        if line.is_on(name) and not line.is_gate_on("LoggingAlphaOptions"):
            yield line.finding("flag-conflict", name, "it needs the feature gate LoggingAlphaOptions")
    for name in ("log-text-info-buffer-size", "log-json-info-buffer-size"):
        if line.value(name).strip("0.") and not line.is_gate_on("LoggingAlphaOptions"):
            yield line.finding("flag-conflict", name, "it needs the feature gate LoggingAlphaOptions")
    previous = f"{schema.version.major}.{schema.version.minor - 1}"
    if line.value("show-hidden-metrics-for-version") not in ("", previous):
        yield line.finding("bad-flag-value", "show-hidden-metrics-for-version", f"the only one is {previous}")
    if any(not re.fullmatch(_METRIC, name) for name in line.values("disabled-metrics")):
        yield line.finding("bad-flag-value", "disabled-metrics", "a name of a metric is expected")
    for pair in filter(None, (word.value for word in line.all("allow-metric-labels"))):
        key = pair.rpartition("=")[0].strip('"')
        if not re.fullmatch(rf"{_METRIC},[a-zA-Z_][a-zA-Z0-9_]*", key):
            yield line.finding("bad-flag-value", "allow-metric-labels", "it has the form METRIC,LABEL='VALUE,…'")
    for name in (*_HEADERS, "requestheader-allowed-names", "requestheader-uid-headers"):
        if any(not each.strip() for each in line.values(name)):
            yield line.finding("bad-flag-value", name, "an element is empty")
    uids = line.values("requestheader-uid-headers")
    if line.is_gate_on("RemoteRequestHeaderUID"):
        if uids and "x-remote-uid" not in [each.lower() for each in uids]:
            yield line.finding("bad-flag-value", "requestheader-uid-headers", "X-Remote-Uid must be among them")
    elif uids:
        yield line.finding(
            "flag-conflict", "requestheader-uid-headers", "it needs the feature gate RemoteRequestHeaderUID"
        )


_BY_PROGRAM: Mapping[str, Callable[[CommandLine, Schema], Iterator[ResultFinding]]] = {
    "etcd": _check_etcd,
    "kube-apiserver": _check_api_server,
    "kube-controller-manager": _check_controller_manager,
    "kube-scheduler": _check_scheduler,
}
