"""Flags of the components: values by their types, and flags that do not go together."""

import pytest

from garboard.model import DEFAULT_VERSION
from garboard.rules import check_flags

ETCD = "--etcd-servers=https://127.0.0.1:2379"
TOKENS = (
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-account-key-file=/etc/kubernetes/pki/sa.pub",
    "--service-account-signing-key-file=/etc/kubernetes/pki/sa.key",
)


def told(*words: str, program: str = "kube-apiserver") -> list[tuple[str, tuple[str | int, ...]]]:
    return [(each.code, each.path) for each in check_flags(program, list(words), DEFAULT_VERSION)]


@pytest.mark.parametrize(
    "word",
    [
        "--service-node-port-range=30000-32767",
        "--service-node-port-range=30000+100",
        "--advertise-address=10.0.0.1",
        "--max-requests-inflight=1_000",
        "--goaway-chance=0.01",
        "--tls-sni-cert-key=a.crt,a.key:example.com",
        "--vmodule=server=3,cache=2",
        "--v=4",
        "--oidc-required-claim=a=b --oidc-issuer-url=https://a --oidc-client-id=b",
        "--runtime-config=api/all",
        "--log-json-info-buffer-size=64Ki --feature-gates=LoggingAlphaOptions=true",
        "--feature-gates=AllAlpha=False",
        '--cors-allowed-origins="^a,b$"',
        "--tls-curve-preferences=23,0x1d",
    ],
)
def test_value_that_its_flag_reads_is_fine(word: str) -> None:
    assert told(ETCD, *TOKENS, *word.split(" ")) == []


@pytest.mark.parametrize(
    ("word", "program"),
    [
        pytest.param("--profiling=maybe", "kube-apiserver", id="boolean"),
        pytest.param("--request-timeout=1d", "kube-apiserver", id="duration"),
        pytest.param("--max-requests-inflight=1__0", "kube-apiserver", id="whole number"),
        pytest.param("--secure-port=six", "kube-apiserver", id="port"),
        pytest.param("--goaway-chance=1e400", "kube-apiserver", id="number too large"),
        pytest.param("--advertise-address=10.0.0.01", "kube-apiserver", id="address"),
        pytest.param("--service-node-port-range=32767-30000", "kube-apiserver", id="range of ports"),
        pytest.param("--tls-sni-cert-key=a.crt", "kube-apiserver", id="certificate without a key"),
        pytest.param("--vmodule=server", "kube-apiserver", id="pattern without a level"),
        pytest.param("--v=-1", "kube-apiserver", id="negative level"),
        pytest.param("--oidc-required-claim=a", "kube-apiserver", id="claim without a value"),
        pytest.param("--allow-metric-labels=a", "kube-apiserver", id="pair without a value"),
        pytest.param("--log-json-info-buffer-size=64KB", "kube-apiserver", id="quantity"),
        pytest.param("--tls-curve-preferences=P256", "kube-apiserver", id="list of numbers"),
        pytest.param('--cors-allowed-origins=a"b', "kube-apiserver", id="a quote inside an element"),
        pytest.param("--feature-gates=AllAlpha=tRUE", "kube-apiserver", id="a gate that is neither on nor off"),
        pytest.param("--kube-api-qps=many", "kube-controller-manager", id="float"),
        pytest.param("--leader-elect-lease-duration=15", "kube-scheduler", id="duration without a unit"),
        pytest.param("--quota-backend-bytes=8G", "etcd", id="bytes of etcd"),
        pytest.param("--max-concurrent-streams=-1", "etcd", id="below zero"),
    ],
)
def test_value_that_its_flag_cannot_read_is_found(word: str, program: str) -> None:
    first = [ETCD] if program == "kube-apiserver" else []
    assert ("bad-flag-value", (len(first),)) in told(*first, word, program=program)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param((), "missing-flag", id="no etcd"),
        pytest.param((ETCD, "--authorization-mode=Node,RBCA"), "bad-flag-value", id="a mode that is none"),
        pytest.param((ETCD, "--authorization-mode=Node", "--authorization-mode=Node"), "flag-conflict", id="one twice"),
        pytest.param((ETCD, "--authorization-mode=Webhook"), "missing-flag", id="a webhook without its file"),
        pytest.param((ETCD, "--authorization-policy-file=/a"), "flag-conflict", id="a policy without ABAC"),
        pytest.param(
            (ETCD, "--authorization-config=/a", "--authorization-mode=RBAC"),
            "flag-conflict",
            id="two ways to authorize",
        ),
        pytest.param(
            (ETCD, "--encryption-provider-config-automatic-reload"), "flag-conflict", id="a reload of no encryption"
        ),
        pytest.param((ETCD, "--audit-log-path=-", "--audit-log-mode=async"), "bad-flag-value", id="an audit mode"),
        pytest.param((ETCD, "--audit-log-path=-", "--audit-log-maxage=-1"), "out-of-range", id="a negative age"),
        pytest.param(
            (ETCD, "--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=NodeRestriction"),
            "flag-conflict",
            id="enabled and disabled",
        ),
        pytest.param((ETCD, "--secure-port=0"), "out-of-range", id="no port"),
        pytest.param((ETCD, "--goaway-chance=0.5"), "out-of-range", id="a chance"),
        pytest.param((ETCD, "--storage-media-type=text/plain"), "bad-flag-value", id="a media type"),
    ],
)
def test_flags_that_the_component_refuses_together_are_found(words: tuple[str, ...], code: str) -> None:
    assert code in [each for each, _ in told(*words)]


def test_value_from_the_environment_is_not_judged() -> None:
    assert told("--etcd-servers=$(SERVERS)", "--authorization-mode=$(MODES)") == []


def test_program_without_known_flags_is_not_judged() -> None:
    assert told("--anything", program="haproxy") == []


@pytest.mark.parametrize(
    ("program", "words", "code"),
    [
        pytest.param("kube-apiserver", "--tls-min-version=TLS13", "bad-flag-value", id="a version of TLS"),
        pytest.param("kube-apiserver", "--tls-cipher-suites=FOO", "bad-flag-value", id="a cipher suite"),
        pytest.param("kube-apiserver", "--logging-format=xml", "bad-flag-value", id="a format of logs"),
        pytest.param("kube-apiserver", "--service-cluster-ip-range=10.0.0.0", "bad-flag-value", id="a range"),
        pytest.param(
            "kube-apiserver",
            "--service-cluster-ip-range=fd00::/112 --advertise-address=10.0.0.1",
            "flag-conflict",
            id="an address of the other family",
        ),
        pytest.param("kube-apiserver", "--runtime-config=app/v1=true", "bad-flag-value", id="an API group"),
        pytest.param("kube-apiserver", "--runtime-config=api/all=false", "bad-flag-value", id="no API at all"),
        pytest.param("kube-apiserver", "--oidc-issuer-url=https://a", "missing-flag", id="half of OIDC"),
        pytest.param("kube-apiserver", "--log-json-split-stream", "flag-conflict", id="a gate that is off"),
        pytest.param("kube-apiserver", "--service-account-max-token-expiration=5m", "out-of-range", id="a short token"),
        pytest.param("kube-apiserver", "--cors-allowed-origins=example.com", "bad-flag-value", id="any origin"),
        pytest.param("kube-apiserver", "--show-hidden-metrics-for-version=1.30", "bad-flag-value", id="old metrics"),
        pytest.param("kube-scheduler", "--leader-elect-renew-deadline=60s", "out-of-range", id="an election"),
        pytest.param("kube-controller-manager", "--leader-elect-retry-period=9s", "out-of-range", id="a retry"),
        pytest.param("kube-controller-manager", "--allocate-node-cidrs=true", "missing-flag", id="no range for Pods"),
        pytest.param(
            "kube-controller-manager",
            "--allocate-node-cidrs --cluster-cidr=10.244.0.0/24 --node-cidr-mask-size=16",
            "out-of-range",
            id="nodes larger than the cluster",
        ),
        pytest.param("kube-controller-manager", "--concurrent-job-syncs=0", "out-of-range", id="no worker"),
        pytest.param("kube-controller-manager", "--cloud-provider=aws", "bad-flag-value", id="a provider"),
        pytest.param(
            "kube-controller-manager",
            "--cluster-signing-cert-file=/a --cluster-signing-kubelet-client-cert-file=/b"
            " --cluster-signing-kubelet-client-key-file=/c",
            "flag-conflict",
            id="two ways to sign",
        ),
        pytest.param("etcd", "--heartbeat-interval=5000", "out-of-range", id="a long heartbeat"),
        pytest.param("etcd", "--election-timeout=10", "out-of-range", id="a short election"),
        pytest.param("etcd", "--election-timeout=60000", "out-of-range", id="a long election"),
        pytest.param("etcd", "--log-level=loud", "bad-flag-value", id="a level"),
        pytest.param("etcd", "--auto-compaction-mode=dayly", "bad-flag-value", id="a mode of compaction"),
        pytest.param("etcd", "--auto-compaction-retention=foo", "bad-flag-value", id="a retention"),
        pytest.param("etcd", "--listen-metrics-urls=http://name:1", "bad-flag-value", id="a name to listen on"),
        pytest.param("etcd", "--listen-metrics-urls=http://127.0.0.1", "bad-flag-value", id="a URL without a port"),
        pytest.param("etcd", "--cipher-suites=FOO", "bad-flag-value", id="a cipher suite of etcd"),
        pytest.param("etcd", "--discovery-token=a", "missing-flag", id="half of a discovery"),
        pytest.param("etcd", "--cors=a", "bad-flag-value", id="an origin that is no URL"),
        pytest.param("kube-scheduler", "--leader-elect-resource-lock=endpoints", "bad-flag-value", id="a lock"),
        pytest.param("kube-scheduler", "--kube-api-burst=0", "out-of-range", id="no requests"),
        pytest.param("kube-apiserver", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256", "bad-flag-value", id="no HTTP/2"),
        pytest.param("kube-apiserver", "--tls-curve-preferences=1", "bad-flag-value", id="a curve"),
        pytest.param("etcd", "--enable-log-rotation", "missing-flag", id="rotation of no file"),
    ],
)
def test_what_the_program_refuses_after_reading_its_flags_is_found(program: str, words: str, code: str) -> None:
    first = [ETCD, *TOKENS] if program == "kube-apiserver" else []
    assert code in [each for each, _ in told(*first, *words.split(), program=program)]


@pytest.mark.parametrize("missing", TOKENS)
def test_api_server_without_its_keys_for_tokens_does_not_start(missing: str) -> None:
    words = [ETCD, *(word for word in TOKENS if word != missing)]
    assert [code for code, _ in told(*words)] == ["missing-flag"]


def test_what_kubeadm_writes_is_fine_for_etcd() -> None:
    words = "--heartbeat-interval=500 --election-timeout=2500 --log-level=WARN --auto-compaction-retention=8h"
    assert told(*words.split(), "--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379",
                "--advertise-client-urls=https://10.0.0.1:2379", program="etcd") == []  # fmt: skip
