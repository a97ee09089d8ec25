"""Whole phases: `kubeadm init phase …` and ours on two machines that are alike."""

from pathlib import Path

import pytest

from tests.support.parity.comparing import differences, owners_and_modes
from tests.support.parity.credentials import without_chance
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import (
    CONFIG_PATH,
    CONFIGURATIONS,
    FILE_FOLDERS,
    FILE_PHASES,
    Configuration,
    Ran,
    run_kubeadm,
    with_quick_keys,
)
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
NOT_COMPARED = (
    "preflight", "wait-control-plane", "upload-config", "upload-certs", "mark-control-plane", "bootstrap-token",
    "kubelet-finalize", "addon", "show-join-command",
)  # fmt: skip
EVERY = [with_quick_keys(path) for path in sorted(CONFIGURATIONS.glob("*.yaml"))]
# One by one as sub-commands here; the others in a single run of init, which costs a fifth of the time.
BY_SUB_COMMAND = ("defaults", "patches-strategic", "custom-certificates-dir", "rootless")


def run_ours(configuration: Configuration, machine: Machine, *, one_by_one: bool) -> Ran:
    lines = (
        [("init", "phase", *phase.split()) for phase in FILE_PHASES]
        if one_by_one
        else [("init", "--skip-phases", ",".join(NOT_COMPARED))]
    )
    failures = {}
    for line in lines:
        done = machine.run_garboard(*line, "--config", CONFIG_PATH, environment=configuration.environment)
        if done.returncode:
            failures[" ".join(line[2:])] = done.stderr
    return Ran(machine, failures, machine.files(*FILE_FOLDERS))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("configuration", EVERY, ids=lambda each: each.name)
def test_phases_leave_what_kubeadms_leave(kubeadm: Kubeadm, tmp_path: Path, configuration: Configuration) -> None:
    machine = configuration.machine(tmp_path / "theirs", kubeadm.version)
    theirs = run_kubeadm(kubeadm, machine, FILE_PHASES, configuration.environment, FILE_FOLDERS)
    one_by_one = bool(theirs.failures) or configuration.name in BY_SUB_COMMAND

    ours = run_ours(configuration, configuration.machine(tmp_path / "ours", kubeadm.version), one_by_one=one_by_one)

    assert sorted(ours.failures) == sorted(theirs.failures), (ours.failures, theirs.failures)
    assert not any("Traceback" in said for said in ours.failures.values())
    if theirs.failures:
        return  # kubeadm stops between files, garboard before the first one
    assert differences(without_chance(ours.files), without_chance(theirs.files)) == ""
    assert owners_and_modes(ours.machine) == owners_and_modes(theirs.machine)


def test_phases_go_on_from_what_kubeadm_left(kubeadm: Kubeadm, tmp_path: Path) -> None:
    """Nothing is left to do, because what is there is what we would have written."""
    configuration = Configuration(CONFIGURATIONS / "defaults.yaml")
    machine = configuration.machine(tmp_path, kubeadm.version)
    before = run_kubeadm(kubeadm, machine, FILE_PHASES, folders=FILE_FOLDERS)
    assert not before.failures
    skip = ",".join(NOT_COMPARED)
    planned = machine.run_garboard("init", "--dry-run", "--config", CONFIG_PATH, "--skip-phases", skip)
    assert planned.stdout.endswith("plan: nothing to do\n"), planned.stdout + planned.stderr
    assert run_ours(configuration, machine, one_by_one=False).files == before.files


def test_external_authority_is_used_as_kubeadm_uses_it(kubeadm: Kubeadm, tmp_path: Path) -> None:
    configuration = Configuration(CONFIGURATIONS / "ecdsa-and-validity.yaml")
    runs = []
    for name in ("theirs", "ours"):
        machine = configuration.machine(tmp_path / name, kubeadm.version)
        assert not run_kubeadm(kubeadm, machine, FILE_PHASES[:2]).failures
        machine.remove("/etc/kubernetes/pki/ca.key")
        runs.append(machine)
    theirs = run_kubeadm(kubeadm, runs[0], FILE_PHASES, folders=FILE_FOLDERS)
    ours = run_ours(configuration, runs[1], one_by_one=True)
    assert ours.failures == theirs.failures == {}
    assert differences(without_chance(ours.files), without_chance(theirs.files)) == ""
