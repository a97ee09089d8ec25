"""The commands on a real folder; what they decide is tested in tests/pki, that it is kubeadm's in tests/parity."""

import json
import re
from pathlib import Path

import pytest

from garboard.cli.certs.options import now
from garboard.cli.main import run
from garboard.documents import read_yaml
from garboard.host import HostFolder
from garboard.pki import KUBECONFIGS, KeyAlgorithm
from garboard.pki.chain import chain_problem, read_certificates
from garboard.pki.credentials import kubeconfig_file
from garboard.pki.files import write_files
from garboard.pki.keys import algorithm_of
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.store import observe_pairs
from tests.pki.fixtures import INPUTS, KEYS, issue_tree, tree_files


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


def test_unknown_name_is_refused(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certs", "renew", "ca", *folders(node)]) == 3
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
