"""What changed for Corefiles from one release of CoreDNS to the next, as far as its migration library knows.

Facts of corefile-migration v1.0.31 (kubeadm 1.36) and v1.0.34 (kubeadm 1.37), which differ in how far they reach.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["deprecated", "ignored", "removed", "newdefault"]
Action = Literal["", "drop", "drop-https-google", "first-argument", "to-forward"]

# In the order of their releases; the library knows no others.
VERSIONS = (
    "1.1.3", "1.1.4", "1.2.0", "1.2.1", "1.2.2", "1.2.3", "1.2.4", "1.2.5", "1.2.6", "1.3.0", "1.3.1", "1.4.0",
    "1.5.0", "1.5.1", "1.5.2", "1.6.0", "1.6.1", "1.6.2", "1.6.3", "1.6.4", "1.6.5", "1.6.6", "1.6.7", "1.6.9",
    "1.7.0", "1.7.1", "1.8.0", "1.8.3", "1.8.4", "1.8.5", "1.8.6", "1.8.7", "1.9.0", "1.9.1", "1.9.2", "1.9.3",
    "1.9.4", "1.10.0", "1.10.1", "1.11.0", "1.11.1", "1.11.3", "1.11.4", "1.12.0", "1.12.1", "1.12.2", "1.12.3",
    "1.12.4", "1.13.0", "1.13.1", "1.13.2", "1.14.0", "1.14.1", "1.14.2", "1.14.3", "1.14.4", "1.14.6",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """What holds for a plugin, or for one of its options, from one release up to before another."""

    plugin: str
    option: str
    since: str
    until: str  # empty: it holds still
    severity: Severity
    action: Action = ""

    def holds_in(self, version: str) -> bool:
        at = VERSIONS.index(version)
        return VERSIONS.index(self.since) <= at and (not self.until or at < VERSIONS.index(self.until))


CHANGES = (
    Change("proxy", "protocol", "1.1.4", "1.2.0", "ignored", "drop-https-google"),
    Change("proxy", "protocol", "1.2.0", "1.4.0", "removed", "drop-https-google"),
    Change("loop", "", "1.2.1", "1.2.2", "newdefault"),
    Change("kubernetes", "endpoint", "1.3.1", "1.4.0", "deprecated", "first-argument"),
    Change("kubernetes", "endpoint", "1.4.0", "", "ignored", "first-argument"),
    Change("kubernetes", "upstream", "1.4.0", "1.5.0", "deprecated", "drop"),
    Change("kubernetes", "upstream", "1.5.0", "1.7.0", "ignored", "drop"),
    Change("kubernetes", "upstream", "1.7.0", "1.8.0", "removed", "drop"),
    Change("proxy", "", "1.4.0", "1.5.0", "deprecated", "to-forward"),
    Change("proxy", "", "1.5.0", "1.5.1", "removed", "to-forward"),
    Change("kubernetes", "resyncperiod", "1.5.0", "1.6.0", "deprecated", "drop"),
    Change("kubernetes", "resyncperiod", "1.6.0", "1.7.0", "ignored", "drop"),
    Change("kubernetes", "resyncperiod", "1.7.0", "1.8.0", "removed", "drop"),
    Change("ready", "", "1.5.0", "1.5.1", "newdefault"),
    Change("health", "lameduck", "1.6.5", "1.6.6", "newdefault"),
    Change("forward", "max_concurrent", "1.7.0", "1.7.1", "newdefault"),
    Change("kubernetes", "transfer", "1.8.0", "1.8.3", "removed", "drop"),
)
# What a new default looks like, and the plugins of which one must be in a server for it to be added there.
NEW_OPTIONS = {("health", "lameduck"): "5s", ("forward", "max_concurrent"): "1000"}
NEW_PLUGINS = {"loop": ("forward", "proxy"), "ready": ("kubernetes",)}
# The releases that gave every stub domain a server of its own, and the one that made zone transfers a plugin.
SPLITS_STUB_DOMAINS = ("1.4.0", "1.5.0")
MOVES_TRANSFERS = "1.8.0"

_BEGINNING = (
    ".:53 {\n errors\n health\n kubernetes * *** {\n  pods insecure\n  upstream\n  fallthrough in-addr.arpa ip6.arpa\n"
)
_LATER = " kubernetes * *** {\n  pods insecure\n  fallthrough in-addr.arpa ip6.arpa\n  ttl 30\n }\n prometheus :9153\n"
_END = " cache 30\n loop\n reload\n loadbalance\n}\n"
_LAMEDUCK = ".:53 {\n errors\n health {\n  lameduck 5s\n }\n ready\n"
# The Corefiles of Kubernetes 1.11 to 1.20; `*` stands for any word and `***` for any further ones.
DEFAULTS = (
    _BEGINNING + " }\n prometheus :9153\n proxy . *\n cache 30\n reload\n}\n",
    _BEGINNING + " }\n prometheus :9153\n proxy . *\n" + _END,
    _BEGINNING + "  ttl 30\n }\n prometheus :9153\n forward . *\n" + _END,
    ".:53 {\n errors\n health\n ready\n" + _LATER + " forward . *\n" + _END,
    _LAMEDUCK + _LATER + " forward . *\n" + _END,
    _LAMEDUCK + _LATER + " forward . * {\n  max_concurrent 1000\n }\n" + _END,
    "",  # most releases had none of their own, and a Corefile without a server counts as that
)
