"""On a live cluster made by kubeadm: hand edits are recorded or taken out, and certificates are signed elsewhere."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from garboard.change.drifting import cluster_drift
from garboard.change.reads import ADOPT_READS
from garboard.cli.main import run
from garboard.model.addresses import IpAddress
from garboard.node.change_observe import observe_cluster
from garboard.pki import AltNames, certificate
from garboard.pki.chain import names_of, read_certificates
from garboard.pki.files import IssuedPair
from garboard.pki.issue import certificate_pem, sign_certificate
from garboard.pki.keys import SystemKeys, read_private_key
from garboard.pki.spec import CertRequest
from garboard.retry import Pauses, wait_until
from tests.support.lab.clusters import await_nodes
from tools.harness.changing import CONTROL_PLANES, NODES, Changing, SeenNodes
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.verify, pytest.mark.timeout(900)]

SCHEDULER = "/etc/kubernetes/manifests/kube-scheduler.yaml"
PKI, WAITING = "/etc/kubernetes/pki", "/var/lib/garboard/signing"


@pytest.fixture(scope="module")
def nodes(ha: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Changing:
    await_nodes(ha, *NODES)
    return Changing(ha, garboard_in_node)


@pytest.fixture(autouse=True)
def settled(nodes: Changing) -> None:
    """Begin each test when the API shows what the one before has left."""
    nodes.await_pods()


@pytest.fixture
def via(nodes: Changing, tmp_path: Path, state_dir: Path) -> list[str]:
    """The flags with which all nodes are reached from the machine of the lab."""
    return nodes.carried(tmp_path / "carrier")


def type_in(nodes: Changing, flag: str, *names: str) -> None:
    """Do what somebody does with an editor, and wait until the schedulers run with it."""
    for name in names:
        nodes.lab.exec(name, "sed", "-i", f"s/    - --leader-elect=true/&\\n    - {flag}/", SCHEDULER)

    def problem() -> str | None:
        return next((f"not yet on {name}" for name in names if flag not in _running(nodes, name)), None)

    assert wait_until(problem, timeout_s=180, pauses=Pauses.every(1)) is None


def _running(nodes: Changing, name: str) -> list[str]:
    shown = nodes.lab.kubectl("-n", "kube-system", "get", "pod", f"kube-scheduler-{name}", "-o", "json", check=False)
    pod: Any = json.loads(shown or "{}")
    is_ready = any(each["type"] == "Ready" and each["status"] == "True"
                   for each in pod.get("status", {}).get("conditions", ()))  # fmt: skip
    return [str(each) for each in pod["spec"]["containers"][0]["command"]] if is_ready else []


def left_edits(nodes: Changing) -> list[tuple[str, str]]:
    observed = observe_cluster(str(nodes.lab.files.kubeconfig), ADOPT_READS)
    found = cluster_drift(observed.snapshot, observed.mirrors, observed.workloads).nodes
    return [(part.node, each.field) for part in found for each in part.edits]


def test_hand_edits_are_recorded_and_no_node_is_touched(nodes: Changing) -> None:
    type_in(nodes, "--profiling=false", *CONTROL_PLANES)
    type_in(nodes, "--v=3", "cp2")
    assert {name for name, _ in left_edits(nodes)} == {*CONTROL_PLANES}
    before = SeenNodes.now(nodes)
    done = nodes.run("cp1", "drift", "--adopt", "--yes", "--message", "they stay")
    assert done.returncode == 0, done.stderr
    since = before.since()
    assert not any([*since.changed.values(), *since.restarted.values(), since.kubelets])
    stored = nodes.stored("kubeadm-config")["ClusterConfiguration"]
    assert '- name: profiling\n    value: "false"' in stored
    assert "name: v\n" not in stored
    assert "node.cp2" in nodes.stored("garboard-patches")
    assert left_edits(nodes) == []
    again = nodes.run("cp2", "drift", "-o", "json", "--kubelets", "none")
    own = next(each for each in json.loads(again.stdout)["nodes"] if each["node"] == "cp2")
    assert {each["kind"] for each in own["differences"]} <= {"patch", "environmental", "cosmetic"}


def test_hand_edits_are_taken_out_on_every_node_that_has_them(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    before = {name: nodes.lab.exec(name, "cat", SCHEDULER).stdout for name in CONTROL_PLANES}
    type_in(nodes, "--kube-api-qps=51", "cp1", "cp3")
    seen = SeenNodes.now(nodes)
    only = ["--only", "kube-scheduler:--kube-api-qps"]
    assert run(["change", "drift", "--correct", *only, "-o", "json", *via[2:]]) == 10
    plan = json.loads(capfd.readouterr().out)
    assert [each["node"] for each in plan["nodes"]] == ["cp1", "cp3"]
    status = run(["change", "apply", "--drift", "overwrite", *only, "--yes", *via])
    assert status == 0, capfd.readouterr().err
    after = {name: nodes.lab.exec(name, "cat", SCHEDULER).stdout for name in CONTROL_PLANES}
    assert {name: sorted(text.split()) for name, text in after.items()} == {
        name: sorted(text.split()) for name, text in before.items()
    }
    assert seen.since().restarted == {
        "cp1": {"kube-scheduler"}, "cp2": set(), "cp3": {"kube-scheduler"}, "worker1": set(),
    }  # fmt: skip
    assert left_edits(nodes) == []


def test_name_comes_into_certificates_that_somebody_else_signs(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    authority = _take_authority(nodes)
    wanted = ["--set", "apiServer.certSANs+=signed.example.com"]
    try:
        before = {name: nodes.files(name) for name in NODES}
        refused = nodes.run("cp1", "apply", *wanted, "--yes")
        assert (refused.returncode, f"{WAITING}/apiserver.csr" in refused.stderr) == (11, True), refused.stderr
        for name in CONTROL_PLANES:
            assert nodes.run(name, "apply", *wanted, "--requests").returncode == 11
            _sign(nodes, name, authority)
            checked = nodes.run(name, "apply", *wanted, "--requests")
            assert checked.returncode == 0, checked.stderr
        assert {name: nodes.files(name) for name in NODES} == before
        capfd.readouterr()
        status = run(["change", "apply", *wanted, "--yes", *via])
        assert status == 0, capfd.readouterr().err
        changed = {name: {path for path, each in nodes.files(name).items() if before[name].get(path) != each}
                   for name in NODES}  # fmt: skip
        pair = {f"{PKI}/apiserver.crt", f"{PKI}/apiserver.key"}
        assert changed == {**dict.fromkeys(CONTROL_PLANES, pair), "worker1": set()}
        for name in CONTROL_PLANES:
            text = nodes.lab.exec(name, "cat", f"{PKI}/apiserver.crt").stdout
            assert "signed.example.com" in names_of(read_certificates(text.encode())[0]).dns
            assert nodes.lab.exec(name, "sh", "-c", f"find {WAITING} -type f").stdout == ""
    finally:
        for name in CONTROL_PLANES:
            nodes.lab.exec(name, "mv", "/root/away.key", f"{PKI}/ca.key")


def test_component_restarts_on_every_node_that_has_it_and_nothing_else(
    nodes: Changing, via: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    before = SeenNodes.now(nodes)
    assert run(["change", "restart", "kube-scheduler", "--yes", *via]) == 0, capfd.readouterr().err
    since = before.since()
    assert not any(since.changed.values())
    assert since.restarted == {name: {"kube-scheduler"} if name in CONTROL_PLANES else set() for name in NODES}


def _take_authority(nodes: Changing) -> IssuedPair:
    """Take the key of the authority from the nodes, as where a company keeps it."""
    key, pem = (nodes.lab.exec("cp1", "cat", f"{PKI}/ca.{end}").stdout.encode() for end in ("key", "crt"))
    for name in CONTROL_PLANES:
        nodes.lab.exec(name, "mv", f"{PKI}/ca.key", "/root/away.key")
    return IssuedPair(read_certificates(pem)[0], read_private_key(key))


def _sign(nodes: Changing, name: str, authority: IssuedPair) -> None:
    """Do what the owner of an authority does with a request: with its subject and its names."""
    asked = x509.load_pem_x509_csr(nodes.lab.exec(name, "cat", f"{WAITING}/apiserver.csr").stdout.encode())
    names = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = tuple(each for each in names.get_values_for_type(x509.IPAddress) if isinstance(each, IpAddress))
    spec = certificate("apiserver")
    now = datetime.now(UTC)
    request = CertRequest(
        common_name=spec.common_name or "",
        usages=spec.usages,
        alt_names=AltNames(tuple(names.get_values_for_type(x509.DNSName)), addresses),
        not_before=now - timedelta(hours=1),
        not_after=now + timedelta(days=30),
    )
    signed = certificate_pem(sign_certificate(request, asked.public_key(), authority, SystemKeys()))  # type: ignore[arg-type]
    text = base64.b64encode(signed).decode()
    nodes.lab.exec(name, "sh", "-c", f"echo {text} | base64 -d >{WAITING}/apiserver.crt")
