"""Flags that kube-apiserver refuses together, or whose form only it knows."""

import re
from ipaddress import ip_network
from urllib.parse import urlsplit

from garboard.model.addresses import parse_ip, parse_networks
from garboard.rules.command_line import CommandLine
from garboard.rules.field_values import nanoseconds
from garboard.rules.findings import Found
from garboard.rules.flag_values import whole_number
from garboard.schema import Schema, suggest

AUTHORIZATION_MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
_AUDIT_MODES = ("batch", "blocking", "blocking-strict")
_AUDIT_VERSION = "audit.k8s.io/v1"
_MOST_GOAWAY = 0.02
_CONFIGURED_PLUGINS = frozenset({"EventRateLimit", "ImagePolicyWebhook"})  # they cannot be made without a file
_HOUR = 3600 * 10**9
_MOST_SECONDS = 2**32 * 10**9
_DEFAULT_BATCH = {"log": "blocking", "webhook": "batch"}
_DEFAULT_EVENT_BYTES, _DEFAULT_BATCH_BYTES = 102_400, 10 * 1024 * 1024
# Words of --runtime-config that stand for many groups.
_API_WORDS = ("api/all", "api/ga", "api/beta", "api/alpha", "api/legacy", "v1", "api/v1")
_NO_API_GROUPS = ("kubeadm.k8s.io", "audit.k8s.io", "apiserver.config.k8s.io")


def check_api_server(line: CommandLine, schema: Schema) -> Found:
    """Yield what kube-apiserver refuses after it has read its flags."""
    if not line.value("etcd-servers"):
        yield line.finding("missing-flag", "etcd-servers", "kube-apiserver does not start without it")
    yield from _check_authorization(line)
    yield from _check_service_accounts(line)
    yield from _check_oidc(line)
    yield from _check_audit(line)
    yield from _check_admission(line)
    yield from _check_service_range(line)
    yield from _check_runtime_config(line, schema)
    yield from _check_lists(line)
    chance = _number(line.value("goaway-chance")) or 0
    if chance < 0 or chance > _MOST_GOAWAY:  # what is no number is neither, and is taken
        yield line.finding("out-of-range", "goaway-chance", "it must be 0 to 0.02")
    reload = "encryption-provider-config-automatic-reload"
    if line.is_on(reload) and not line.value("encryption-provider-config"):
        yield line.finding("flag-conflict", reload, "it needs --encryption-provider-config")
    for name in ("peer-ca-file", "peer-advertise-ip", "peer-advertise-port"):
        if line.value(name) and not line.is_gate_on("UnknownVersionInteroperabilityProxy"):
            message = "it needs the feature gate UnknownVersionInteroperabilityProxy"
            yield line.finding("flag-conflict", name, message)


def _check_authorization(line: CommandLine) -> Found:
    name = "authorization-mode"
    if line.value("authorization-config"):
        legacy = [name, *(flag for flag in line.options.flags if flag.startswith("authorization-webhook-"))]
        used = [flag for flag in legacy if line.last(flag) is not None]
        if used:
            yield line.finding("flag-conflict", "authorization-config", f"it excludes --{', --'.join(used)}")
        return
    modes = line.values(name) or ["AlwaysAllow"]
    for mode in modes:
        if mode not in AUTHORIZATION_MODES:
            near = suggest(mode, AUTHORIZATION_MODES)
            hint = f"did you mean {near!r}?" if near else None
            yield line.finding("bad-flag-value", name, f"{mode!r} is none of {', '.join(AUTHORIZATION_MODES)}", hint)
    if len(modes) != len(set(modes)):
        yield line.finding("flag-conflict", name, "a mode stands twice")
    for mode, file in (("ABAC", "authorization-policy-file"), ("Webhook", "authorization-webhook-config-file")):
        if mode in modes and not line.value(file):
            yield line.finding("missing-flag", name, f"{mode} needs --{file}")
        if mode not in modes and line.value(file):
            yield line.finding("flag-conflict", file, f"it needs the mode {mode}")


def _check_service_accounts(line: CommandLine) -> Found:
    issuer, key, endpoint = (
        "service-account-issuer",
        "service-account-signing-key-file",
        "service-account-signing-endpoint",
    )
    issuers = [word.value or "" for word in line.all(issuer)]
    if not issuers or not issuers[0]:
        yield line.finding("missing-flag", issuer, "kube-apiserver does not start without it")
    elif "" in issuers or len(set(issuers)) != len(issuers):
        yield line.finding("flag-conflict", issuer, "an issuer stands twice, or is empty")
    keys = [word.value for word in line.all("service-account-key-file") if word.value]
    if line.value(endpoint):
        if line.value(key) or keys:
            message = "it excludes --service-account-signing-key-file and --service-account-key-file"
            yield line.finding("flag-conflict", endpoint, message)
    else:
        if not line.value(key):
            yield line.finding("missing-flag", key, "kube-apiserver does not start without it")
        if not keys:
            yield line.finding("missing-flag", "service-account-key-file", "kube-apiserver does not start without it")
    longest = nanoseconds(line.value("service-account-max-token-expiration"))
    if longest and not _HOUR <= longest <= _MOST_SECONDS:
        yield line.finding("out-of-range", "service-account-max-token-expiration", "it must be 1h or more")
    uri = line.value("service-account-jwks-uri")
    if uri and not uri.lower().startswith("https:"):
        yield line.finding("bad-flag-value", "service-account-jwks-uri", "it must begin with https://")


def _check_oidc(line: CommandLine) -> Found:
    used = [name for name in line.options.flags if name.startswith("oidc-") and line.last(name) is not None]
    if used and line.value("authentication-config"):
        yield line.finding("flag-conflict", "authentication-config", f"it excludes --{', --'.join(used)}")
    elif used:
        for name in ("oidc-issuer-url", "oidc-client-id"):
            if not line.value(name):
                yield line.finding("missing-flag", used[0], f"it needs --{name}")
        yield from _check_issuer(line, "oidc-issuer-url")


def _check_issuer(line: CommandLine, name: str) -> Found:
    """Yield an issuer of tokens of which the authenticator cannot be made."""
    text = line.value(name)
    try:
        url = urlsplit(text)
    except ValueError:
        yield line.finding("bad-flag-value", name, "this is no URL")
        return
    if text and url.scheme != "https":
        yield line.finding("bad-flag-value", name, "a URL must begin with https")
    if "@" in url.netloc or url.query or url.fragment:
        yield line.finding("bad-flag-value", name, "a URL must have no user, query or fragment")
    if text and text in {word.value for word in line.all("service-account-issuer")}:
        yield line.finding("flag-conflict", name, "--service-account-issuer is the same")


def _check_audit(line: CommandLine) -> Found:
    for kind, backend in (("log", "audit-log-path"), ("webhook", "audit-webhook-config-file")):
        if not line.value(backend):
            continue
        mode, version = line.value(f"audit-{kind}-mode"), line.value(f"audit-{kind}-version")
        if line.last(f"audit-{kind}-mode") and mode not in _AUDIT_MODES:
            yield line.finding("bad-flag-value", f"audit-{kind}-mode", f"it is none of {', '.join(_AUDIT_MODES)}")
        if line.last(f"audit-{kind}-version") and version != _AUDIT_VERSION:
            yield line.finding("bad-flag-value", f"audit-{kind}-version", f"the only one is {_AUDIT_VERSION}")
        if (mode or _DEFAULT_BATCH[kind]) == "batch":
            yield from _check_batch(line, f"audit-{kind}-batch")
        yield from _check_truncate(line, f"audit-{kind}-truncate")
    if line.value("audit-log-path"):
        if line.last("audit-log-format") and line.value("audit-log-format") not in ("legacy", "json"):
            yield line.finding("bad-flag-value", "audit-log-format", "it is neither legacy nor json")
        for name in ("audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"):
            if (whole_number(line.value(name)) or 0) < 0:
                yield line.finding("out-of-range", name, "it must not be negative")


def _check_batch(line: CommandLine, prefix: str) -> Found:
    names = [f"{prefix}-buffer-size", f"{prefix}-max-size"]
    if line.is_on(f"{prefix}-throttle-enable", default="webhook" in prefix):
        names += [f"{prefix}-throttle-qps", f"{prefix}-throttle-burst"]
    for name in names:
        value = _number(line.value(name)) if line.last(name) else None
        if value is not None and value <= 0:
            yield line.finding("out-of-range", name, "it must be above zero")


def _check_truncate(line: CommandLine, prefix: str) -> Found:
    event = _whole(line, f"{prefix}-max-event-size", _DEFAULT_EVENT_BYTES)
    if event <= 0:
        yield line.finding("out-of-range", f"{prefix}-max-event-size", "it must be above zero")
    elif _whole(line, f"{prefix}-max-batch-size", _DEFAULT_BATCH_BYTES) < event:
        yield line.finding("out-of-range", f"{prefix}-max-batch-size", "it must not be below the size of an event")


def _check_admission(line: CommandLine) -> Found:
    both = {*line.values("enable-admission-plugins")} & {*line.values("disable-admission-plugins")}
    if both:
        message = f"{', '.join(sorted(both))} cannot be enabled and disabled"
        yield line.finding("flag-conflict", "disable-admission-plugins", message)
    for plugin in _CONFIGURED_PLUGINS & {*line.values("enable-admission-plugins")}:
        if not line.value("admission-control-config-file"):
            message = f"{plugin} needs --admission-control-config-file"
            yield line.finding("missing-flag", "enable-admission-plugins", message)


def _check_service_range(line: CommandLine) -> Found:
    name, text = "service-cluster-ip-range", line.value("service-cluster-ip-range")
    ranges = parse_networks(text) if text else (ip_network("10.0.0.0/24"),)
    if ranges is None:
        yield line.finding("bad-flag-value", name, "it is no range of addresses, such as 10.96.0.0/12")
        return
    if len(ranges) > 2 or (len(ranges) == 2 and ranges[0].version == ranges[1].version):
        yield line.finding("bad-flag-value", name, "it takes one range, or one of each family")
    if ranges[0].num_addresses < 8:
        yield line.finding("out-of-range", name, "the range needs at least 8 addresses")
    address = parse_ip(line.value("advertise-address"))
    is_family_told = address is not None and line.value("endpoint-reconciler-type") != "none"
    if is_family_told and address is not None and address.version != ranges[0].version:
        yield line.finding("flag-conflict", "advertise-address", f"its family is not that of --{name}")
    port = whole_number(line.value("kubernetes-service-node-port")) or 0
    low, high = _ports(line.value("service-node-port-range") or "30000-32767")
    if 0 < port <= 65535 and not low <= port <= high:
        yield line.finding("out-of-range", "kubernetes-service-node-port", f"it must be {low} to {high}")


def _ports(text: str) -> tuple[int, int]:
    """Return the ends of a range of ports, everything if it cannot be read."""
    first, plus, count = text.strip().partition("+")
    low, _, high = first.partition("-")
    if not low.isdigit() or not (count or high or low).isdigit():
        return 0, 65535
    return int(low), int(low) + int(count) if plus else int(high or low)


def _check_runtime_config(line: CommandLine, schema: Schema) -> Found:
    name = "runtime-config"
    pairs = dict(pair.partition("=")[::2] for pair in line.values(name))
    groups = {kind.group for kind in schema.kinds()} - {*_NO_API_GROUPS} | {"apiregistration.k8s.io"}
    for key in pairs:
        parts = key.split("/")
        if key in _API_WORDS or key.startswith(("v1/", "api/v1/")):
            continue
        if len(parts) not in (2, 3) or parts[0] not in groups:
            near = suggest(parts[0], groups)
            hint = f"did you mean {near!r}?" if near else "write it as GROUP/VERSION=true"
            yield line.finding("bad-flag-value", name, f"there is no API group {parts[0]!r}", hint)
    if pairs == {"api/all": "false"}:
        yield line.finding("bad-flag-value", name, "nothing would be served")
    if line.is_on("enable-priority-and-fairness", default=True):
        for key in ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"):
            if pairs.get(key) == "false":
                yield line.finding("flag-conflict", name, f"{key}=false needs --enable-priority-and-fairness=false")
            if pairs.get(key) in ("false", "true"):
                break


def _check_lists(line: CommandLine) -> Found:
    for each in line.values("watch-cache-sizes"):
        size = each.partition("#")[2]
        if each.count("#") != 1 or not size.lstrip("+").isdigit():
            yield line.finding("bad-flag-value", "watch-cache-sizes", "an element has the form RESOURCE#SIZE")
    for each in line.values("etcd-servers-overrides"):
        if re.fullmatch("[^#/]*/[^#/]*#[^#;]+(;[^#;]+)*", each) is None:
            yield line.finding(
                "bad-flag-value", "etcd-servers-overrides", "an element has the form GROUP/RESOURCE#URL;…"
            )
    for each in line.values("strict-transport-security-directives"):
        if each not in ("includeSubDomains", "preload") and re.fullmatch("max-age=[^=]*", each) is None:
            message = "an element is none of max-age=SECONDS, includeSubDomains, preload"
            yield line.finding("bad-flag-value", "strict-transport-security-directives", message)
    for each in line.values("cors-allowed-origins"):
        if not ("^" in each or "//" in each) or not ("$" in each or ":" in each):
            message = "an expression must begin with ^ or // and end with $ or :, so that it means one host"
            yield line.finding("bad-flag-value", "cors-allowed-origins", message)
    yield from _check_coordinated(line)


def _check_coordinated(line: CommandLine) -> Found:
    """Yield lengths of time of coordinated elections that are not one below the other."""
    prefix, lengths = "coordinated-leadership-", {"lease-duration": 15, "renew-deadline": 10, "retry-period": 2}
    found = {}
    for name, default_s in lengths.items():
        given = nanoseconds(line.value(f"{prefix}{name}")) if line.last(f"{prefix}{name}") else None
        found[name] = default_s * 10**9 if given is None else given
    for longer, shorter in (("lease-duration", "renew-deadline"), ("renew-deadline", "retry-period")):
        if found[longer] <= found[shorter]:
            at = next(name for name in (longer, shorter) if line.last(f"{prefix}{name}"))
            yield line.finding("out-of-range", f"{prefix}{at}", f"the {longer} must be above the {shorter}")


def _whole(line: CommandLine, name: str, default: int) -> int:
    number = whole_number(line.value(name))
    return default if line.last(name) is None or number is None else number


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
