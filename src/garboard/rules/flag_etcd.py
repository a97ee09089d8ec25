"""Flags of etcd that it refuses together, or whose form only etcd knows: URLs, compaction, timeouts."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from garboard.errors import InvalidValue
from garboard.model import KubernetesVersion
from garboard.model.addresses import parse_ip, split_host_port
from garboard.rules.command_line import CommandLine
from garboard.rules.field_values import nanoseconds
from garboard.rules.findings import Found
from garboard.rules.flag_values import whole_number
from garboard.schema import load_schema
from garboard.values import dataclass

_DEFAULT_NAME, _DEFAULT_PEER_URL = "default", "http://localhost:2380"
_DEFAULT_HEARTBEAT_MS, _DEFAULT_ELECTION_MS = 100, 1000
_HEARTBEATS_PER_ELECTION = 5
_MOST_SAMPLES = 1_000_000  # of a million requests
_EXPERIMENTS = {
    "experimental-initial-corrupt-check": "InitialCorruptCheck",
    "experimental-compact-hash-check-enabled": "CompactHashCheck",
    "experimental-enable-lease-checkpoint": "LeaseCheckpoint",
    "experimental-enable-lease-checkpoint-persist": "LeaseCheckpointPersist",
    "experimental-stop-grpc-service-on-defrag": "StopGRPCServiceOnDefrag",
    "experimental-txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
}
_NO_NAME = "etcd listens on an IP address, not on a name"
_LISTENING = ("listen-peer-urls", "listen-client-urls", "listen-client-http-urls", "listen-metrics-urls")
_ADVERTISED = ("initial-advertise-peer-urls", "advertise-client-urls")


@dataclass(frozen=True, slots=True)
class EtcdUrl:
    """Where etcd listens, or says that it does."""

    scheme: str
    host: str
    port: str

    @property
    def is_everywhere(self) -> bool:
        address = parse_ip(self.host)
        return not self.host or (address is not None and address.is_unspecified)


def urls_of(texts: Iterable[str]) -> Iterator[EtcdUrl]:
    """Yield the URLs that can be read."""
    for text in texts:
        if _bad_url(text, listens=True) in (None, _NO_NAME) and not text.strip().startswith("unix"):
            url = urlsplit(text.strip())
            host, port = split_host_port(url.netloc)
            yield EtcdUrl(url.scheme, host, str(port))


def check_etcd(line: CommandLine) -> Found:
    """Yield what etcd refuses after it has read its flags."""
    heartbeat = _milliseconds(line, "heartbeat-interval", _DEFAULT_HEARTBEAT_MS)
    election = _milliseconds(line, "election-timeout", _DEFAULT_ELECTION_MS)
    if 0 < election < _HEARTBEATS_PER_ELECTION * heartbeat:
        name = "heartbeat-interval" if line.last("heartbeat-interval") else "election-timeout"
        message = f"the election timeout ({election} ms) must be at least five times the heartbeat ({heartbeat} ms)"
        yield line.finding("out-of-range", name, message)
    retention = line.value("auto-compaction-retention")
    if retention and not re.fullmatch(r"\+?[0-9]+", retention) and (nanoseconds(retention) or -1) < 0:
        message = "it is neither a number of hours or revisions nor a duration"
        yield line.finding("bad-flag-value", "auto-compaction-retention", message, "write it as 8h, or as 1000")
    for name in (*_LISTENING, *_ADVERTISED):
        for problem in filter(None, (_bad_url(url, listens=name in _LISTENING) for url in line.values(name))):
            yield line.finding("bad-flag-value", name, problem)
    if line.last("listen-client-urls") and not line.last("advertise-client-urls"):
        yield line.finding("missing-flag", "listen-client-urls", "it needs --advertise-client-urls")
    yield from _check_tls(line)
    yield from _check_bootstrap(line)
    yield from _check_experimental(line)
    for problem in filter(None, (_bad_url(url, listens=False) for url in line.values("cors") if url != "*")):
        yield line.finding("bad-flag-value", "cors", problem)
    persists = line.is_on("experimental-enable-lease-checkpoint-persist") or line.is_gate_on("LeaseCheckpointPersist")
    if persists and not (line.is_on("experimental-enable-lease-checkpoint") or line.is_gate_on("LeaseCheckpoint")):
        name = "experimental-enable-lease-checkpoint-persist"
        at = name if line.last(name) else "feature-gates"
        yield line.finding("flag-conflict", at, "it needs the feature gate LeaseCheckpoint")
    if line.value("auth-token").partition(",")[0] not in ("", "simple", "jwt"):
        yield line.finding("bad-flag-value", "auth-token", "it is neither simple nor jwt with its options")
    if line.is_on("enable-log-rotation") and not any("/" in each for each in line.values("log-outputs")):
        yield line.finding("missing-flag", "enable-log-rotation", "it needs a file in --log-outputs")
    rate = whole_number(line.value("distributed-tracing-sampling-rate")) or 0
    if line.is_on("enable-distributed-tracing") and not 0 <= rate <= _MOST_SAMPLES:
        yield line.finding("out-of-range", "distributed-tracing-sampling-rate", f"it must be 0 to {_MOST_SAMPLES}")


def _check_bootstrap(line: CommandLine) -> Found:
    """Yield several ways to find the members of a cluster, or half of one."""
    has_endpoints = line.last("discovery-endpoints") is not None  # also if it is empty
    for name in ("discovery", "discovery-srv", "discovery-endpoints"):
        if line.value("initial-cluster") and (line.value(name) or (has_endpoints and name == "discovery-endpoints")):
            yield line.finding("flag-conflict", name, "it excludes --initial-cluster")
    yield from _check_own_member(line)
    if bool(line.value("discovery-token")) != has_endpoints:
        name = "discovery-endpoints" if has_endpoints else "discovery-token"
        yield line.finding("missing-flag", name, "--discovery-token and --discovery-endpoints belong together")


def _check_own_member(line: CommandLine) -> Found:
    """Yield a member that the cluster which it begins does not have, or has at other URLs."""
    pairs = [pair.partition("=") for pair in line.values("initial-cluster")]
    own = {url for name, _, url in pairs if name.strip() == (line.value("name") or _DEFAULT_NAME)}
    if not pairs:
        return
    if not own:
        yield line.finding("flag-conflict", "initial-cluster", "the member of --name is not in it")
        return
    advertised = {*line.values("initial-advertise-peer-urls")} or {_DEFAULT_PEER_URL}
    urls = [*urls_of(own), *urls_of(advertised)]
    are_names = any(parse_ip(url.host) is None for url in urls)  # which only a resolver knows
    is_new = (line.value("initial-cluster-state") or "new") == "new"
    if is_new and not are_names and {*urls_of(own)} != {*urls_of(advertised)}:
        name = "initial-advertise-peer-urls" if line.last("initial-advertise-peer-urls") else "initial-cluster"
        message = "--initial-advertise-peer-urls and --initial-cluster name other URLs of this member"
        yield line.finding("flag-conflict", name, message)


def _check_experimental(line: CommandLine) -> Found:
    """Yield flags of experiments beside what has replaced them."""
    gates = {pair.partition("=")[0].strip() for pair in line.value("feature-gates").split(",")}
    for name in (each.name for each in line.flags if each.name.startswith("experimental-")):
        gate = _EXPERIMENTS.get(name)
        if gate in gates:
            yield line.finding("flag-conflict", name, f"--feature-gates sets {gate} already")
        if line.last(name.removeprefix("experimental-")) is not None:
            yield line.finding("flag-conflict", name, f"--{name.removeprefix('experimental-')} has replaced it")


def renamed_flag(program: str, name: str, version: KubernetesVersion) -> str:
    """Return what has replaced a flag that a minor does not have any more; nothing if that is not known."""
    options = load_schema(version).component(program)
    if program != "etcd" or options is None:
        return ""
    plain, gate = name.removeprefix("experimental-"), _EXPERIMENTS.get(name)
    if plain != name and plain in options.flags:
        return f"--{plain}"
    return f"--feature-gates={gate}=..." if gate else ""


def _milliseconds(line: CommandLine, name: str, default: int) -> int:
    number = whole_number(line.value(name))
    return default if line.last(name) is None or number is None else number


def _check_tls(line: CommandLine) -> Found:
    lowest, highest = line.value("tls-min-version"), line.value("tls-max-version")
    if lowest == "TLS1.3" and highest == "TLS1.2":
        yield line.finding("flag-conflict", "tls-min-version", "it is above --tls-max-version")
    if lowest == "TLS1.3" and line.value("cipher-suites"):
        yield line.finding("flag-conflict", "cipher-suites", "TLS1.3 alone has no choice of ciphers")


def _bad_url(text: str, *, listens: bool) -> str | None:
    """Return what is wrong with a URL of etcd: it has a scheme, a host and a port, and nothing else."""
    try:
        url = urlsplit(text.strip())
    except ValueError:
        return "this is no URL"
    if url.scheme not in ("http", "https", "unix", "unixs"):
        return "a URL must begin with http, https, unix or unixs"
    if url.scheme.startswith("unix"):
        return None
    try:
        host, _ = split_host_port(url.netloc)
    except InvalidValue:
        return "a URL must have the form https://HOST:PORT"
    if url.path:
        return "a URL must have no path"
    if listens and host != "localhost" and parse_ip(host) is None:
        return _NO_NAME
    return None if host or listens else "a URL needs a host"
