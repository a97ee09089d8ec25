"""kubeadm's certificates and ours, byte for byte.

Key, serial number and times of each certificate that kubeadm made are played back to our issuing code. Every other
field is then ours, and RSA signatures are deterministic: the files must be equal. For ECDSA, where a signature never
comes twice, all that is signed must be equal.
"""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from garboard.pki import CERTIFICATES, KeyAlgorithm, PkiInputs, certificate
from garboard.pki.decide import Generate, Refuse, decide_service_account, warnings_of
from garboard.pki.files import NewFile
from garboard.pki.keys import read_private_key
from garboard.pki.store import observe_pairs, observe_service_account, pair_files, service_account_files
from tests.support.parity.cases import BASE, Case, by_name
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.replay import assert_same_certificate, assert_same_files, files_below, load, reissue
from tests.support.pki.fixtures import KEYS, MemoryFolder, decide_for_init, issue_tree, tree_files

pytestmark = pytest.mark.real


@pytest.mark.sampled(3)
@by_name
def test_certificates_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, case: Case) -> None:
    config = case.write(kubeadm, tmp_path)
    kubeadm.must_run(tmp_path, "init", "phase", "certs", "all", "--config", config)
    folder = tmp_path / "kubernetes/pki"
    files: list[NewFile] = []
    for spec in CERTIFICATES:
        if case.inputs.has_external_etcd and spec.is_etcd:
            continue
        theirs = load(folder, spec.base_name)
        signer = load(folder, certificate(spec.ca).base_name) if spec.ca else None
        ours = reissue(theirs, spec.name, case.inputs, signer)
        assert_same_certificate(theirs.certificate, ours.certificate, case.inputs.key_algorithm)
        files += pair_files(spec.base_name, ours)
    files += service_account_files(read_private_key((folder / "sa.key").read_bytes()))
    assert_same_files(folder, files)


def stored(tmp_path: Path, now: datetime, inputs: PkiInputs) -> Path:
    """Write a whole tree that we issued at `now` where kubeadm looks for it."""
    folder = tmp_path / "kubernetes/pki"
    (folder / "etcd").mkdir(parents=True)
    for file in tree_files(issue_tree(inputs, now)):
        (folder / file.name).write_bytes(file.data)
    for file in service_account_files(KEYS.private_key(inputs.key_algorithm)):
        (folder / file.name).write_bytes(file.data)
    return folder


def remove(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def copy(source: str, target: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / target).write_bytes((folder / source).read_bytes())

    return change


def spoil(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(b"not PEM\n")

    return change


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


YEAR = timedelta(days=366)
FOUND = [
    pytest.param(timedelta(), remove(), id="all there"),
    pytest.param(timedelta(), remove("apiserver.crt", "apiserver.key"), id="a leaf is missing"),
    pytest.param(timedelta(), remove("apiserver.key"), id="the key of a leaf is missing"),
    pytest.param(timedelta(), remove("apiserver.crt"), id="the certificate of a leaf is missing"),
    pytest.param(timedelta(), remove("ca.crt"), id="the CA certificate is missing"),
    pytest.param(timedelta(), remove("ca.crt", "ca.key"), id="the CA is missing, its leafs are not"),
    pytest.param(timedelta(), remove("etcd/ca.key"), id="etcd CA without key"),
    pytest.param(timedelta(), remove("etcd/ca.key", "etcd/peer.crt", "etcd/peer.key"), id="etcd CA cannot sign"),
    pytest.param(timedelta(), spoil("apiserver.crt"), id="unreadable leaf"),
    pytest.param(timedelta(), spoil("apiserver.key"), id="unreadable key of a leaf"),
    pytest.param(timedelta(), spoil("etcd/ca.crt"), id="unreadable CA"),
    pytest.param(timedelta(), spoil("etcd/ca.key"), id="unreadable key of a CA, leafs there"),
    pytest.param(timedelta(), copy("etcd/server.crt", "apiserver.crt"), id="leaf of another CA"),
    pytest.param(timedelta(), copy("apiserver.key", "etcd/server.key"), id="key of another leaf"),
    pytest.param(timedelta(), both(remove("apiserver.crt", "apiserver.key"), copy("etcd/ca.key", "ca.key")),
                 id="key of another CA"),
    pytest.param(
        timedelta(),
        both(remove("front-proxy-client.crt", "front-proxy-client.key"), copy("apiserver.crt", "front-proxy-ca.crt")),
        id="a CA that is none",
    ),
    pytest.param(timedelta(), spoil("sa.key"), id="unreadable service account key"),
    pytest.param(timedelta(), remove("sa.pub"), id="service account without public key"),
    pytest.param(timedelta(), remove("sa.key"), id="service account without private key"),
    pytest.param(YEAR, remove(), id="expired leafs"),
    pytest.param(11 * YEAR, remove(*(f"{spec.base_name}.{end}" for spec in CERTIFICATES if spec.ca
                                     for end in ("crt", "key"))), id="expired CAs"),
    pytest.param(-YEAR, remove(), id="not yet valid"),
]  # fmt: skip


@pytest.mark.parametrize(("age", "change"), FOUND)
def test_same_files_are_kept_made_and_refused(
    kubeadm: Kubeadm, tmp_path: Path, age: timedelta, change: Callable[[Path], None]
) -> None:
    inputs = replace(BASE, key_algorithm=KeyAlgorithm.ECDSA_P256)
    case = Case("", inputs, cluster={"encryptionAlgorithm": "ECDSA-P256"})
    now = datetime.now().astimezone()
    folder = stored(tmp_path, now - age, inputs)
    change(folder)
    before = files_below(folder)
    memory = MemoryFolder({name: (folder / name).read_bytes() for name in before})
    decisions = decide_for_init(observe_pairs(memory), inputs, now)
    service_account = decide_service_account(observe_service_account(memory))

    done = kubeadm.run(tmp_path, "init", "phase", "certs", "all", "--config", case.write(kubeadm, tmp_path))

    refused = [each for each in (*decisions, service_account) if isinstance(each, Refuse)]
    assert (done.returncode != 0) == bool(refused), (done.stderr, refused)
    if not refused:
        issued = {certificate(each.name).base_name for each in decisions if isinstance(each, Generate)}
        issued |= {"sa"} if isinstance(service_account, Generate) else set()
        ends = {"sa": ("key", "pub")}
        new = {f"{name}.{end}" for name in issued for end in ends.get(name, ("crt", "key"))}
        assert files_below(folder) - before == new - before
        theirs = [each.partition("for certificate ")[2] for each in done.stderr.splitlines() if "bounds" in each]
        ours = [each.partition("for certificate ")[2] for each in warnings_of(decisions) if "bounds" in each]
        # It looks for an external CA first, and then warns about some authorities under a second name.
        assert sorted(each for each in theirs if not each.startswith(("CA:", "front-proxy CA:"))) == sorted(ours)


def openssl_ca(folder: Path, *arguments: str) -> None:
    files = ("-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.crt"))
    command = ["openssl", "req", "-x509", "-utf8", "-nodes", "-days", "100", *files, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


EXISTING = [
    pytest.param(("-newkey", "rsa:2048", "-subj", "/C=DE/O=Größe/OU=x/CN=corp ca"), id="RSA with a long subject"),
    pytest.param(
        ("-newkey", "rsa:2048", "-subj", "/CN=corp", "-addext", "subjectKeyIdentifier=none"), id="no key identifier"
    ),
    pytest.param(("-newkey", "rsa:2048", "-subj", "/O=b+O=a/CN=corp@x", "-multivalue-rdn"), id="multi-valued subject"),
    pytest.param(("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=corp"), id="P-256"),
    pytest.param(("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-subj", "/CN=corp"), id="P-384"),
    pytest.param(("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521", "-subj", "/CN=corp"), id="P-521"),
]


@pytest.mark.parametrize("arguments", EXISTING)
def test_existing_authority_signs_as_with_kubeadm(kubeadm: Kubeadm, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = tmp_path / "kubernetes/pki"
    folder.mkdir(parents=True)
    openssl_ca(folder, *arguments)
    before = [(folder / name).read_bytes() for name in ("ca.crt", "ca.key")]
    case = Case("", BASE)
    kubeadm.must_run(tmp_path, "init", "phase", "certs", "apiserver", "--config", case.write(kubeadm, tmp_path))
    signer = load(folder, "ca")
    theirs = load(folder, "apiserver")
    ours = reissue(theirs, "apiserver", BASE, signer)
    signed_with = KeyAlgorithm.RSA_2048 if isinstance(signer.key, rsa.RSAPrivateKey) else KeyAlgorithm.ECDSA_P256
    assert_same_certificate(theirs.certificate, ours.certificate, signed_with)
    assert [(folder / name).read_bytes() for name in ("ca.crt", "ca.key")] == before
