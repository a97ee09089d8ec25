"""The commands on a real folder; what they decide is tested in tests/pki, that it is kubeadm's in tests/parity."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_csr

from garboard.cli.certs.options import now
from garboard.cli.main import run
from garboard.documents import read_yaml
from garboard.engine import IssueRequest
from garboard.errors import GarboardError
from garboard.host import HostFolder
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.pki import KUBECONFIGS, KeyAlgorithm
from garboard.pki.chain import chain_problem, read_certificates
from garboard.pki.credentials import kubeconfig_file
from garboard.pki.files import write_files
from garboard.pki.keys import PooledKeys, algorithm_of
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.store import observe_pairs
from tests.support.pki.fixtures import INPUTS, KEYS, issue_tree, tree_files

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps journals")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node's /etc/kubernetes with everything in it."""
    issued = issue_tree(INPUTS, now())
    write_files(HostFolder(tmp_path / "pki"), tree_files(issued))
    write_files(
        HostFolder(tmp_path), [kubeconfig_file(spec, INPUTS, issued["ca"], KEYS, now()) for spec in KUBECONFIGS]
    )
    return tmp_path


def folders(node: Path) -> list[str]:
    return ["--cert-dir", str(node / "pki"), "--kubeconfig-dir", str(node)]


def snapshot(node: Path) -> dict[str, tuple[bytes, int]]:
    files = (each for each in node.rglob("*") if each.is_file())
    return {str(each.relative_to(node)): (each.read_bytes(), each.stat().st_mode) for each in files}


def test_expiration_in_three_forms(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certs", "check-expiration", *folders(node)]) == 0
    assert capsys.readouterr().out.startswith("CERTIFICATE ")
    assert run(["certs", "check-expiration", *folders(node), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["certificateAuthorities"]] == ["ca", "etcd-ca", "front-proxy-ca"]
    assert run(["certs", "check-expiration", *folders(node), "-o", "yaml"]) == 0
    other = read_yaml(capsys.readouterr().out, source="stdout")
    assert isinstance(other, dict)
    assert other.keys() == document.keys()


@pytest.mark.parametrize(("within", "status"), [("", 0), ("30d", 0), ("720h", 0), ("366d", 10), ("8784h", 10)])
def test_expiration_tells_scripts_only_when_asked(
    node: Path, within: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--within", within] if within else []
    assert run(["certs", "check-expiration", *folders(node), *asked, "-o", "json"]) == status
    told = capsys.readouterr()
    assert len(json.loads(told.out)["certificates"]) == 11, "the report is the same"
    assert told.err.startswith("error[expiring]: these certificates expire: ") == (status == 10)


def test_expiration_within_nonsense_is_a_mistake(node: Path) -> None:
    assert run(["certs", "check-expiration", *folders(node), "--within", "soon"]) == 2


def test_expiration_of_nothing_is_all_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certs", "check-expiration", *folders(tmp_path)]) == 0
    assert capsys.readouterr().out.count("!MISSING!") == 14


def test_one_certificate_is_renewed_and_nothing_else_changes(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node / "pki/apiserver.key").chmod(0o640)
    before = snapshot(node)
    assert run(["certs", "renew", "apiserver", *folders(node)]) == 0
    assert capsys.readouterr().out == "certificate for serving the Kubernetes API renewed\n"
    after = snapshot(node)
    assert {name for name in after if after[name] != before[name]} == {"pki/apiserver.crt", "pki/apiserver.key"}
    assert {name: mode for name, (_, mode) in after.items()} == {name: mode for name, (_, mode) in before.items()}
    pairs = observe_pairs(HostFolder(node / "pki"))
    chain, ca = pairs["apiserver"].chain, pairs["ca"].certificate
    assert isinstance(chain, tuple)
    assert ca is not None
    assert chain_problem(chain, ca, now()) is None
    assert algorithm_of(chain[0].public_key()) is INPUTS.key_algorithm


def test_nothing_is_written_when_one_of_all_cannot_be_renewed(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node / "scheduler.conf").write_text("[]")
    before = snapshot(node)
    assert run(["certs", "renew", "all", *folders(node)]) == 1
    assert "scheduler.conf: it is not a kubeconfig" in capsys.readouterr().err
    assert snapshot(node) == before


def test_dry_run_prints_the_plan_and_changes_nothing(
    node: Path, state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / "scheduler.conf").unlink()
    before = snapshot(node)
    assert run(["certs", "renew", "all", "--dry-run", *folders(node)]) == 0
    out = capsys.readouterr().out
    assert "[certs/renew] issue certificate apiserver" in out
    assert f"{node}/pki/apiserver.key (0600): <key of apiserver>" in out
    assert "MISSING! certificate embedded in the kubeconfig file for the scheduler manager" in out
    assert snapshot(node) == before
    assert not list(state_dir.iterdir())


class Broken(GarboardError):
    """The disk is full, or the power is gone."""


def break_after(monkeypatch: pytest.MonkeyPatch, count: int, error: BaseException) -> None:
    """Let issuing fail once it has been done `count` times."""
    issue, done = PkiIssuer.issue, list[IssueRequest]()

    def fail(issuer: PkiIssuer, request: IssueRequest) -> Mapping[str, bytes]:
        if len(done) == count:
            raise error
        done.append(request)
        return issue(issuer, request)

    monkeypatch.setattr(PkiIssuer, "issue", fail)


@needs_root
def test_renewal_that_fails_half_way_is_taken_back(
    node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(node)
    break_after(monkeypatch, 5, Broken("no more"))
    assert run(["certs", "renew", "all", *folders(node)]) == 1
    captured = capsys.readouterr()
    assert "what the run had done was undone" in captured.err
    assert captured.out == ""
    assert snapshot(node) == before


@needs_root
@pytest.mark.parametrize("way", ["resume", "undo"])
def test_renewal_that_was_killed_is_resumed_or_undone_from_anywhere(
    node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    before = snapshot(node)
    monkeypatch.chdir(node)
    with monkeypatch.context() as killing:
        break_after(killing, 5, SystemExit("killed"))
        with pytest.raises(SystemExit):
            run(["certs", "renew", "all", "--cert-dir", "pki", "--kubeconfig-dir", "."])
    half = snapshot(node)
    assert half != before
    assert run(["certs", "renew", "apiserver", *folders(node)]) == 4
    assert "(certs renew) is open: 5 of 11 steps are done" in capsys.readouterr().err
    monkeypatch.chdir("/")
    assert run([way]) == 0
    after = snapshot(node)
    if way == "undo":
        assert after == before
    else:
        renewed = {name for name in after if after[name] != before[name]}
        assert len(renewed) == 7 * 2 + 4
        assert {name: half[name] for name in renewed if half[name] != before[name]}.items() <= after.items()
    assert run(["certs", "renew", "apiserver", *folders(node)]) == 0


def test_renewal_needs_no_root_and_keeps_no_journal_without(
    node: Path, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(node)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    assert run(["certs", "renew", "apiserver", *folders(node)]) == 0
    assert capsys.readouterr().out == "certificate for serving the Kubernetes API renewed\n"
    assert snapshot(node) != before
    assert not list(state_dir.iterdir())


def test_unknown_name_is_refused(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certs", "renew", "ca", *folders(node)]) == 2
    assert "'ca' cannot be renewed" in capsys.readouterr().err


def write_config(folder: Path, *, address: str = "192.0.2.1", **cluster: object) -> list[str]:
    head = {"apiVersion": "kubeadm.k8s.io/v1beta4"}
    init = {**head, "kind": "InitConfiguration", "localAPIEndpoint": {"advertiseAddress": address}}
    whole = {**head, "kind": "ClusterConfiguration", "encryptionAlgorithm": "ECDSA-P256", **cluster}
    (folder / "kubeadm.yaml").write_text(json.dumps(init) + "\n---\n" + json.dumps(whole))
    return ["--config", str(folder / "kubeadm.yaml")]


def test_requests_are_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["certs", "generate-csr", *write_config(tmp_path), *folders(tmp_path)]
    assert run(command) == 0
    assert len(snapshot(tmp_path)) == 25
    capsys.readouterr()
    before = snapshot(tmp_path)
    assert run(command) == 1
    assert capsys.readouterr().err.startswith("error[exists]: file already exists: ")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["pki/apiserver.key", "pki/etcd/peer.csr", "scheduler.conf"])
def test_what_another_program_makes_while_keys_are_made_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    leave = PooledKeys.__exit__

    def late(self: PooledKeys, *error: Any) -> None:
        leave(self, *error)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("of another program")

    monkeypatch.setattr(PooledKeys, "__exit__", late)
    assert run(["certs", "generate-csr", *write_config(tmp_path), *folders(tmp_path)]) == 1
    assert f"error[exists]: file already exists: {tmp_path}/{name}" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "of another program"
    made = [each.removesuffix(".key").removesuffix(".csr") for each in snapshot(tmp_path) if each.startswith("pki/")]
    assert all(made.count(each) == 2 for each in made if name != f"{each}.key" and name != f"{each}.csr")


@pytest.mark.parametrize("command", ["certs generate-csr", "tunnel certs"])
def test_of_several_at_once_one_makes_the_keys(tmp_path: Path, command: str) -> None:
    target = tmp_path / "made"
    requests = [*write_config(tmp_path), *folders(target)]
    options = requests if command == "certs generate-csr" else ["-o", str(target), "--server-name", "a.test"]
    program = [str(Path(sys.executable).parent / "garboard"), *command.split(), *options]
    for _ in range(2):
        started = [subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(3)]
        statuses = [each.wait(timeout=120) for each in started]
        if command == "certs generate-csr":
            assert statuses.count(0) == 1
        for key in target.rglob("*.key"):
            other = key.with_suffix(".csr" if command == "certs generate-csr" else ".crt")
            read = load_pem_x509_csr if other.suffix == ".csr" else load_pem_x509_certificate
            private = load_pem_private_key(key.read_bytes(), None)
            assert read(other.read_bytes()).public_key() == private.public_key()
        shutil.rmtree(target)


def test_folders_of_requests_are_told_as_they_were_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = f"{tmp_path}/none/../pki/"
    options = ["--cert-dir", written, "--kubeconfig-dir", str(tmp_path)]
    assert run(["certs", "generate-csr", *write_config(tmp_path), *options]) == 0
    assert f"generating keys and CSRs in {written}\n" in capsys.readouterr().out
    assert (tmp_path / "pki/apiserver.csr").exists()


def test_configuration_decides_what_is_renewed_and_how(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    etcd = {"external": {"endpoints": ["http://192.0.2.2:2379"]}}
    keys = {"encryptionAlgorithm": "ECDSA-P384", "certificateValidityPeriod": "2h"}
    config = write_config(node, **keys, certificatesDir=str(node / "pki"), etcd=etcd)
    assert run(["certs", "renew", "all", *config, "--kubeconfig-dir", str(node)]) == 0
    assert "etcd" not in capsys.readouterr().out.partition("\n\n")[0]
    chain = observe_pairs(HostFolder(node / "pki"))["apiserver"].chain
    assert isinstance(chain, tuple)
    assert algorithm_of(chain[0].public_key()) is KeyAlgorithm.ECDSA_P384
    assert abs((chain[0].not_valid_after_utc - now()).total_seconds() - 7200) < 60
    assert run(["certs", "check-expiration", *config, "--kubeconfig-dir", str(node)]) == 0
    assert "etcd" not in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [{"address": "nowhere"}, {"controlPlaneEndpoint": "https://a"}], ids=str)
def test_bad_configuration_is_refused_before_anything_is_written(tmp_path: Path, arguments: dict[str, str]) -> None:
    config = write_config(tmp_path, **arguments)
    assert run(["certs", "generate-csr", *config, *folders(tmp_path / "new")]) == 3
    assert not (tmp_path / "new").exists()


def test_certificate_key_is_new_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["certs", "certificate-key"]) == 0
    first, second = capsys.readouterr().out.split()
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert first != second


def user(node: Path, *arguments: str, address: str = "192.0.2.1", endpoint: str = "") -> list[str]:
    config = write_config(node, address=address, controlPlaneEndpoint=endpoint)
    return ["kubeconfig", "user", "--cert-dir", str(node / "pki"), *config, "--client-name", "alice", *arguments]


def test_kubeconfig_for_a_user(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(user(node, "--org", "dev,ops", "--validity-period", "1h30m", endpoint="api.example")) == 0
    current = read_kubeconfig(capsys.readouterr().out.encode(), "stdout")
    (client,) = read_certificates(current.client_certificate)
    assert current.server == "https://api.example:6443"
    assert client.subject.rfc4514_string() == "CN=alice,O=dev+O=ops"
    assert abs((client.not_valid_after_utc - now()).total_seconds() - 5400) < 60


def test_kubeconfig_with_a_token(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(user(node, "--token", "abc", address="fd00::1")) == 0
    out = capsys.readouterr().out
    assert "server: https://[fd00::1]:6443\n" in out
    assert "token: abc\n" in out


@pytest.mark.parametrize("period", ["1 day", "99999999h"])
def test_bad_validity_is_refused(node: Path, period: str) -> None:
    assert run(user(node, "--validity-period", period)) == 2


def test_ca_without_key_cannot_sign(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node / "pki/ca.key").unlink()
    assert run(user(node)) == 1
    assert "ca.crt and ca.key must both be there" in capsys.readouterr().err
