"""What reset asks before it removes anything, and how it finds out that others count its member."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.engine import Plan
from garboard.errors import GarboardError
from garboard.etcd import EtcdMembers
from garboard.host.node_machine import NodeMachine
from garboard.host.root import inside
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.model.lifecycle import ResetConfiguration
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.node.observe import looking_again
from garboard.node.reset import RESET_WORKFLOW
from garboard.node.wiring import RunSettings, wired_for
from garboard.node.workflow import LocalNode
from garboard.phases import select
from garboard.phases.reset import RESET
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.etcd.cluster import EtcdCluster, RunningMember, etcd_cluster
from tests.support.kube.api_server import FakeApi
from tests.support.node.reporters import MemoryReporter
from tools.harness.certificates import make_certificates


def confirm(answer: str, *, force: bool = False, only: str | None = None) -> list[str]:
    reporter = MemoryReporter(answers=[answer])
    assert RESET_WORKFLOW.confirm is not None
    selected = select(RESET, only=only)
    RESET_WORKFLOW.confirm(ResetConfiguration(force=force), Plan(), selected, LocalNode(NodeMachine(None), reporter))
    return reporter.lines


@pytest.mark.parametrize("answer", ["y\n", "yes\n", "Y\n", " YES \n"])
def test_yes_goes_on(answer: str) -> None:
    assert confirm(answer)[-1].endswith("[y/N]: ")


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yep\n"])
def test_anything_else_aborts(answer: str) -> None:
    with pytest.raises(GarboardError, match="aborted reset operation"):
        confirm(answer)


def test_force_and_phases_without_preflight_ask_nothing() -> None:
    assert confirm("", force=True) == []
    assert confirm("", only="cleanup-node") == []


@pytest.mark.parametrize(
    ("stored", "arguments", "emptied"),
    [
        pytest.param("/srv/pki", [], "/srv/pki", id="the cluster names it"),
        pytest.param("/srv/pki", ["--cert-dir", "/etc/kubernetes/pki"], "/etc/kubernetes/pki", id="the user does"),
        pytest.param("pki", [], "/etc/kubernetes/pki", id="a path that leads nowhere"),
        pytest.param("", [], "/etc/kubernetes/pki", id="nobody names one"),
    ],
)
def test_folder_of_certificates_is_that_of_the_cluster_unless_the_user_names_one(
    stored: str,
    arguments: list[str],
    emptied: str,
    machine: list[str],
    api: FakeApi,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api.objects[CONFIG_MAP] = {"data": {"ClusterConfiguration": f"certificatesDir: {stored}\n"}}
    assert run([*machine, "reset", "--dry-run", "--kubeconfig", "/root/config", *arguments]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if "pki" in line and "] empty " in line] == [
        f"[cleanup-node] empty {emptied}"
    ]


@pytest.mark.parametrize("folder", ["/etc", "/srv/mixed"])
def test_folder_that_the_cluster_names_is_judged_as_if_the_user_had(
    folder: str, machine: list[str], api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[CONFIG_MAP] = {"data": {"ClusterConfiguration": f"certificatesDir: {folder}\n"}}
    assert run([*machine, "reset", "--dry-run", "--kubeconfig", "/root/config"]) == 4
    assert folder in capsys.readouterr().err


CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"


@pytest.fixture
def machine(tmp_path: Path, kubeconfig: Kubeconfig) -> list[str]:
    """A root with certificates in two folders, and with other files."""
    for name in ("etc/kubernetes/pki/ca.crt", "srv/pki/ca.crt", "srv/mixed/photo.jpg", "etc/passwd", "root/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(kubeconfig.to_bytes() if name == "root/config" else b"")
    return ["--rootfs", str(tmp_path)]


MANIFEST = """
spec:
  containers:
  - command: [etcd, --name={name}, --advertise-client-urls={client}, --initial-advertise-peer-urls={peer}]
  volumes:
  - {{name: etcd-data, hostPath: {{path: /data}}}}
"""


def rootfs_of(member: RunningMember) -> list[str]:
    """Make the folder of a member the root of a machine whose certificates are missing, as if they were elsewhere."""
    manifest = member.folder / "etc/kubernetes/manifests/etcd.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(MANIFEST.format(name=member.name, client=member.client_url, peer=member.peer_url))
    return ["--rootfs", str(member.folder)]


def killed(cluster: EtcdCluster, name: str) -> list[str]:
    """Kill a member that has committed who the others are."""
    cluster.await_stored(name)
    cluster.members[name].kill()
    return rootfs_of(cluster.members[name])


@pytest.mark.real
def test_first_of_three_is_refused_unless_its_member_may_be_abandoned(
    binaries: Binaries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates = make_certificates(tmp_path)
    with etcd_cluster(binaries.locate_for("etcd", str(DEFAULT_VERSION)), certificates, tmp_path, *"abc") as cluster:
        own = next(each for each in cluster.client().members() if each.name == "a")
        machine = killed(cluster, "a")
        assert run([*machine, "reset", "--dry-run"]) == 5
        refused = capsys.readouterr()
        assert "there is no /etc/kubernetes/pki/etcd/ca.crt" in refused.err
        assert "--abandon-etcd-member" in refused.err
        assert refused.out == ""
        assert run([*machine, "reset", "--dry-run", "--abandon-etcd-member"]) == 0
        shown = capsys.readouterr().out
        assert f"etcdctl member remove {own.hex_id}" in shown
        assert "empty /data/member" in shown


@pytest.mark.real
def test_dead_single_node_is_reset_as_ever(
    binaries: Binaries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates = make_certificates(tmp_path)
    with etcd_cluster(binaries.locate_for("etcd", str(DEFAULT_VERSION)), certificates, tmp_path, "a") as cluster:
        assert run([*killed(cluster, "a"), "reset", "--dry-run"]) == 0
        assert "empty /data/member" in capsys.readouterr().out


@pytest.mark.real
def test_members_are_among_what_the_plan_was_made_from(
    binaries: Binaries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates = make_certificates(tmp_path)
    with etcd_cluster(binaries.locate_for("etcd", str(DEFAULT_VERSION)), certificates, tmp_path, *"abc") as cluster:
        machine = rootfs_of(cluster.members["a"])
        folder = cluster.members["a"].folder / "etc/kubernetes/pki/etcd"
        folder.mkdir(parents=True)
        (folder / "ca.crt").write_bytes(certificates.ca.read_bytes())
        (folder / "healthcheck-client.crt").write_bytes(certificates.client.read_bytes())
        (folder / "healthcheck-client.key").write_bytes(certificates.client_key.read_bytes())

        def observed() -> str:
            assert run([*machine, "reset", "--dry-run", "-o", "json"]) == 0
            of = json.loads(capsys.readouterr().out)["observed"]["of"]
            return str(next(each["digest"] for each in of if each["name"] == "members of etcd"))

        before = observed()
        assert before == observed()
        endpoints = ",".join(cluster.client().endpoints)
        settings = RunSettings(certificates_dir=DEFAULT_CERTIFICATES_DIR, etcd_endpoints=endpoints)
        here, reporter = NodeMachine(None), MemoryReporter()
        with inside(machine[1]), wired_for(Plan(), here, settings, datetime.now(UTC), reporter) as wiring:
            look = looking_again(here, wiring.cluster, wiring.member_lines)
            assert look("members of etcd") == before, "a run looks at the same members again"
        EtcdMembers(cluster.client(), reporter.report).add("d", "https://127.0.0.1:1")
        assert observed() != before
