"""Whole phases: `kubeadm init phase …` and ours on two machines that are alike."""

import stat
import sys
from pathlib import Path

import pytest

from tests.parity.comparing import differences
from tests.parity.credentials import without_chance
from tests.parity.kubeadm import Kubeadm
from tests.parity.machine import Machine
from tests.parity.node_run import CONFIG_PATH, Configuration, Ran, all_configurations, run_kubeadm

pytestmark = pytest.mark.real
PHASES = ("certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start")
NOT_COMPARED = (
    "preflight", "wait-control-plane", "upload-config", "upload-certs", "mark-control-plane", "bootstrap-token",
    "kubelet-finalize", "addon", "show-join-command",
)  # fmt: skip
FOLDERS = ("/etc", "/var/lib")
GARBOARD = Path(sys.executable).with_name("garboard")
# One by one as sub-commands here; the others in a single run of init, which costs a fifth of the time.
BY_SUB_COMMAND = ("defaults", "patches-strategic", "custom-certificates-dir")


def run_ours(configuration: Configuration, version: str, root: Path, *, one_by_one: bool) -> Ran:
    machine = configuration.machine(root, version)
    if one_by_one:
        return run_kubeadm(Kubeadm(GARBOARD, version), machine, PHASES, configuration.environment, FOLDERS)
    skip = ",".join(NOT_COMPARED)
    arguments = ("init", "--config", CONFIG_PATH, "--skip-phases", skip)
    done = machine.run(GARBOARD, *arguments, environment=configuration.environment)
    failures = {"init": done.stderr} if done.returncode else {}
    return Ran(machine, failures, machine.files(*FOLDERS))


@pytest.mark.parametrize("configuration", all_configurations(), ids=lambda each: each.name)
def test_phases_leave_what_kubeadms_leave(kubeadm: Kubeadm, tmp_path: Path, configuration: Configuration) -> None:
    machine = configuration.machine(tmp_path / "theirs", kubeadm.version)
    theirs = run_kubeadm(kubeadm, machine, PHASES, configuration.environment, FOLDERS)
    one_by_one = bool(theirs.failures) or configuration.name in BY_SUB_COMMAND

    ours = run_ours(configuration, kubeadm.version, tmp_path / "ours", one_by_one=one_by_one)

    assert sorted(ours.failures) == sorted(theirs.failures), (ours.failures, theirs.failures)
    assert not any("Traceback" in said for said in ours.failures.values())
    if theirs.failures:
        return  # kubeadm stops between files, garboard before the first one
    assert differences(without_chance(ours.files), without_chance(theirs.files)) == ""
    assert folder_modes(ours.machine) == folder_modes(theirs.machine)


def folder_modes(machine: Machine) -> dict[str, int]:
    """Return the mode of every folder that phases make."""
    return {
        str(each.relative_to(machine.root)): stat.S_IMODE(each.stat().st_mode)
        for top in ("etc", "var")
        for each in (machine.root / top).rglob("*")
        if each.is_dir()
    }
