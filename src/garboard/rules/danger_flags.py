"""What a component loses by its flags: the command line before a change, and the one after it."""

from collections.abc import Iterable, Mapping

from garboard.rules.command_line import CommandLine
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.flag_etcd import urls_of

_MOST_NAMES = 5
_REQUEST_HEADER = "requestheader-client-ca-file"
# Flags that tie a component to its cluster: authorities, keys, addresses. With another value it works against the rest.
_CRITICAL: Mapping[str, tuple[str, ...]] = {
    "kube-apiserver": (
        *("advertise-address", "client-ca-file", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers"),
        *("kubelet-client-certificate", "kubelet-client-key", "proxy-client-cert-file", "proxy-client-key-file"),
        *(_REQUEST_HEADER, "requestheader-allowed-names", "secure-port", "service-account-issuer"),
        *("service-account-key-file", "service-account-signing-key-file", "service-cluster-ip-range"),
        *("tls-cert-file", "tls-private-key-file"),
    ),
    "kube-controller-manager": (
        *("authentication-kubeconfig", "authorization-kubeconfig", "client-ca-file", "cluster-cidr"),
        *("cluster-signing-cert-file", "cluster-signing-key-file", "kubeconfig", _REQUEST_HEADER, "root-ca-file"),
        *("service-account-private-key-file", "service-cluster-ip-range"),
    ),
    "kube-scheduler": ("authentication-kubeconfig", "authorization-kubeconfig", "kubeconfig"),
    "etcd": (
        *("advertise-client-urls", "cert-file", "data-dir", "initial-advertise-peer-urls", "initial-cluster"),
        *("initial-cluster-state", "key-file", "listen-client-urls", "listen-peer-urls", "name", "peer-cert-file"),
        *("peer-key-file", "peer-trusted-ca-file", "trusted-ca-file"),
    ),
}
# What they are if nobody sets them; setting one to anything else is a change, too.
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "kube-apiserver": {"etcd-prefix": "/registry"},
    "etcd": {"initial-cluster-state": "new"},
}
# Lists that may grow: keys and issuers are rotated by a second one, and etcd listens in more places.
_GROWING = (
    *("service-account-issuer", "service-account-key-file", "requestheader-allowed-names"),
    *("listen-client-urls", "listen-peer-urls", "advertise-client-urls"),
)
# Flags that name a node or its addresses, which nobody knows of a node that is not there.
_OF_THE_NODE: Mapping[str, tuple[str, ...]] = {
    "kube-apiserver": ("advertise-address",),
    "etcd": (
        *("name", "initial-cluster", "initial-advertise-peer-urls", "advertise-client-urls", "listen-client-urls"),
        "listen-peer-urls",
    ),
}
# Flags that are harmful with one value, whatever the cluster is.
_HARMFUL: Mapping[str, Mapping[str, tuple[bool, str]]] = {
    "kube-apiserver": {
        "allow-privileged": (False, "kube-proxy and most networks run in privileged Pods, which are refused then"),
        "enable-bootstrap-token-auth": (False, "no node can join any more"),
    },
    "etcd": {
        "force-new-cluster": (True, "the member begins a cluster of its own, and all others are dropped"),
        "unsafe-no-fsync": (True, "what etcd has confirmed is lost when the node loses its power"),
    },
}
_ALWAYS_DENY = "AlwaysDeny"
# Plugins that are on by default and that a cluster is not safe or not complete without.
_NEEDED_PLUGINS = frozenset(
    {
        *("CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "DefaultTolerationSeconds"),
        *("LimitRanger", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceLifecycle"),
        *("NodeRestriction", "PodSecurity", "Priority", "ResourceQuota", "ServiceAccount"),
        *("StorageObjectInUseProtection", "TaintNodesByCondition", "ValidatingAdmissionPolicy"),
        "ValidatingAdmissionWebhook",
    }
)


def weakened_flags(before: CommandLine, after: CommandLine) -> Found:
    """Yield what the component loses from one command line to the other."""
    lost = [name for name in _names(before) if _is_lost(name, before, after)]
    critical = [name for name in lost if name in _CRITICAL.get(before.program, ())]
    for name in critical:
        word = after.last(name)
        message = f"--{name} is {'gone' if word is None else 'empty'}: it ties the component to this cluster"
        yield ResultFinding("critical-flag-removed", after.at if word is None else word.at, message)
    yield from _check_removed([name for name in lost if name not in critical], after)
    yield from _check_changed(before, after)
    yield from _check_harmful(before, after)
    if before.program == "kube-apiserver":
        yield from _check_authorization(before, after)
        yield from _check_admission(before, after)
    if before.is_on("anonymous-auth", default=True) is False and after.is_on("anonymous-auth", default=True):
        yield after.finding("authentication-weakened", "anonymous-auth", "requests without credentials are served")
    for name in ("client-cert-auth", "peer-client-cert-auth"):
        if before.is_on(name) and after.last(name) is not None and not after.is_on(name):
            yield after.finding("authentication-weakened", name, "certificates of clients are no longer demanded")
    if before.program == "etcd":
        yield from _check_etcd(before, after)
    if before.program == "kube-controller-manager":
        yield from _check_controllers(before, after)


def _names(line: CommandLine) -> Iterable[str]:
    return dict.fromkeys(word.name if line.program == "etcd" else word.name.replace("_", "-") for word in line.flags)


def _is_lost(name: str, before: CommandLine, after: CommandLine) -> bool:
    """Tell whether a flag is gone, or empty, which is the same to the program."""
    word = after.last(name)
    return word is None or bool(before.value(name) and word.value is not None and not after.value(name))


def _check_removed(gone: list[str], after: CommandLine) -> Found:
    if not gone:
        return
    more = f" and {len(gone) - _MOST_NAMES} more" if len(gone) > _MOST_NAMES else ""
    names = ", ".join(f"--{name}" for name in gone[:_MOST_NAMES])
    flags = "1 flag" if len(gone) == 1 else f"{len(gone)} flags"
    message = f"the command loses {flags} of kubeadm: {names}{more}"
    at = next((word.at for name in gone[:1] if (word := after.last(name)) is not None), after.at)
    yield ResultFinding("flag-removed", at, message, "change single flags with a +args or JSON patch")


def _check_changed(before: CommandLine, after: CommandLine) -> Found:
    defaults = _DEFAULTS.get(before.program, {})
    for name in dict.fromkeys((*_CRITICAL.get(before.program, ()), *defaults)):
        old, new = (_value(line, name) or defaults.get(name, "") for line in (before, after))
        if not old or not new or old == new:
            continue
        if name in _GROWING and _is_part(_elements(before, name), _elements(after, name), name):
            continue
        found = after.finding("critical-flag-changed", name, "it ties the component to this cluster")
        is_of_node = name in _OF_THE_NODE.get(before.program, ())
        yield ResultFinding(found.code, found.path, found.message, found.hint, is_of_node)


def _value(line: CommandLine, name: str) -> str:
    return ",".join(_elements(line, name)) if name in _GROWING else line.value(name)


def _elements(line: CommandLine, name: str) -> list[str]:
    return [part for word in line.all(name) for part in (word.value or "").split(",") if part]


def _is_part(old: list[str], new: list[str], name: str) -> bool:
    """Tell whether nothing of a list is lost; a server that listens on all addresses listens on each of them."""
    if name.startswith("listen-"):
        ports = {url.port for url in urls_of(new) if url.is_everywhere}
        return all(each in new or any(url.port in ports for url in urls_of([each])) for each in old)
    return set(old) <= set(new)


def _check_harmful(before: CommandLine, after: CommandLine) -> Found:
    for name, (value, message) in _HARMFUL.get(before.program, {}).items():
        is_set = after.last(name) is not None and after.is_on(name) is value
        if is_set and not (before.last(name) is not None and before.is_on(name) is value):
            yield after.finding("harmful-flag", name, message)
    word = after.last("config-file") if before.program == "etcd" else None
    if word is not None and word.value and not before.value("config-file"):
        yield after.finding("harmful-flag", "config-file", "etcd ignores every other flag beside it")


def _check_authorization(before: CommandLine, after: CommandLine) -> Found:
    name = "authorization-mode"
    if after.last(name) is None:
        return
    modes = after.values(name)
    if "AlwaysAllow" in modes and "AlwaysAllow" not in before.values(name):
        yield after.finding("authorization-weakened", name, "with AlwaysAllow every request is allowed")
    lost = [mode for mode in before.values(name) if mode not in modes]
    if lost:
        yield after.finding("authorization-weakened", name, f"{' and '.join(lost)} decides no more")
    own, words = {each.value for each in before.all(name)}, after.all(name)
    if len(words) > len(own) and own & {each.value for each in words}:
        hint = "change the flag that is there, with a +args patch or `op: replace`"
        message = f"it stands {len(words)} times, and their values are joined"
        yield after.finding("repeated-flag", name, message, hint)


def _check_admission(before: CommandLine, after: CommandLine) -> Found:
    enabled, disabled = "enable-admission-plugins", "disable-admission-plugins"
    lost = {*before.values(enabled)} - {*after.values(enabled)}
    if lost and after.value(enabled):
        yield after.finding("admission-weakened", enabled, f"{', '.join(sorted(lost))} is gone")
    off = _NEEDED_PLUGINS & {*after.values(disabled)} - {*before.values(disabled)}
    if off:
        yield after.finding("admission-weakened", disabled, f"{', '.join(sorted(off))} decides no more")
    if _ALWAYS_DENY in after.values(enabled) and _ALWAYS_DENY not in before.values(enabled):
        yield after.finding("harmful-flag", enabled, f"{_ALWAYS_DENY} refuses every request that changes something")


def _check_controllers(before: CommandLine, after: CommandLine) -> Found:
    name = "controllers"
    if after.last(name) is None:
        return
    lost = [each for each in before.values(name) if each not in after.values(name)]
    if lost:
        yield after.finding("controller-removed", name, f"{', '.join(lost)} is gone")


def _check_etcd(before: CommandLine, after: CommandLine) -> Found:
    for name in ("listen-client-urls", "listen-peer-urls"):
        is_plain = any(url.scheme == "http" for url in urls_of(_elements(after, name)))
        if is_plain and not any(url.scheme == "http" for url in urls_of(_elements(before, name))):
            message = "over http no client proves who it is, and those that speak TLS get no answer"
            yield after.finding("authentication-weakened", name, message)
