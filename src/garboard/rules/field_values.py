"""What a field may hold, as data: words, ranges and forms by the type and the name of the field.

A patch that sets such a field can be judged by itself; a result is walked with its type, so that every place counts.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from garboard.documents import Json
from garboard.rules import formats
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.schema import FieldType, StructType, suggest
from garboard.schema.scalars import READERS, Mismatch
from garboard.schema.times import parse_duration, write_duration
from garboard.values import dataclass

_MAX_INT32 = 2**31 - 1
_UNREADABLE = {"quantity": "bad-quantity", "duration": "bad-duration"}
_NS = {"ms": 10**6, "s": 10**9}


@dataclass(frozen=True, slots=True)
class BadFieldValue:
    """What is wrong with a value: the code, the message, and what was probably meant."""

    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """A word of a list; whether no text at all means the default, the list says with an empty word."""

    words: tuple[str, ...]

    def problem(self, value: Json) -> BadFieldValue | None:
        if not isinstance(value, str) or value in self.words:
            return None
        known = [word for word in self.words if word]
        near = suggest(value, known)
        message = f"{value!r} is none of {', '.join(known)}"
        return BadFieldValue("unsupported-value", message, f"did you mean {near!r}?" if near else None)


@dataclass(frozen=True, slots=True)
class Range:
    least: float
    most: float | None = None

    def problem(self, value: Json) -> BadFieldValue | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if self.least <= value and (self.most is None or value <= self.most):
            return None
        limits = f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"
        return BadFieldValue("out-of-range", f"{value} is outside the range: {limits}")


@dataclass(frozen=True, slots=True)
class Lasting:
    """A duration between two others, in nanoseconds; zero may mean the default."""

    least: int
    most: int | None = None
    is_zero_fine: bool = False

    def problem(self, value: Json) -> BadFieldValue | None:
        length = nanoseconds(value)
        if length is None or (self.is_zero_fine and not length):
            return None
        if self.least <= length and (self.most is None or length <= self.most):
            return None
        limits = f"at least {write_duration(self.least)}"
        limits += "" if self.most is None else f" and at most {write_duration(self.most)}"
        return BadFieldValue("out-of-range", f"{write_duration(length)} is outside the range: {limits}")


@dataclass(frozen=True, slots=True)
class Form:
    """Text that a check of `formats` understands; empty text is judged elsewhere, unless it has to be there."""

    check: Callable[[str], str | None]
    code: str = "bad-name"
    is_empty_fine: bool = True

    def problem(self, value: Json) -> BadFieldValue | None:
        if not isinstance(value, str) or (not value and self.is_empty_fine):
            return None
        found = self.check(value)
        return None if found is None else BadFieldValue(self.code, f"{value!r} {found}")


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a probe: a number, or the name of one."""

    def problem(self, value: Json) -> BadFieldValue | None:
        return Form(formats.port_name, is_empty_fine=False).problem(value) or _PORTS.problem(value)


Allowed: TypeAlias = "OneOf | Range | Lasting | Form | Port"


def nanoseconds(value: Json) -> int | None:
    """Return how long a duration lasts, or nothing if it is none."""
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


_PORTS = Range(1, 65535)
_COUNT = Range(0)
_ID = Range(0, _MAX_INT32)
_MODE = Range(0, 0o777)
_PROFILE = OneOf(("Localhost", "RuntimeDefault", "Unconfined"))
_PULL = OneOf(("", "Always", "IfNotPresent", "Never"))
_POLICY = OneOf(("Honor", "Ignore"))
_LABEL = Form(formats.dns_label)
_FILE = Form(formats.local_path, "bad-path")
_RELATIVE = Form(formats.relative_path, "bad-path")

_POD: Mapping[str, Mapping[str, Allowed]] = {
    "PodSpec": {
        "restartPolicy": OneOf(("", "Always", "OnFailure", "Never")),
        "dnsPolicy": OneOf(("", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
        "preemptionPolicy": OneOf(("PreemptLowerPriority", "Never")),
        "activeDeadlineSeconds": Range(1, _MAX_INT32),
        "hostname": _LABEL,
        "subdomain": _LABEL,
        "hostnameOverride": Form(formats.dns_subdomain, is_empty_fine=False),
        "priorityClassName": Form(formats.dns_subdomain),
        "runtimeClassName": Form(formats.dns_subdomain, is_empty_fine=False),
        "serviceAccountName": Form(formats.dns_subdomain),
    },
    "PodOS": {"name": OneOf(("", "linux", "windows"))},
    "Container": {
        "name": _LABEL,
        "imagePullPolicy": _PULL,
        "terminationMessagePolicy": OneOf(("", "File", "FallbackToLogsOnError")),
        "restartPolicy": OneOf(("Always", "Never", "OnFailure")),
    },
    "ContainerRestartRule": {"action": OneOf(("Restart", "RestartAllContainers"))},
    "ContainerRestartRuleOnExitCodes": {"operator": OneOf(("In", "NotIn"))},
    "ContainerResizePolicy": {
        "resourceName": OneOf(("cpu", "memory")),
        "restartPolicy": OneOf(("NotRequired", "RestartContainer")),
    },
    "ContainerPort": {
        "name": Form(formats.port_name),
        "containerPort": _PORTS,
        "hostPort": Range(0, 65535),
        "protocol": OneOf(("", "TCP", "UDP", "SCTP")),
    },
    "EnvVar": {"name": Form(formats.variable_name)},
    "EnvFromSource": {"prefix": Form(formats.variable_name)},
    "VolumeMount": {
        "mountPropagation": OneOf(("None", "HostToContainer", "Bidirectional")),
        "recursiveReadOnly": OneOf(("Disabled", "IfPossible", "Enabled")),
        "bindMountOptions": OneOf(("noexec", "nodev", "nosuid")),
        "subPath": _RELATIVE,
        "subPathExpr": _RELATIVE,
    },
    "VolumeDevice": {"devicePath": Form(formats.no_backstep, "bad-path")},
    "Probe": {
        "initialDelaySeconds": _COUNT,
        "timeoutSeconds": _COUNT,
        "periodSeconds": _COUNT,
        "successThreshold": _COUNT,
        "failureThreshold": _COUNT,
        "terminationGracePeriodSeconds": Range(1),
    },
    "HTTPGetAction": {
        "port": Port(),
        "scheme": OneOf(("", "HTTP", "HTTPS")),
        "protocol": OneOf(("HTTP1", "HTTP2")),
    },
    "HTTPHeader": {"name": Form(formats.header_name, is_empty_fine=False)},
    "TCPSocketAction": {"port": Port()},
    "GRPCAction": {"port": _PORTS, "mode": OneOf(("Plaintext", "TLS"))},
    "SecurityContext": {"runAsUser": _ID, "runAsGroup": _ID, "procMount": OneOf(("Default", "Unmasked"))},
    "PodSecurityContext": {
        "runAsUser": _ID,
        "runAsGroup": _ID,
        "fsGroup": _ID,
        "supplementalGroups": _ID,
        "fsGroupChangePolicy": OneOf(("OnRootMismatch", "Always")),
        "supplementalGroupsPolicy": OneOf(("Merge", "Strict")),
        "seLinuxChangePolicy": OneOf(("Recursive", "MountOption")),
    },
    "Sysctl": {"name": Form(formats.sysctl_name)},
    "SeccompProfile": {"type": _PROFILE},
    "AppArmorProfile": {"type": _PROFILE},
    "Volume": {"name": _LABEL},
    "HostPathVolumeSource": {
        "path": Form(formats.no_backstep, "bad-path"),
        "type": OneOf(
            ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
        ),
    },
    "EmptyDirVolumeSource": {"mode": Range(0, 0o1777)},
    "GitRepoVolumeSource": {"directory": _RELATIVE},
    "ImageVolumeSource": {"pullPolicy": _PULL},
    "DownwardAPIVolumeSource": {"defaultMode": _MODE, "defaultUser": _ID},
    "DownwardAPIVolumeFile": {"path": _FILE, "mode": _MODE, "user": _ID},
    "ProjectedVolumeSource": {"defaultMode": _MODE, "defaultUser": _ID},
    "GCEPersistentDiskVolumeSource": {"partition": Range(0, 255)},
    "AWSElasticBlockStoreVolumeSource": {"partition": Range(0, 255)},
    "Toleration": {
        "key": Form(formats.qualified_name),
        "operator": OneOf(("", "Equal", "Exists", "Lt", "Gt")),
        "effect": OneOf(("", "NoSchedule", "PreferNoSchedule", "NoExecute")),
    },
    "TopologySpreadConstraint": {
        "maxSkew": Range(1),
        "minDomains": Range(1),
        "whenUnsatisfiable": OneOf(("DoNotSchedule", "ScheduleAnyway")),
        "nodeAffinityPolicy": _POLICY,
        "nodeTaintsPolicy": _POLICY,
        "matchLabelKeys": Form(formats.qualified_name, is_empty_fine=False),
    },
    "PodDNSConfig": {
        "nameservers": Form(formats.address, "bad-address", is_empty_fine=False),
        "searches": Form(formats.search_domain, is_empty_fine=False),
    },
    "HostAlias": {
        "ip": Form(formats.address, "bad-address", is_empty_fine=False),
        "hostnames": Form(formats.dns_subdomain, is_empty_fine=False),
    },
    "PodReadinessGate": {"conditionType": Form(formats.qualified_name, is_empty_fine=False)},
}

_KUBELET: Mapping[str, Mapping[str, Allowed]] = {
    "KubeletConfiguration": {
        "cgroupDriver": OneOf(("", "cgroupfs", "systemd")),
        "hairpinMode": OneOf(("", "promiscuous-bridge", "hairpin-veth", "none")),
        "topologyManagerPolicy": OneOf(("", "none", "best-effort", "restricted", "single-numa-node")),
        "topologyManagerScope": OneOf(("", "container", "pod")),
        "cpuManagerPolicy": OneOf(("", "none", "static")),
        "memoryManagerPolicy": OneOf(("", "None", "Static")),
        "memoryReservationPolicy": OneOf(("", "None", "TieredReservation")),
        "configMapAndSecretChangeDetectionStrategy": OneOf(("", "Get", "Cache", "Watch")),
        "imagePullCredentialsVerificationPolicy": OneOf(
            ("", "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")
        ),
        "tlsMinVersion": OneOf(("", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")),
        "enforceNodeAllocatable": OneOf(
            (
                "none",
                "pods",
                "system-reserved",
                "system-reserved-compressible",
                "kube-reserved",
                "kube-reserved-compressible",
            )
        ),
        "nodeLeaseDurationSeconds": _COUNT,
        "eventBurst": _COUNT,
        "eventRecordQPS": _COUNT,
        "healthzPort": Range(0, 65535),
        "port": Range(0, 65535),
        "readOnlyPort": Range(0, 65535),
        "imageGCHighThresholdPercent": Range(0, 100),
        "imageGCLowThresholdPercent": Range(0, 100),
        "iptablesDropBit": Range(0, 31),
        "iptablesMasqueradeBit": Range(0, 31),
        "kubeAPIBurst": _COUNT,
        "kubeAPIQPS": _COUNT,
        "nodeStatusMaxImages": Range(-1),
        "maxOpenFiles": _COUNT,
        "maxPods": _COUNT,
        "oomScoreAdj": Range(-1000, 1000),
        "podsPerCore": _COUNT,
        "registryBurst": _COUNT,
        "registryPullQPS": _COUNT,
        "maxParallelImagePulls": Range(1),
        "containerLogMaxWorkers": Range(1),
        "containerLogMaxFiles": Range(2),
        "cpuCFSQuotaPeriod": Lasting(_NS["ms"], _NS["s"]),
        "imageMinimumGCAge": Lasting(0),
        "imageMaximumGCAge": Lasting(0),
        "containerLogMonitorInterval": Lasting(3 * _NS["s"]),
        "shutdownGracePeriod": Lasting(_NS["s"], is_zero_fine=True),
        "shutdownGracePeriodCriticalPods": Lasting(_NS["s"], is_zero_fine=True),
    },
    "KubeletAuthorization": {"mode": OneOf(("", "AlwaysAllow", "Webhook"))},
    "MemorySwapConfiguration": {"swapBehavior": OneOf(("", "NoSwap", "LimitedSwap"))},
    "CrashLoopBackOffConfig": {"maxContainerRestartPeriod": Lasting(_NS["s"], 300 * _NS["s"])},
}

_KUBE_PROXY: Mapping[str, Mapping[str, Allowed]] = {
    "KubeProxyConfiguration": {
        "mode": OneOf(("", "iptables", "ipvs", "nftables")),
        "detectLocalMode": OneOf(("", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix")),
        "oomScoreAdj": Range(-1000, 1000),
        "configSyncPeriod": Lasting(1, is_zero_fine=True),
    },
    "KubeProxyIPTablesConfiguration": {"masqueradeBit": Range(0, 31)},
    "KubeProxyConntrackConfiguration": {
        "maxPerCore": _COUNT,
        "min": _COUNT,
        "tcpEstablishedTimeout": Lasting(0),
        "tcpCloseWaitTimeout": Lasting(0),
        "udpTimeout": Lasting(0),
        "udpStreamTimeout": Lasting(0),
    },
    "ClientConnectionConfiguration": {"burst": _COUNT},
}

ALLOWED: Mapping[str, Mapping[str, Allowed]] = {
    **{f"core/v1.{name}": fields for name, fields in _POD.items()},
    **{f"config/v1beta1.{name}": fields for name, fields in _KUBELET.items()},
    **{f"config/v1alpha1.{name}": fields for name, fields in _KUBE_PROXY.items()},
    "api/v1.LoggingConfiguration": {
        "format": OneOf(("", "text", "json")),
        "verbosity": Range(0, _MAX_INT32),
    },
    "api/v1.TracingConfiguration": {"samplingRatePerMillion": Range(0, 1_000_000)},
}


def bad_field_value(shape: StructType, name: str, value: Json) -> BadFieldValue | None:
    """Return what is wrong with the value of a field, or with the first bad element of a list of such values."""
    allowed = ALLOWED.get(shape.name, {}).get(name)
    if allowed is None:
        return None
    each = value if isinstance(value, list) else (value,)
    return next(filter(None, map(allowed.problem, each)), None)


def check_values(document: DocumentField, shape: StructType) -> Found:
    """Yield what is wrong with single values, everywhere in a document of this type."""
    for name, member in document.members():
        field = shape.fields.get(name)
        if field is None or name == "status":
            continue
        allowed = ALLOWED.get(shape.name, {}).get(name)
        if allowed is not None:
            for each in member.elements() if isinstance(member.value, list) else (member,):
                found = allowed.problem(each.value)
                if found is not None:
                    yield each.finding(found.code, found.message, found.hint)
        if field.kind == "scalar" and field.scalar in _UNREADABLE:
            yield from _check_scalar(member, field.scalar)
        for below, type_ in _below(member, field):
            yield from check_values(below, type_)


def _check_scalar(member: DocumentField, scalar: str) -> Found:
    """Yield a quantity or a duration that cannot be read: the document would not decode."""
    try:
        READERS[scalar](member.value)
    except Mismatch as mismatch:
        yield member.finding(_UNREADABLE[scalar], mismatch.reason)


def _below(member: DocumentField, field: FieldType) -> Iterator[tuple[DocumentField, StructType]]:
    """Yield the structs of a field with their types."""
    if field.type is not None and not field.type.self_written:
        yield member, field.type
    elif field.of is not None and field.of.type is not None and not field.of.type.self_written:
        each = member.elements() if field.kind == "list" else (below for _, below in member.members())
        yield from ((below, field.of.type) for below in each)
