"""The managers of CPUs, memory and topology, and sysctls: what a kubelet refuses when it makes them, at its start."""

import re
from collections.abc import Mapping
from fractions import Fraction

from garboard.model.go import BOOLEANS
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.rules.formats import dotted_sysctl
from garboard.rules.quantities import amount
from garboard.schema import suggest

_NO_POLICY = ("", "none", "None")
# Options, and the feature gate that they need.
_CPU_OPTIONS: Mapping[str, str | None] = {
    "full-pcpus-only": None,
    "strict-cpu-reservation": None,
    "prefer-align-cpus-by-uncorecache": None,
    "distribute-cpus-across-numa": "CPUManagerPolicyBetaOptions",
    "align-by-socket": "CPUManagerPolicyAlphaOptions",
    "distribute-cpus-across-cores": "CPUManagerPolicyAlphaOptions",
}
_CPU_EXCLUSIONS = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
_MOST_NUMA = "max-allowable-numa-nodes"
_TOPOLOGY_OPTIONS: Mapping[str, str | None] = {"prefer-closest-numa-nodes": None, _MOST_NUMA: None}
_LEAST_NUMA_NODES = 8
_DEFAULT_EVICTION = "100Mi"  # of memory.available
_SYSCTLS = (
    *("kernel.domainname", "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"),
    *("kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"),
)
_SYSCTL_PREFIXES = ("net.", "fs.mqueue.", "user.")
_SYSCTL_PATTERN = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]")
_LONGEST_SYSCTL = 253


def check_managers(config: DocumentField, gates: Mapping[str, bool]) -> Found:
    """Yield what the kubelet refuses when it starts, and not when it reads its configuration."""
    yield from _check_cpus(config, gates)
    yield from _check_topology(config)
    if config["memoryManagerPolicy"].text == "Static":
        yield from _check_memory(config)
    yield from _check_sysctls(config)
    certificate, key = config["tlsCertFile"], config["tlsPrivateKeyFile"]
    for missing, given in ((certificate, key), (key, certificate)):
        if given.text and not missing.text:
            yield missing.finding("required-field", f"{given.path[-1]} needs it")


def _check_cpus(config: DocumentField, gates: Mapping[str, bool]) -> Found:
    policy, options = config["cpuManagerPolicy"], config["cpuManagerPolicyOptions"]
    given = dict(options.members())
    if policy.text in _NO_POLICY:
        if given:
            yield options.finding("forbidden-field", "it needs cpuManagerPolicy: static")
        return
    reserved = sum(amount(config[name]["cpu"].value) or 0 for name in ("systemReserved", "kubeReserved"))
    if policy.text == "static" and not config["reservedSystemCPUs"].text and reserved <= 0:
        message = "static needs a CPU in kubeReserved, systemReserved or reservedSystemCPUs"
        yield policy.finding("required-field", message)
    for name, each in given.items():
        yield from _check_option(name, each, _CPU_OPTIONS, gates)
        if name in _CPU_OPTIONS and each.text not in BOOLEANS:
            yield each.finding("bad-format", "expected true or false")
    on = {name for name, each in given.items() if BOOLEANS.get(each.text)}
    for first, second in _CPU_EXCLUSIONS:
        if {first, second} <= on:
            yield given[second].finding("forbidden-field", f"{first} excludes it")


def _check_topology(config: DocumentField) -> Found:
    if config["topologyManagerPolicy"].text in _NO_POLICY:  # nothing reads the options
        return
    for name, each in config["topologyManagerPolicyOptions"].members():
        yield from _check_option(name, each, _TOPOLOGY_OPTIONS, {})
        is_number = re.fullmatch("[+-]?[0-9]+", each.text) is not None
        if name == _MOST_NUMA and not (is_number and int(each.text) >= _LEAST_NUMA_NODES):
            yield each.finding("out-of-range", f"it must be a whole number of {_LEAST_NUMA_NODES} or more")
        elif name in _TOPOLOGY_OPTIONS and name != _MOST_NUMA and each.text not in BOOLEANS:
            yield each.finding("bad-format", "expected true or false")


def _check_option(name: str, at: DocumentField, known: Mapping[str, str | None], gates: Mapping[str, bool]) -> Found:
    if name not in known:
        near = suggest(name, known)
        hint = f"did you mean {near!r}?" if near else None
        yield at.finding("unsupported-value", f"it is none of {', '.join(known)}", hint)
    elif (gate := known[name]) is not None and not gates.get(gate, False):
        yield at.finding("disabled-feature", f"the feature gate {gate} is off")


def _check_memory(config: DocumentField) -> Found:
    """Yield a reservation by NUMA nodes that is not what is reserved in all; a percentage only the machine knows."""
    eviction, threshold = config["evictionHard"], config["evictionHard"]["memory.available"]
    is_default = not eviction.is_given or (config["mergeDefaultEvictionSettings"].is_true and not threshold.is_given)
    kept = threshold.value if threshold.is_given else _DEFAULT_EVICTION if is_default else 0
    if isinstance(kept, str) and kept.endswith("%"):
        return
    parts = [config["systemReserved"]["memory"].value, config["kubeReserved"]["memory"].value, kept]
    wanted = sum((amount(each) or Fraction(0) for each in parts if each is not None), Fraction(0))
    found = sum(
        (amount(each["limits"]["memory"].value) or Fraction(0) for each in config["reservedMemory"].elements()),
        Fraction(0),
    )
    if found != wanted:
        message = f"memory of all nodes must be {_mebibytes(wanted)}: kubeReserved, systemReserved and evictionHard"
        yield config["reservedMemory"].finding("out-of-range", f"{message}; it is {_mebibytes(found)}")


def _mebibytes(value: Fraction) -> str:
    size = value / 2**20
    return f"{size.numerator}Mi" if size.denominator == 1 else str(int(value))


def _check_sysctls(config: DocumentField) -> Found:
    for each in config["allowedUnsafeSysctls"].elements():
        if len(each.text) > _LONGEST_SYSCTL or _SYSCTL_PATTERN.fullmatch(each.text) is None:
            yield each.finding("bad-name", "this is no pattern of a sysctl, such as net.*")
            continue
        name = dotted_sysctl(each.text).partition("*")[0]
        if name not in _SYSCTLS and not name.startswith(_SYSCTL_PREFIXES):
            yield each.finding("unsupported-value", "the sysctl is one of the whole node, not of a namespace")
