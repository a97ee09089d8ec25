"""Phases that are started at the same time, as processes: one after the other carries out what is left to do."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: node-1, criSocket: unix:///run/none.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
"""
GARBOARD = [sys.executable, "-c", "from garboard.cli.main import main; main()"]
PHASE = ["init", "phase", "certs", "all", "--config", "/kubeadm.yaml", "--rootfs"]
PAIRS = 10
AT_ONCE = 3
NOBODY = 65534
# Python itself may be in a folder that only root can read.
AS_NOBODY = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
]  # fmt: skip
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has the node lock")


def issued_by(errors: list[str]) -> list[str]:
    return [name for text in errors for name in re.findall(r"issue (?:certificate|key) (\S+)", text)]


def phases_at_once(root: Path) -> list[str]:
    """Start the phases together below a root, and return what they reported; all of them succeed."""
    started = [
        subprocess.Popen([*GARBOARD, *PHASE, str(root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(AT_ONCE)
    ]
    errors = [each.communicate(timeout=120)[1] for each in started]
    assert [each.returncode for each in started] == [0] * AT_ONCE, errors
    return errors


def check_whole(pki: Path) -> None:
    """Nothing is missing or left over, and everything belongs together."""
    names = sorted(str(path.relative_to(pki)) for path in pki.rglob("*") if path.is_file())
    assert len(names) == 2 * PAIRS + 2
    assert not [name for name in names if Path(name).name.startswith(".")]
    check_pairs(pki)


def check_pairs(pki: Path) -> None:
    """Every certificate belongs to its key and to the one CA that is there."""
    for path in pki.rglob("*.crt"):
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        key = load_pem_private_key(path.with_suffix(".key").read_bytes(), None)
        form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        assert certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)
        folder = "etcd/" if "etcd" in path.relative_to(pki).as_posix() else ""
        authority = "front-proxy-ca" if path.name.startswith("front-proxy") else f"{folder}ca"
        ca = x509.load_pem_x509_certificate((pki / f"{authority}.crt").read_bytes())
        certificate.verify_directly_issued_by(ca)


def rounds(folder: Path, count: int) -> None:
    for number in range(count):
        root = folder / str(number)
        root.mkdir()
        (root / "kubeadm.yaml").write_text(CONFIG)
        issued = issued_by(phases_at_once(root))
        assert sorted(issued) == sorted(set(issued)), "something was issued twice"
        assert len(issued) == PAIRS + 1
        check_whole(root / "etc/kubernetes/pki")
        assert not list(root.glob("var/lib/garboard/runs/*"))


@pytest.mark.timeout(600)
def test_phases_at_once_issue_everything_once(tmp_path: Path) -> None:
    rounds(tmp_path, 3)


@pytest.mark.verify
@pytest.mark.timeout(3600)
def test_phases_at_once_issue_everything_once_a_hundred_times(tmp_path: Path) -> None:
    rounds(tmp_path, 100)


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A folder of a user who has no rights."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


def phases_of_nobody(folder: Path, *, has_lock: bool) -> "list[tuple[int, str]]":
    """Start the phases together without root, and return their status and what they reported."""
    (folder / "kubeadm.yaml").write_text(f"{CONFIG}certificatesDir: {folder}/pki\n")
    command = [*GARBOARD, *PHASE[:4], "--config", f"{folder}/kubeadm.yaml"]
    started = []
    for number in range(AT_ONCE):
        runtime = folder / ("runtime" if has_lock else f"runtime-{number}")
        runtime.mkdir(exist_ok=True)
        os.chown(runtime, NOBODY, NOBODY)
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "HOME": str(folder)}
        started.append(
            subprocess.Popen(
                [*AS_NOBODY, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    errors = [each.communicate(timeout=120)[1] for each in started]
    return [(process.returncode, error) for process, error in zip(started, errors, strict=True)]


@pytest.mark.timeout(300)
def test_phases_at_once_without_root_issue_everything_once(nobodys: Path) -> None:
    ended = phases_of_nobody(nobodys, has_lock=True)
    assert [status for status, _ in ended] == [0] * AT_ONCE, ended
    issued = issued_by([error for _, error in ended])
    assert sorted(issued) == sorted(set(issued)), "something was issued twice"
    check_whole(nobodys / "pki")


@pytest.mark.timeout(300)
def test_phases_at_once_that_know_nothing_of_each_other_replace_nothing(nobodys: Path) -> None:
    ended = phases_of_nobody(nobodys, has_lock=False)
    # One that looks between the two files of another one's pair refuses the half.
    refusals = ("error[stale-plan]", "error[unusable-certificates]")
    for status, error in ended:
        assert status == 0 or any(each in error for each in refusals), error
    check_pairs(nobodys / "pki")
    assert phases_of_nobody(nobodys, has_lock=True)[0][0] == 0
    check_whole(nobodys / "pki")
