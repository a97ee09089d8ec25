"""kubeadm's kubeconfigs and ours, byte for byte, and the same files kept, refused and required."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.cli.certs.options import now
from garboard.documents import read_yaml, write_yaml
from garboard.host import HostFolder
from garboard.pki import KUBECONFIGS, ControlPlaneEndpoint, KeyAlgorithm, KubeconfigSpec, PkiInputs
from garboard.pki.chain import read_certificates
from garboard.pki.credentials import decide_kubeconfig, decide_with_external_ca, kubeconfig_file, observe_kubeconfig
from garboard.pki.decide import Decision, Keep, Refuse, external_authorities
from garboard.pki.files import IssuedPair
from garboard.pki.issue import certificate_pem
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.store import observe_pairs
from tests.support.parity.cases import BASE, Case, by_name
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.replay import Replay, assert_same_certificate, embedded, load, with_certificate_of
from tests.support.pki.fixtures import NOW, issue_tree

pytestmark = pytest.mark.real


def reissue_kubeconfig(spec: KubeconfigSpec, path: Path, inputs: PkiInputs, ca: IssuedPair) -> bytes:
    """Return our file for kubeadm's key, serial and dates; an ECDSA signature, which never comes twice, is theirs."""
    theirs = embedded(path)
    started_at = theirs.certificate.not_valid_after_utc - inputs.certificate_validity
    keys = Replay(theirs.key, theirs.certificate.serial_number)
    data = kubeconfig_file(spec, inputs, ca, keys, started_at).data
    (ours,) = read_certificates(read_kubeconfig(data, str(path)).client_certificate)
    assert_same_certificate(theirs.certificate, ours, inputs.key_algorithm)
    return with_certificate_of(theirs.certificate, data, ours)


@pytest.mark.sampled(3)
@by_name
def test_kubeconfigs_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, case: Case) -> None:
    config = case.write(kubeadm, tmp_path)
    for phase in ("certs/ca", "kubeconfig/all"):
        kubeadm.must_run(tmp_path, "init", "phase", *phase.split("/"), "--config", config)
    folder = tmp_path / "kubernetes"
    ca = load(folder / "pki", "ca")
    assert {each.name for each in folder.iterdir()} == {"pki", *(spec.file_name for spec in KUBECONFIGS)}
    for spec in KUBECONFIGS:
        path = folder / spec.file_name
        assert path.read_bytes() == reissue_kubeconfig(spec, path, case.inputs, ca)
        assert path.stat().st_mode & 0o777 == 0o600


SHARED = Case(
    "shared",
    replace(
        BASE, control_plane_endpoint=ControlPlaneEndpoint("lb.example", "443"), key_algorithm=KeyAlgorithm.ECDSA_P256
    ),
    cluster={"controlPlaneEndpoint": "lb.example:443", "encryptionAlgorithm": "ECDSA-P256"},
)
OTHER_CA = certificate_pem(issue_tree(BASE, NOW)["ca"].certificate)

Change = Callable[[Path], None]


def edit(name: str, *swaps: tuple[str, str]) -> Change:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        for old, new in swaps:
            assert old in text
            text = text.replace(old, new)
        (folder / name).write_text(text)

    return change


def set_ca(name: str, make: Callable[[bytes], bytes]) -> Change:
    """Put other CA data into a kubeconfig, made from what it has."""

    def change(folder: Path) -> None:
        document = read_yaml((folder / name).read_bytes(), source=name)
        cluster = document["clusters"][0]["cluster"]  # type: ignore[index,call-overload]
        data = make(base64.b64decode(cluster["certificate-authority-data"]))  # type: ignore[index,call-overload,arg-type]
        cluster["certificate-authority-data"] = base64.b64encode(data).decode()  # type: ignore[index,call-overload]
        (folder / name).write_text(write_yaml(document))

    return change


def link_ca(name: str, path: str) -> Change:
    def change(folder: Path) -> None:
        lines = (folder / name).read_text().splitlines(keepends=True)
        linked = [f"    certificate-authority: {path}\n" if "authority-data" in each else each for each in lines]
        (folder / name).write_text("".join(linked))

    return change


def unlink(*names: str) -> Change:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def both(*changes: Change) -> Change:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


CHANGES = [
    pytest.param(unlink(), id="all there"),
    pytest.param(unlink("admin.conf"), id="one missing"),
    pytest.param(edit("admin.conf", ("lb.example:443", "other.example")), id="another server"),
    pytest.param(edit("kubelet.conf", ("192.0.2.10:6443", "lb.example:443")), id="kubelet at the shared endpoint"),
    pytest.param(set_ca("admin.conf", lambda pem: OTHER_CA), id="another CA"),
    pytest.param(set_ca("admin.conf", lambda pem: OTHER_CA + pem), id="another CA first"),
    pytest.param(set_ca("admin.conf", lambda pem: pem + OTHER_CA), id="another CA second"),
    pytest.param(set_ca("admin.conf", lambda pem: b"\n " + pem + b"\n\n"), id="white space around the CA"),
    pytest.param(set_ca("admin.conf", lambda pem: b"?"), id="unreadable CA"),
    pytest.param(link_ca("admin.conf", "/etc/kubernetes/pki/ca.crt"), id="CA in a file"),
    pytest.param(link_ca("admin.conf", "/etc/nowhere"), id="CA in a file that is not there"),
    pytest.param(
        edit("admin.conf", ("current-context: kubernetes-admin@", "current-context: other@")), id="no context"
    ),
    pytest.param(edit("admin.conf", ("    cluster: kubernetes", "    cluster: other")), id="no cluster"),
    pytest.param(edit("admin.conf", ("  user:\n    client", "  user:\n    other")), id="no client certificate"),
    pytest.param(edit("admin.conf", ("clusters:", "clusters: [")), id="no YAML"),
    pytest.param(unlink("pki/ca.key"), id="external CA"),
    pytest.param(unlink("pki/ca.key", "super-admin.conf"), id="external CA, one missing"),
    pytest.param(both(unlink("pki/ca.key"), set_ca("kubelet.conf", lambda pem: OTHER_CA)), id="external CA, untrusted"),
    pytest.param(unlink("pki/ca.key", "pki/apiserver.crt"), id="external CA, no API server certificate"),
    pytest.param(unlink("pki/ca.key", "pki/front-proxy-ca.key"), id="two external CAs"),
    pytest.param(unlink("pki/front-proxy-ca.key", "pki/front-proxy-client.key"), id="incomplete front-proxy CA"),
]


def our_decisions(folder: Path, inputs: PkiInputs) -> tuple[Decision, ...]:
    """Decide as init does before and in its kubeconfig phases."""
    # A path in a kubeconfig is meant inside the namespace; here the same file has a longer name.
    pairs = observe_pairs(HostFolder(folder / "pki"))
    found = {spec.file_name: observe_kubeconfig(Etc(folder), spec.file_name) for spec in KUBECONFIGS}
    chain = pairs["ca"].chain
    assert isinstance(chain, tuple)
    external = external_authorities(pairs, now())
    problems = [Refuse(each.name, each.problem) for each in external if each.problem and each.name != "etcd-ca"]
    if any(each.name == "ca" for each in external):
        return (*problems, *decide_with_external_ca(found, inputs, chain))
    return (*problems, *(decide_kubeconfig(spec, found[spec.file_name], inputs, chain) for spec in KUBECONFIGS))


class Etc(HostFolder):
    """The folder that kubeadm sees as /etc/kubernetes."""

    def read(self, name: str) -> bytes | None:
        return super().read(name.removeprefix("/etc/kubernetes/"))


@pytest.mark.parametrize("change", CHANGES)
def test_same_files_are_kept_and_refused(kubeadm: Kubeadm, tmp_path: Path, change: Change) -> None:
    config = SHARED.write(kubeadm, tmp_path)
    for phase in ("certs", "kubeconfig"):
        kubeadm.must_run(tmp_path, "init", "phase", phase, "all", "--config", config)
    folder = tmp_path / "kubernetes"
    change(folder)
    decisions = our_decisions(folder, SHARED.inputs)

    done = kubeadm.run(tmp_path, "init", "phase", "kubeconfig", "all", "--config", config)

    refused = [each for each in decisions if isinstance(each, Refuse)]
    assert (done.returncode != 0) == bool(refused), (done.stderr, refused)
    warned = [each.name for each in decisions if isinstance(each, Keep) and each.warnings]
    if not refused:
        told = [each.split('"')[1].rpartition("/")[2] for each in done.stderr.splitlines() if "unexpected API" in each]
        assert sorted(told) == sorted(warned)
