"""KubeletConfiguration, judged as the kubelet does when it starts: defaults first, then its validation."""

import re
from collections.abc import Mapping

from garboard.documents import Json
from garboard.model import KubernetesVersion
from garboard.model.minors import facts_of
from garboard.rules.field_values import check_values, nanoseconds
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.flag_limits import CIPHER_SUITES, CURVES
from garboard.rules.flags import flag_rules
from garboard.rules.formats import label_value, qualified_name, sysctl_name
from garboard.rules.kubelet_managers import check_managers
from garboard.rules.quantities import amount
from garboard.schema import Schema, load_schema, suggest

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
_FORMER_THROTTLING = 0.9  # what earlier kubelets wrote by themselves
_USERS_PER_POD = 65536
_CPU_SET = re.compile(r"(\d+(-\d+)?)(,\d+(-\d+)?)*")
_DEFAULT_HIGH, _DEFAULT_LOW = 85, 80
_DEFAULT_MINIMUM_AGE = 120 * 10**9
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_NO_THRESHOLDS = ("0%", "100%")  # they turn a threshold off
_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
)


def check_kubelet(document: Json, version: KubernetesVersion) -> list[ResultFinding]:
    """Return what the kubelet of a minor refuses in its configuration."""
    schema = load_schema(version)
    shape = schema.type_of(API_VERSION, KIND)
    assert shape is not None, "the type data lacks KubeletConfiguration"
    config = DocumentField(document)
    gates = _gates(config, schema)
    found = [
        *check_values(config, shape),
        *_check_images(config),
        *_check_reservations(config),
        *_check_reserved(config),
        *_check_tls(config),
        *_check_shutdown(config, gates),
        *_check_gates(config, schema),
        *_check_gated(config, gates),
        *_check_memory(config, gates, is_strict=facts_of(version).refuses_unused_throttling_factor),
        *_check_logs(config),
        *_check_eviction(config),
        *_check_others(config),
        *check_hidden_metrics(config, version),
        *check_managers(config, gates),
    ]
    return list(dict.fromkeys(found))


def _gates(config: DocumentField, schema: Schema) -> Mapping[str, bool]:
    """Return which feature gates are on: their defaults, and what the configuration says of them."""
    options = schema.component("kubelet")
    defaults = {name: gate.default for name, gate in options.feature_gates.items()} if options else {}
    given = {name: each.is_true for name, each in config["featureGates"].members() if isinstance(each.value, bool)}
    return {**defaults, **given}


def _check_gates(config: DocumentField, schema: Schema) -> Found:
    rules = flag_rules(schema, "kubelet")
    for name, gate in config["featureGates"].members():
        for problem in rules.gate(name, gate.value if isinstance(gate.value, bool) else None) if rules else ():
            yield ResultFinding(problem.code, gate.path, problem.message, problem.hint)


def _check_images(config: DocumentField) -> Found:
    high, low = config["imageGCHighThresholdPercent"], config["imageGCLowThresholdPercent"]
    upper = _DEFAULT_HIGH if high.number is None else high.number
    lower = _DEFAULT_LOW if low.number is None else low.number
    if lower >= upper:
        at = low if low.is_given else high
        yield at.finding("out-of-range", f"imageGCLowThresholdPercent ({lower}) must be below the high one ({upper})")
    longest = nanoseconds(config["imageMaximumGCAge"].value) or 0
    shortest = nanoseconds(config["imageMinimumGCAge"].value) or _DEFAULT_MINIMUM_AGE
    if 0 < longest <= shortest:
        yield config["imageMaximumGCAge"].finding("out-of-range", "it must be above imageMinimumGCAge")
    pulls = config["maxParallelImagePulls"]
    if config["serializeImagePulls"].is_true and (pulls.number or 0) > 1:
        yield pulls.finding("forbidden-field", "with serializeImagePulls images are pulled one after the other")
    policy, listed = config["imagePullCredentialsVerificationPolicy"], config["preloadedImagesVerificationAllowlist"]
    if listed.elements() and policy.text != "NeverVerifyAllowlistedImages":
        yield listed.finding("forbidden-field", f"it needs {policy.path[-1]}: NeverVerifyAllowlistedImages")


def _check_reservations(config: DocumentField) -> Found:
    enforced = config["enforceNodeAllocatable"]
    words = enforced.words
    for each in enforced.elements():
        if words.index(each.text) != each.path[-1]:
            yield each.finding("duplicate-name", f"{each.text!r} stands twice")
    for kind, cgroup in (("system", "systemReservedCgroup"), ("kube", "kubeReservedCgroup")):
        both = {f"{kind}-reserved", f"{kind}-reserved-compressible"} & set(words)
        if len(both) > 1:
            yield enforced.finding("forbidden-field", f"{' and '.join(sorted(both))} exclude each other")
        if both and not config[cgroup].text:
            yield config[cgroup].finding("required-field", f"enforceNodeAllocatable has {min(both)}, which needs it")
    if "none" in words and len(words) > 1:
        yield enforced.finding("forbidden-field", "beside none there can be nothing else")
    if config["cgroupsPerQOS"].is_false and (set(words) - {"none"} or not enforced.is_given):
        message = "it must be true, unless enforceNodeAllocatable is none"
        yield config["cgroupsPerQOS"].finding("forbidden-field", message)
    cpus = config["reservedSystemCPUs"]
    if cpus.text:
        if config["systemReservedCgroup"].text or config["kubeReservedCgroup"].text:
            yield cpus.finding("forbidden-field", "systemReservedCgroup and kubeReservedCgroup exclude it")
        if not _is_cpu_set(cpus.text):
            yield cpus.finding("bad-format", "this is no set of CPUs", "write it as 0-3,8")
    yield from _check_reserved_memory(config)


def _check_reserved(config: DocumentField) -> Found:
    """Yield what cannot be kept free for the system and for Kubernetes."""
    for kind in ("systemReserved", "kubeReserved"):
        for name, quantity in config[kind].members():
            if name not in _RESERVABLE:
                near = suggest(name, _RESERVABLE)
                hint = f"did you mean {near!r}?" if near else None
                yield quantity.finding("unknown-resource", f"it is none of {', '.join(_RESERVABLE)}", hint)
            elif amount(quantity.value) is None:
                yield quantity.finding("bad-quantity", "this is no quantity, such as 1Gi")
            elif (amount(quantity.value) or 0) < 0:
                yield quantity.finding("out-of-range", "it must not be negative")


def _check_tls(config: DocumentField) -> Found:
    for curve in config["tlsCurvePreferences"].elements():
        if curve.number not in CURVES:
            yield curve.finding("unsupported-value", f"it is none of {', '.join(map(str, CURVES))}")
    for suite in config["tlsCipherSuites"].elements():
        if suite.text not in CIPHER_SUITES:
            near = suggest(suite.text, CIPHER_SUITES)
            hint = f"did you mean {near!r}?" if near else None
            yield suite.finding("unsupported-value", f"{suite.text!r} is no cipher suite", hint)


def _is_cpu_set(text: str) -> bool:
    if _CPU_SET.fullmatch(text) is None:
        return False
    pairs = (part.split("-") for part in text.split(","))
    return all(int(pair[0]) <= int(pair[-1]) for pair in pairs)


def _check_reserved_memory(config: DocumentField) -> Found:
    seen: set[tuple[int, str]] = set()
    for reservation in config["reservedMemory"].elements():
        numa = reservation["numaNode"].number or 0
        for name, limit in reservation["limits"].members():
            if name != "memory" and not name.startswith("hugepages-"):
                yield limit.finding("unknown-resource", f"{name!r} is neither memory nor hugepages-SIZE")
            if amount(limit.value) is None:
                yield limit.finding("bad-quantity", "this is no quantity, such as 1Gi")
            elif amount(limit.value) == 0:
                yield limit.finding("out-of-range", "it must not be zero")
            if (numa, name) in seen:
                yield limit.finding("duplicate-name", f"{name} of NUMA node {numa} stands twice")
            seen.add((numa, name))


def _check_shutdown(config: DocumentField, gates: Mapping[str, bool]) -> Found:
    critical, whole = config["shutdownGracePeriodCriticalPods"], config["shutdownGracePeriod"]
    lengths = [nanoseconds(each.value) or 0 for each in (critical, whole)]
    if lengths[0] > lengths[1] and gates.get("GracefulNodeShutdown"):
        yield critical.finding("out-of-range", "it is part of shutdownGracePeriod, and must not be longer")
    if max(lengths) > 0 and not gates.get("GracefulNodeShutdown"):
        yield (whole if lengths[1] else critical).finding("disabled-feature", "GracefulNodeShutdown is off")
    by_priority = config["shutdownGracePeriodByPodPriority"]
    if by_priority.elements() and not gates.get("GracefulNodeShutdownBasedOnPodPriority"):
        yield by_priority.finding("disabled-feature", "GracefulNodeShutdownBasedOnPodPriority is off")
    elif by_priority.elements() and max(lengths) > 0:
        yield by_priority.finding("forbidden-field", "shutdownGracePeriod excludes it")


def _check_gated(config: DocumentField, gates: Mapping[str, bool]) -> Found:
    """Yield the fields that need a feature gate which is off."""
    period = config["crashLoopBackOff"]["maxContainerRestartPeriod"]
    quota = nanoseconds(config["cpuCFSQuotaPeriod"].value)
    for gate, field, is_used in (
        ("KubeletCrashLoopBackOffMax", period, period.is_given),
        ("CustomCPUCFSQuotaPeriod", config["cpuCFSQuotaPeriod"], quota not in (None, 10**8)),
        ("RotateKubeletServerCertificate", config["serverTLSBootstrap"], config["serverTLSBootstrap"].is_true),
        ("DefaultPodSysctls", config["defaultPodSysctls"], bool(config["defaultPodSysctls"].value)),
        (
            "KubeletEnsureSecretPulledImages",
            config["imagePullCredentialsVerificationPolicy"],
            bool(config["imagePullCredentialsVerificationPolicy"].text),
        ),
    ):
        if is_used and not gates.get(gate, False):
            yield field.finding("disabled-feature", f"the feature gate {gate} is off")
    query = config["enableSystemLogQuery"]
    if query.is_true and config["enableSystemLogHandler"].is_false:
        yield query.finding("required-field", "it needs enableSystemLogHandler")
    for name, value in config["defaultPodSysctls"].members():
        if sysctl_name(name) is not None:
            yield value.finding("bad-name", f"{name!r} {sysctl_name(name)}")


def _check_memory(config: DocumentField, gates: Mapping[str, bool], *, is_strict: bool) -> Found:
    """Yield what is wrong with MemoryQoS; a strict kubelet refuses a factor that has no effect."""
    factor, policy = config["memoryThrottlingFactor"], config["memoryReservationPolicy"]
    is_on = gates.get("MemoryQoS", False)
    if isinstance(factor.value, int | float) and not isinstance(factor.value, bool):
        if not 0 < factor.value <= 1:
            yield factor.finding("out-of-range", "it must be above 0 and at most 1")
        if is_strict and not is_on and factor.value != _FORMER_THROTTLING:
            yield factor.finding("disabled-feature", "the feature gate MemoryQoS is off")
    if policy.text == "TieredReservation" and not is_on:
        yield policy.finding("disabled-feature", "the feature gate MemoryQoS is off")


def _check_logs(config: DocumentField) -> Found:
    size, folder = config["containerLogMaxSize"], config["podLogsDir"]
    value = amount(size.value)
    if size.text and (value is None or value.denominator != 1):
        yield size.finding("bad-quantity", f"{size.text!r} is no quantity of bytes", "write it as 10Mi")
    if folder.text and not folder.text.startswith("/"):
        yield folder.finding("bad-path", "it must be an absolute path")
    elif folder.text and (folder.text != _clean(folder.text) or not folder.text.isascii()):
        yield folder.finding("bad-path", "it must be normalised, in ASCII characters")
    yield from check_logging(config["logging"])


def check_logging(logging: DocumentField) -> Found:
    """Yield what is wrong with the `logging` of a component."""
    flush = logging["flushFrequency"]
    length = flush.number if flush.number is not None else nanoseconds(flush.value)
    if length is not None and length < 0:
        yield flush.finding("out-of-range", "it must be above zero")
    for item in logging["vmodule"].elements():
        if logging["format"].text not in ("", "text"):
            yield item.finding("forbidden-field", "only the format text has it")
        pattern = item["filePattern"]
        if not pattern.text or set("=,") & set(pattern.text):
            yield pattern.finding("bad-format", "it must be a pattern of file names without '=' and ','")


def _clean(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/" + "/".join(parts) if ".." not in parts else ""


def _check_eviction(config: DocumentField) -> Found:
    """Yield thresholds that the kubelet cannot read when it starts."""
    for name in ("evictionHard", "evictionSoft", "evictionMinimumReclaim"):
        for signal, threshold in config[name].members():
            yield from _check_signal(signal, threshold)
            yield from _check_threshold(threshold, is_reclaim=name == "evictionMinimumReclaim")
    periods = config["evictionSoftGracePeriod"]
    for signal, period in periods.members():
        yield from _check_signal(signal, period)
        length = nanoseconds(period.value)
        if length is None:
            yield period.finding("bad-duration", "this is no duration", "write it as 1m30s")
        elif length < 0:
            yield period.finding("out-of-range", "it must not be negative")
    for signal, threshold in config["evictionSoft"].members():
        if not periods[signal].is_given and threshold.text not in _NO_THRESHOLDS:
            yield threshold.finding("required-field", f"{signal} needs a duration in evictionSoftGracePeriod")


def _check_threshold(threshold: DocumentField, *, is_reclaim: bool) -> Found:
    if threshold.text in _NO_THRESHOLDS and not is_reclaim:
        return
    percent = re.fullmatch(r"(-?[0-9]*\.?[0-9]+)%+", threshold.text)
    if percent is not None:
        share = float(percent[1])
        if share < 0 or (is_reclaim and not share) or (not is_reclaim and share > 100):
            yield threshold.finding("out-of-range", "it must be a percentage of 0 to 100")
        return
    value = amount(threshold.value)
    if value is None:
        yield threshold.finding("bad-quantity", "this is neither a quantity nor a percentage")
    elif value < 0 or (not value and not is_reclaim):
        yield threshold.finding("out-of-range", "it must be above zero")


def _check_signal(signal: str, at: DocumentField) -> Found:
    if signal not in _SIGNALS:
        yield at.finding("unsupported-value", f"{signal!r} is none of {', '.join(_SIGNALS)}")


def check_hidden_metrics(config: DocumentField, version: KubernetesVersion) -> Found:
    """Yield what is wrong with `showHiddenMetricsForVersion` of a component."""
    shown = config["showHiddenMetricsForVersion"]
    previous = f"{version.major}.{version.minor - 1}"
    if shown.text not in ("", previous):
        yield shown.finding("unsupported-value", f"{shown.text!r} is not the minor before, {previous}")


def _check_others(config: DocumentField) -> Found:
    if config["systemCgroups"].text and not config["cgroupRoot"].text:
        yield config["systemCgroups"].finding("required-field", "it needs cgroupRoot")
    if config["runOnce"].is_true:
        yield config["runOnce"].finding("forbidden-field", "the kubelet no longer has this mode")
    for taint in config["registerWithTaints"].elements():
        key, value, effect = taint["key"], taint["value"], taint["effect"]
        if qualified_name(key.text) is not None:
            yield key.finding("bad-name", f"{key.text!r} {qualified_name(key.text)}")
        if label_value(value.text) is not None:
            yield value.finding("bad-name", f"{value.text!r} {label_value(value.text)}")
        if effect.text not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield effect.finding("unsupported-value", f"{effect.text!r} is no effect of a taint")
        if taint["timeAdded"].is_given:
            yield taint["timeAdded"].finding("forbidden-field", "a new taint has none")
    users = config["userNamespaces"]["idsPerPod"]
    if users.number is not None and (not _USERS_PER_POD <= users.number < 2**32 or users.number % _USERS_PER_POD):
        yield users.finding("out-of-range", f"it must be a multiple of {_USERS_PER_POD}, and below {2**32}")
