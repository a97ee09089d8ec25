"""What flags take beyond their types: words, numbers and lengths of time that a program refuses after reading them.

All of it is data, by program; a flag that a minor does not have is not looked for.
"""

from collections.abc import Mapping

from garboard.rules.command_line import CommandLine
from garboard.rules.field_values import nanoseconds
from garboard.rules.findings import Found
from garboard.rules.flag_values import whole_number
from garboard.schema import suggest
from garboard.values import dataclass

_SECOND = 10**9
# crypto/tls names them, and Kubernetes and etcd take the names of two without their hash as well.
_ECDHE = tuple(
    f"TLS_ECDHE_{key}_WITH_{cipher}"
    for key in ("ECDSA", "RSA")
    for cipher in (
        *("AES_128_CBC_SHA", "AES_128_CBC_SHA256", "AES_128_GCM_SHA256", "AES_256_CBC_SHA", "AES_256_GCM_SHA384"),
        *("CHACHA20_POLY1305", "CHACHA20_POLY1305_SHA256", "RC4_128_SHA"),
    )
)
CIPHER_SUITES = (
    *("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"),
    *_ECDHE,
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    *("TLS_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA256"),
    *("TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_256_CBC_SHA", "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    "TLS_RSA_WITH_RC4_128_SHA",
)
CURVES = (23, 24, 25, 29, 4587, 4588, 4589)  # crypto/tls names these
TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")


@dataclass(frozen=True, slots=True)
class Words:
    """One of a few words, or a list of them; an empty value is the default of the program, if it has one."""

    words: tuple[str, ...]
    is_list: bool = False
    takes_empty: bool = True
    ignores_case: bool = False

    def problem(self, text: str) -> tuple[str, str, str | None] | None:
        for word in text.split(",") if self.is_list and text else [text]:
            given = word.lower() if self.ignores_case else word
            if given not in self.words and (given or not self.takes_empty or (self.is_list and text)):
                near = suggest(word, self.words)
                shown = ", ".join(self.words) if len(self.words) < 9 else f"{self.words[0]} and others"
                return "bad-flag-value", f"it is none of {shown}", f"did you mean {near!r}?" if near else None
        return None


@dataclass(frozen=True, slots=True)
class NumberLimits:
    """A whole number or, of a duration, nanoseconds."""

    least: int
    most: int | None = None
    says: str = ""

    def problem(self, text: str) -> tuple[str, str, str | None] | None:
        number = whole_number(text)
        value = nanoseconds(text) if number is None else number
        if value is None or (self.least <= value and (self.most is None or value <= self.most)):
            return None
        between = f"it must be {self.least} to {self.most}" if self.most else f"it must be {self.least} or more"
        return "out-of-range", self.says or between, None


Limit = Words | NumberLimits

_NOT_NEGATIVE = NumberLimits(0, says="it must not be negative")
_POSITIVE = NumberLimits(1, says="it must be above zero")
_SERVING: Mapping[str, Limit] = {
    "tls-min-version": Words(TLS_VERSIONS),
    "tls-cipher-suites": Words(CIPHER_SUITES, is_list=True),
    "logging-format": Words(("text", "json"), takes_empty=False),
    "log-flush-frequency": _POSITIVE,
}
_API_SERVER: Mapping[str, Limit] = {
    **_SERVING,
    **dict.fromkeys(
        (
            *("max-requests-inflight", "max-mutating-requests-inflight", "min-request-timeout", "livez-grace-period"),
            *("request-timeout", "storage-initialization-timeout", "shutdown-delay-duration"),
            "shutdown-watch-termination-grace-period",
        ),
        _NOT_NEGATIVE,
    ),
    "secure-port": NumberLimits(1, 65535),
    "kubernetes-service-node-port": NumberLimits(0, 65535),
    "apiserver-count": _POSITIVE,
    "endpoint-reconciler-type": Words(("master-count", "lease", "none"), takes_empty=False),
    "storage-media-type": Words(("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")),
    "storage-backend": Words(("etcd3",)),
}
_MANAGER: Mapping[str, Limit] = {
    **_SERVING,
    **dict.fromkeys(
        (
            *("concurrent-cron-job-syncs", "concurrent-daemonset-syncs", "concurrent-device-taint-eviction-syncs"),
            *("concurrent-ephemeralvolume-syncs", "concurrent-horizontal-pod-autoscaler-syncs", "concurrent-job-syncs"),
            *("concurrent-resourceclaim-syncs", "concurrent-statefulset-syncs"),
        ),
        _POSITIVE,
    ),
    **dict.fromkeys(
        ("concurrent-service-endpoint-syncs", "mirroring-concurrent-service-endpoint-syncs"), NumberLimits(1, 50)
    ),
    **dict.fromkeys(("max-endpoints-per-slice", "mirroring-max-endpoints-per-subset"), NumberLimits(1, 1000)),
    "attach-detach-reconcile-sync-period": NumberLimits(_SECOND, says="it must be 1s or more"),
    "secure-port": NumberLimits(0, 65535),
    "cloud-provider": Words(("external",)),
    "cidr-allocator-type": Words(("RangeAllocator",)),
}
_SCHEDULER: Mapping[str, Limit] = {**_SERVING, "secure-port": NumberLimits(0, 65535)}
_ETCD: Mapping[str, Limit] = {
    "log-level": Words(("debug", "info", "warn", "warning", "error", "dpanic", "panic", "fatal"), ignores_case=True),
    "log-format": Words(("json", "console"), takes_empty=False),
    "logger": Words(("zap",), takes_empty=False),
    "auto-compaction-mode": Words(("periodic", "revision"), takes_empty=False),
    "initial-cluster-state": Words(("new", "existing"), takes_empty=False),
    "discovery-fallback": Words(("exit",), takes_empty=False),
    "tls-min-version": Words(("TLS1.2", "TLS1.3")),
    "tls-max-version": Words(("TLS1.2", "TLS1.3")),
    "cipher-suites": Words(CIPHER_SUITES, is_list=True),
    "compact-hash-check-time": _POSITIVE,
    "corrupt-check-time": _NOT_NEGATIVE,
    "max-learners": _NOT_NEGATIVE,
    "max-request-bytes": NumberLimits(1024, says="etcd could not write its own members"),
    "v2-deprecation": Words(("write-only", "write-only-skip-check", "write-only-drop-data", "gone"), takes_empty=False),
    "heartbeat-interval": NumberLimits(1, says="it must be above zero"),
    "election-timeout": NumberLimits(1, 50_000),
}
_BY_PROGRAM: Mapping[str, Mapping[str, Limit]] = {
    "kube-apiserver": _API_SERVER,
    "kube-controller-manager": _MANAGER,
    "kube-scheduler": _SCHEDULER,
    "etcd": _ETCD,
}


def check_limits(line: CommandLine) -> Found:
    """Yield the flags whose value the program reads, and refuses."""
    for name, limit in _BY_PROGRAM.get(line.program, {}).items():
        if line.last(name) is not None:
            found = limit.problem(line.value(name))
            if found is not None:
                code, message, hint = found
                yield line.finding(code, name, message, hint)
