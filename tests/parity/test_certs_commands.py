"""`certs check-expiration`, `certs renew`, `certs generate-csr` and `kubeconfig user` beside kubeadm's."""

import base64
import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from garboard.engine import Issue
from garboard.host import HostFolder
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.node.renewal import observe_node
from garboard.phases.node.credentials import RenewalSettings, plan_renewal
from garboard.pki import KUBECONFIGS
from garboard.pki.chain import read_certificates
from garboard.pki.credentials import ClusterEntry, issue_kubeconfig, token_kubeconfig
from garboard.pki.keys import read_private_key
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.renewal import decide_renewals, renewables
from garboard.pki.signing_requests import certificate_requests, unsigned_kubeconfig_files
from garboard.pki.spec import BACKDATE, CERTIFICATES, certificate, client_request
from tests.support.parity.cases import CASES, Case
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.replay import Replay, assert_same_certificate, embedded, load, with_certificate_of

pytestmark = pytest.mark.real

SOME = [case for case in CASES if case.name in ("ECDSA-P256", "validity periods", "extra names")]
by_some = pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)


def garboard(*arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("garboard")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(kubeadm: Kubeadm, etc: Path, case: Case) -> tuple[Path, str]:
    config = case.write(kubeadm, etc)
    for phase in ("certs", "kubeconfig"):
        kubeadm.must_run(etc, "init", "phase", phase, "all", "--config", config)
    return etc / "kubernetes", config


def without_residuals(text: str) -> Any:
    document = json.loads(text)
    for entry in document["certificates"] + document["certificateAuthorities"]:
        del entry["residualTime"]
    return document


@pytest.mark.parametrize("missing", [(), ("scheduler.conf", "pki/apiserver.crt"), ("pki/etcd/ca.key",)], ids=str)
def test_expiration_is_told_alike(kubeadm: Kubeadm, tmp_path: Path, missing: tuple[str, ...]) -> None:
    folder, _ = made(kubeadm, tmp_path, SOME[0])
    for name in missing:
        (folder / name).unlink()
    ours = ("certs", "check-expiration", "--cert-dir", str(folder / "pki"), "--kubeconfig-dir", str(folder))
    # Without a kubeconfig it does not look for a cluster.
    theirs = ("certs", "check-expiration", "--kubeconfig", "/etc/none")
    assert garboard(*ours) == kubeadm.must_run(tmp_path, *theirs)
    texts = garboard(*ours, "-o", "json"), kubeadm.must_run(tmp_path, *theirs, "-o", "json")
    assert without_residuals(texts[0]) == without_residuals(texts[1])
    assert [line.split(":")[0] for line in texts[0].splitlines()] == [
        line.split(":")[0] for line in texts[1].splitlines()
    ]


@by_some
def test_renewed_certificates_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, case: Case) -> None:
    folder, config = made(kubeadm, tmp_path, case)
    before = tmp_path / "before"
    shutil.copytree(folder, before)
    kubeadm.must_run(tmp_path, "certs", "renew", "all", "--config", config)
    validity, algorithm = case.inputs.certificate_validity, case.inputs.key_algorithm
    settings = RenewalSettings(
        folder=str(before / "pki"), kubeconfig_dir=str(before), validity=validity, key_algorithm=algorithm
    )
    observed = observe_node(settings.folder, settings.kubeconfig_dir)
    for target in renewables():
        name = target.name
        theirs = embedded(folder / name) if target.is_kubeconfig else load(folder / "pki", certificate(name).base_name)
        started_at = theirs.certificate.not_valid_before_utc + BACKDATE
        (step,) = plan_renewal(decide_renewals([target], observed, validity, started_at), settings).steps
        assert isinstance(step.action, Issue)
        keys = Replay(theirs.key, theirs.certificate.serial_number)
        files = PkiIssuer(HostFolder, keys, started_at).issue(step.action.request)
        data = files[step.action.files[-1].path]
        if target.is_kubeconfig:
            (ours,) = read_certificates(read_kubeconfig(data, name).client_certificate)
            assert with_certificate_of(theirs.certificate, data, ours) == (folder / name).read_bytes()
        else:
            (ours,) = read_certificates(data)
        assert_same_certificate(theirs.certificate, ours, algorithm)


def test_renew_prints_the_same(kubeadm: Kubeadm, tmp_path: Path) -> None:
    folder, config = made(kubeadm, tmp_path, SOME[0])
    (folder / "pki/etcd/ca.key").unlink()
    (folder / "super-admin.conf").unlink()
    copied = tmp_path / "root/etc/kubernetes"
    shutil.copytree(folder, copied)
    theirs = kubeadm.must_run(tmp_path, "certs", "renew", "all", "--config", config)
    # Below another root, so that the journal of the run is there too.
    assert garboard("certs", "renew", "all", "--rootfs", str(tmp_path / "root")) == theirs
    modes = [{str(each.relative_to(top)): each.stat().st_mode for each in top.rglob("*")} for top in (folder, copied)]
    assert modes[0] == modes[1]


@by_some
def test_signing_requests_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, case: Case) -> None:
    config = case.write(kubeadm, tmp_path)
    kubeadm.must_run(tmp_path, "certs", "generate-csr", "--config", config)
    folder = tmp_path / "kubernetes"
    requests = {
        file.name: file for spec in CERTIFICATES for file in _requests_like(folder / "pki", spec.base_name, case)
    }
    found = {str(each.relative_to(folder / "pki")): each for each in (folder / "pki").rglob("*") if each.is_file()}
    assert found.keys() == requests.keys()
    for name, path in found.items():
        assert path.stat().st_mode & 0o777 == requests[name].mode
        assert _content(path.read_bytes()) == _content(requests[name].data)
    for spec in KUBECONFIGS:
        user = read_kubeconfig((folder / spec.file_name).read_bytes(), spec.file_name).user
        assert user is not None
        key = read_private_key(base64.b64decode(str(user["client-key-data"])))
        document, csr = unsigned_kubeconfig_files(spec, case.inputs, Replay(key, 1), _ANY_TIME)
        assert (folder / spec.file_name).read_bytes() == document.data
        assert _content((folder / csr.name).read_bytes()) == _content(csr.data)
        assert (folder / csr.name).stat().st_mode & 0o777 == csr.mode


def _requests_like(folder: Path, base_name: str, case: Case) -> list[Any]:
    path = folder / f"{base_name}.key"
    if not path.exists():
        return []
    files = certificate_requests(case.inputs, Replay(read_private_key(path.read_bytes()), 1), _ANY_TIME)
    return [file for file in files if file.name.rpartition(".")[0] == base_name]


def _content(data: bytes) -> bytes:
    """Return what a request says without its signature, and any other file as it is."""
    if b"REQUEST" not in data:
        return data
    csr = x509.load_pem_x509_csr(data)
    assert csr.is_signature_valid
    return csr.tbs_certrequest_bytes


_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("arguments", [("--org", "b,a"), ("--org=x", "--validity-period=90m"), ("--token", "s3cret")])
def test_kubeconfig_for_a_user_is_kubeadms(kubeadm: Kubeadm, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    case = next(each for each in CASES if each.name == "IPv6")
    config = case.write(kubeadm, tmp_path)
    kubeadm.must_run(tmp_path, "init", "phase", "certs", "ca", "--config", config)
    printed = kubeadm.must_run(tmp_path, "kubeconfig", "user", "--client-name=al_ice", "--config", config, *arguments)
    ca = load(tmp_path / "kubernetes/pki", "ca")
    cluster = ClusterEntry(case.inputs.cluster_name, case.inputs.control_plane_url)
    if "--token" in arguments:
        assert token_kubeconfig("al_ice", "s3cret", cluster, ca.certificate).to_bytes().decode() + "\n" == printed
        return
    (tmp_path / "user.conf").write_text(printed)
    theirs = embedded(tmp_path / "user.conf")
    groups = ("b", "a") if "b,a" in arguments else ("x",)
    request = client_request("al_ice", groups, not_after=theirs.certificate.not_valid_after_utc)
    keys = Replay(theirs.key, theirs.certificate.serial_number)
    ours = issue_kubeconfig(request, cluster, ca, case.inputs.key_algorithm, keys).to_bytes()
    (client,) = read_certificates(read_kubeconfig(ours, "ours").client_certificate)
    assert_same_certificate(theirs.certificate, client, case.inputs.key_algorithm)
    assert with_certificate_of(theirs.certificate, ours, client).decode() + "\n" == printed
    lasts = theirs.certificate.not_valid_after_utc - ca.certificate.not_valid_before_utc
    assert lasts - timedelta(minutes=95 if groups == ("x",) else 8760 * 60 + 5) < timedelta(seconds=60)
