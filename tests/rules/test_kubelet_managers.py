"""The kubelet's managers: what it refuses when it makes them."""

import pytest

from garboard.documents import read_yaml
from garboard.model import DEFAULT_VERSION
from garboard.rules import check_kubelet


def told(text: str) -> list[str]:
    return [each.code for each in check_kubelet(read_yaml(text, source="kubelet"), DEFAULT_VERSION)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("cpuManagerPolicy: static", "required-field"),
        ("{cpuManagerPolicy: static, kubeReserved: {cpu: '0'}}", "required-field"),
        ("cpuManagerPolicyOptions: {full-pcpus-only: 'true'}", "forbidden-field"),
        (
            "{cpuManagerPolicy: static, reservedSystemCPUs: '0', cpuManagerPolicyOptions: {x: 'true'}}",
            "unsupported-value",
        ),
        (
            "{cpuManagerPolicy: static, reservedSystemCPUs: '0', cpuManagerPolicyOptions: {align-by-socket: 'true'}}",
            "disabled-feature",
        ),
        (
            "{cpuManagerPolicy: static, reservedSystemCPUs: '0', cpuManagerPolicyOptions: {full-pcpus-only: maybe}}",
            "bad-format",
        ),
        (
            "{topologyManagerPolicy: restricted, topologyManagerPolicyOptions: {max-allowable-numa-nodes: '4'}}",
            "out-of-range",
        ),
        ("{topologyManagerPolicy: restricted, topologyManagerPolicyOptions: {x: 'true'}}", "unsupported-value"),
        ("{memoryManagerPolicy: Static, kubeReserved: {memory: 1Gi}}", "out-of-range"),
        ("allowedUnsafeSysctls: [vm.swappiness]", "unsupported-value"),
        ("allowedUnsafeSysctls: [kernel.*]", "unsupported-value"),
        ("allowedUnsafeSysctls: ['Net.core']", "bad-name"),
        ("tlsPrivateKeyFile: /a.key", "required-field"),
    ],
)
def test_kubelet_that_does_not_start_is_found(text: str, code: str) -> None:
    assert told(text) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "{cpuManagerPolicy: static, systemReserved: {cpu: 500m}}",
        "topologyManagerPolicyOptions: {x: y}",  # nothing reads them without a policy
        "{memoryManagerPolicy: Static, evictionHard: {memory.available: 5%}}",  # of a machine that nobody knows
        "{memoryManagerPolicy: Static, reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]}",
        "allowedUnsafeSysctls: [net.*, kernel/msgmax, fs.mqueue.msg_max, 'kernel.shm*']",
        "{tlsCertFile: /a.crt, tlsPrivateKeyFile: /a.key}",
    ],
)
def test_kubelet_that_starts_is_not_told(text: str) -> None:
    assert told(text) == []
