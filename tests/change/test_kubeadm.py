"""What the table declares for a field is what the real kubeadm renders in another way when it changes."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.change.attribute import CLUSTER
from garboard.change.table import attribute_table
from garboard.documents import Json, read_stream
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.pki.chain import names_of, read_certificates
from tests.support.change.touching import fresh_text, generated, leaf_fields, nested, types_of
from tests.support.parity.batch import Outcome, run_kubeadm_batch
from tests.support.parity.random_documents import RandomCase
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
_FILE = ("--config", "/kubeadm.yaml")
_PHASES = (
    ("control-plane", "all"), ("etcd", "local"), ("kubelet-start",), ("certs", "ca"), ("certs", "apiserver"),
    ("certs", "etcd-ca"), ("certs", "etcd-server"), ("certs", "etcd-peer"),
)  # fmt: skip
_ADDONS = ("kube-proxy", "coredns")
_LINES = [
    *(("init", "phase", *phase, *_FILE) for phase in _PHASES),
    *(("init", "phase", "addon", name, "--print-manifest", *_FILE) for name in _ADDONS),
]
_OBJECTS = {
    ("ConfigMap", "kube-proxy"): "kube-proxy",
    ("DaemonSet", "kube-proxy"): "kube-proxy-workload",
    ("ConfigMap", "coredns"): "coredns",
    ("Deployment", "coredns"): "coredns",
    ("Service", "kube-dns"): "dns-service",
}
# What these phases do not make, and what follows from another folder of the certificates.
_ELSEWHERE = {"kubeconfigs", "cluster-info"}
_SAMPLE = 8  # of the fields of kubelet and kube-proxy, others every day


def _init(version: KubernetesVersion, kind: str, members: dict[str, Json], *, is_external: bool) -> str:
    # Keys of this algorithm are made at once.
    quick: dict[str, Json] = {"encryptionAlgorithm": "ECDSA-P256"} if kind == CLUSTER else {}
    init = (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"
        "localAPIEndpoint: {advertiseAddress: 192.0.2.1}\n"
        'nodeRegistration: {name: cp1, criSocket: "unix:///run/c.sock"}\n---\n'
    )
    return init + fresh_text(version, kind, {**quick, **members}, is_external=is_external)


def _made(outcome: Outcome, certificates: str) -> dict[str, object]:
    """Return what kubeadm has made, by the words of the table."""
    found: dict[str, object] = {}
    for path, state in outcome.files.items():
        name = path.rpartition("/")[2]
        if path.startswith("/etc/kubernetes/manifests/"):
            found[name.removesuffix(".yaml")] = state.content
        elif path == "/var/lib/kubelet/config.yaml":
            found["kubelet"] = state.content
        elif name.endswith(".crt") and not name.startswith("ca") and path.startswith(certificates):
            prefix = "etcd-" if "/etcd/" in path else ""
            (certificate,) = read_certificates(state.content)
            names = names_of(certificate)
            found[f"certs/{prefix}{name.removesuffix('.crt')}"] = str(names)
    for said in outcome.said[-len(_ADDONS) :]:
        for component, text in _objects(said.out):
            found[component] = f"{found.get(component, '')}{text}"
    return found


def _objects(text: str) -> Iterator[tuple[str, str]]:
    for each in read_stream(text, source="kubeadm"):
        document = each.value
        members = document if isinstance(document, dict) else {}
        metadata = members.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        component = _OBJECTS.get((str(members.get("kind")), str(name)))
        if component:
            yield component, str(document)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_what_is_declared_is_what_kubeadm_renders(
    version: KubernetesVersion, binaries: Binaries, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    fields = [(kind, path, field) for kind, type_ in types_of(version).items() for path, field in leaf_fields(type_)]
    own = [each for each in fields if each[0] == CLUSTER and each[1][0] not in ("featureGates", "certificatesDir")]
    chosen = [*own, *draw.sample([each for each in fields if each[0] != CLUSTER], _SAMPLE)]
    texts: list[str] = []
    for kind, path, field in chosen:
        is_external = path[:2] == ("etcd", "external")
        value = generated(path, field, version, draw)
        texts.append(_init(version, kind, {}, is_external=is_external))
        texts.append(_init(version, kind, nested(path, value), is_external=is_external))
    distinct = list(dict.fromkeys(texts))
    cases = [RandomCase(number, text) for number, text in enumerate(distinct)]
    program = binaries.locate("kubeadm", str(version))
    outcomes = dict(
        zip(distinct, run_kubeadm_batch(Machine.make(tmp_path / "machine"), program, cases, _LINES), strict=True)
    )
    wrong: list[str] = []
    for number, (kind, path, _) in enumerate(chosen):
        before, after = (_made(outcomes[text], "/etc/kubernetes/pki") for text in texts[2 * number : 2 * number + 2])
        statuses = [[said.status for said in outcomes[text].said] for text in texts[2 * number : 2 * number + 2]]
        assert statuses[0] == statuses[1], (path, [said.err for said in outcomes[texts[2 * number + 1]].said])
        row = attribute_table(kind).row(path)
        assert row is not None
        found = {name for name in before.keys() & after.keys() if before[name] != after[name]}
        if found != set(row.components) - _ELSEWHERE:
            wrong.append(f"{kind}:{'.'.join(path)}: kubeadm {sorted(found)}, declared {sorted(row.components)}")
    assert wrong == []
