"""KubeletConfiguration: what the kubelet refuses when it starts."""

import pytest

from garboard.documents import Json, read_yaml
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.rules import check_kubelet

V1_36, V1_37 = SUPPORTED_VERSIONS[:2]
BASE = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def told(text: str, version: KubernetesVersion = V1_37) -> list[tuple[str, str]]:
    given = read_yaml(text, source="test") or {}
    assert isinstance(given, dict)
    document: Json = {**BASE, **given}
    return [(each.code, ".".join(map(str, each.path))) for each in check_kubelet(document, version)]


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing but defaults"),
        pytest.param("{cgroupDriver: systemd, containerLogMaxSize: 50Mi, imageGCHighThresholdPercent: 90}", id="usual"),
        pytest.param("{evictionHard: {memory.available: 200Mi, nodefs.available: 10%}}", id="thresholds"),
        pytest.param("{evictionSoft: {memory.available: 0%}}", id="a threshold that is off"),
        pytest.param("{memorySwap: {swapBehavior: LimitedSwap}, failSwapOn: false}", id="swap"),
        pytest.param("{shutdownGracePeriod: 30s, shutdownGracePeriodCriticalPods: 10s}", id="shutdown"),
    ],
)
def test_configuration_that_works_has_no_findings(text: str, version: KubernetesVersion) -> None:
    assert told(text, version) == []


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        pytest.param("cgroupDriver: systmd", "unsupported-value", "cgroupDriver", id="cgroup driver"),
        pytest.param("systemReserved: {memroy: 1Gi}", "unknown-resource", "systemReserved.memroy", id="no resource"),
        pytest.param("systemReserved: {memory: 1GB}", "bad-quantity", "systemReserved.memory", id="no quantity"),
        pytest.param("kubeReserved: {cpu: '-1'}", "out-of-range", "kubeReserved.cpu", id="less than nothing"),
        pytest.param("tlsCurvePreferences: [30]", "unsupported-value", "tlsCurvePreferences.0", id="no curve"),
        pytest.param("tlsCipherSuites: [FOO]", "unsupported-value", "tlsCipherSuites.0", id="no cipher suite"),
        pytest.param("tlsMinVersion: TLS13", "unsupported-value", "tlsMinVersion", id="no version of TLS"),
        pytest.param(
            "memorySwap: {swapBehavior: Unlimited}", "unsupported-value", "memorySwap.swapBehavior", id="swap behavior"
        ),
        pytest.param("containerLogMaxSize: 10MB", "bad-quantity", "containerLogMaxSize", id="size of logs"),
        pytest.param("containerLogMaxFiles: 1", "out-of-range", "containerLogMaxFiles", id="one log file"),
        pytest.param(
            "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1d}",
            "bad-duration",
            "evictionSoftGracePeriod.memory.available",
            id="days",
        ),
        pytest.param(
            "evictionSoft: {memory.available: 1Gi}",
            "required-field",
            "evictionSoft.memory.available",
            id="a soft threshold without its period",
        ),
        pytest.param(
            "evictionHard: {memory.free: 1Gi}", "unsupported-value", "evictionHard.memory.free", id="a signal"
        ),
        pytest.param(
            "evictionHard: {memory.available: 1G5}", "bad-quantity", "evictionHard.memory.available", id="1G5"
        ),
        pytest.param("evictionHard: {pid.available: 110%}", "out-of-range", "evictionHard.pid.available", id="110%"),
        pytest.param("evictionHard: {pid.available: '0'}", "out-of-range", "evictionHard.pid.available", id="zero"),
        pytest.param("cpuCFSQuotaPeriod: 2s", "out-of-range", "cpuCFSQuotaPeriod", id="a period that is too long"),
        pytest.param("containerLogMonitorInterval: 1s", "out-of-range", "containerLogMonitorInterval", id="too often"),
        pytest.param(
            "imageGCHighThresholdPercent: 70",
            "out-of-range",
            "imageGCHighThresholdPercent",
            id="below the low one, which is a default",
        ),
        pytest.param(
            "{maxParallelImagePulls: 3, serializeImagePulls: true}",
            "forbidden-field",
            "maxParallelImagePulls",
            id="pulls in parallel, one after the other",
        ),
        pytest.param("readOnlyPort: 65536", "out-of-range", "readOnlyPort", id="a port"),
        pytest.param(
            "enforceNodeAllocatable: [pods, kube-reserved]", "required-field", "kubeReservedCgroup", id="its cgroup"
        ),
        pytest.param("enforceNodeAllocatable: [pod]", "unsupported-value", "enforceNodeAllocatable.0", id="enforced"),
        pytest.param("reservedSystemCPUs: 3-1", "bad-format", "reservedSystemCPUs", id="CPUs"),
        pytest.param(
            "featureGates: {NoSuchGate: true}", "unknown-feature-gate", "featureGates.NoSuchGate", id="a feature gate"
        ),
        pytest.param(
            "showHiddenMetricsForVersion: '1.30'", "unsupported-value", "showHiddenMetricsForVersion", id="metrics"
        ),
        pytest.param(
            "reservedMemory: [{numaNode: 0, limits: {memory: 1GB}}]",
            "bad-quantity",
            "reservedMemory.0.limits.memory",
            id="a reservation",
        ),
        pytest.param("runOnce: true", "forbidden-field", "runOnce", id="a mode that is gone"),
        pytest.param(
            "registerWithTaints: [{key: a, effect: NoRun}]",
            "unsupported-value",
            "registerWithTaints.0.effect",
            id="a taint",
        ),
        pytest.param(
            "{shutdownGracePeriod: 30s, featureGates: {GracefulNodeShutdown: false}}",
            "disabled-feature",
            "shutdownGracePeriod",
            id="a feature that is off",
        ),
        pytest.param("podLogsDir: logs", "bad-path", "podLogsDir", id="a relative folder"),
        pytest.param("userNamespaces: {idsPerPod: 1000}", "out-of-range", "userNamespaces.idsPerPod", id="users"),
    ],
)
def test_configuration_that_the_kubelet_refuses_is_found(text: str, code: str, path: str) -> None:
    assert (code, path) in told(text)


def test_rules_follow_the_gates_of_the_minor() -> None:
    text = "memoryThrottlingFactor: 0.5\nfeatureGates: {MemoryQoS: false}"
    assert told(text, V1_36) == []
    assert told(text, V1_37) == [("disabled-feature", "memoryThrottlingFactor")]
