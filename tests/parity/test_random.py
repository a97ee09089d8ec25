"""Random configurations given to kubeadm and to garboard: the same are refused, and the same comes of the others.

`make verify` compares others every day; `--seed` chooses which.
"""

import random
import re
from pathlib import Path

import pytest

from tests.support.parity.batch import Outcome, run_garboard_batch, run_kubeadm_batch
from tests.support.parity.comparing import differences
from tests.support.parity.credentials import without_chance
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.random_documents import Author, RandomCase
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
# `make test` compares the same few each time, `make verify` others every day.
FEW = range(1, 9)
MANY = 40
FILE = ("--config", "/kubeadm.yaml")
PHASES = [("init", "phase", *phase.split(), *FILE) for phase in
          ("certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start")]  # fmt: skip
VALIDATE, MIGRATE = ("config", "validate", *FILE), ("config", "migrate", "--old-config", "/kubeadm.yaml")
_TOKEN = re.compile(r"token: [a-z0-9]{6}\.[a-z0-9]{16}")
_TIMEOUT = re.compile("controlPlaneComponentHealthCheck: .*")  # which kubeadm 1.36 forgets when it migrates


def authored(version: str, carelessness: float, seeds: range, *, joins: bool = False) -> list[RandomCase]:
    cases = []
    for seed in seeds:
        author = Author(random.Random(f"{seed} {carelessness}"), carelessness)
        cases.append(author.join(seed) if joins and seed % 4 == 0 else author.init(version, seed))
    return cases


def compare_statuses(case: RandomCase, theirs: Outcome, ours: Outcome) -> bool:
    """Return whether everything succeeded for both; that it did for one alone is a failure."""
    for their, our in zip(theirs.said, ours.said, strict=True):
        told = f"seed {case.seed}\n{case.text}\ntheirs: {their.err}\nours: {our.err}"
        assert "Traceback" not in our.err, told
        assert (our.is_success or is_only_about_components(our.err)) == their.is_success, told
    return all(each.is_success for each in theirs.said)


def is_only_about_components(err: str) -> bool:
    """Tell whether `config validate` refuses nothing but what kubeadm hands on unread: each line has a code."""
    problems = [line for line in err.splitlines() if line.startswith("  ")]
    return bool(problems) and all(re.match(r"  \[[a-z-]+\] ", line) for line in problems)


def test_random_configurations_leave_the_same_files(kubeadm: Kubeadm, tmp_path: Path) -> None:
    compare_files(kubeadm, tmp_path, FEW)


@pytest.mark.verify
def test_other_configurations_every_day_leave_the_same_files(kubeadm: Kubeadm, tmp_path: Path, seed: int) -> None:
    compare_files(kubeadm, tmp_path, range(seed * MANY, (seed + 1) * MANY))


def compare_files(kubeadm: Kubeadm, tmp_path: Path, seeds: range) -> None:
    cases = authored(kubeadm.version, 0.002, seeds)
    theirs = run_kubeadm_batch(Machine.make(tmp_path / "theirs"), kubeadm.program, cases, PHASES)
    ours = run_garboard_batch(Machine.make(tmp_path / "ours"), cases, PHASES)
    compared = 0
    for case, their, our in zip(cases, theirs, ours, strict=True):
        if compare_statuses(case, their, our):
            compared += 1
            differing = differences(without_chance(our.files), without_chance(their.files))
            assert differing == "", f"seed {case.seed}\n{case.text}\n{case.patches}"
    assert compared >= len(seeds) / 2, "too few configurations were right to tell anything"


def test_random_configurations_are_refused_or_migrated_alike(kubeadm: Kubeadm, tmp_path: Path) -> None:
    compare_migrations(kubeadm, tmp_path, FEW)


@pytest.mark.verify
def test_other_configurations_every_day_are_refused_or_migrated_alike(
    kubeadm: Kubeadm, tmp_path: Path, seed: int
) -> None:
    compare_migrations(kubeadm, tmp_path, range(seed * MANY, (seed + 1) * MANY))


def compare_migrations(kubeadm: Kubeadm, tmp_path: Path, seeds: range) -> None:
    cases = authored(kubeadm.version, 0.05, seeds, joins=True)
    given_version = ("--kubernetes-version", kubeadm.version)
    theirs = run_kubeadm_batch(Machine.make(tmp_path / "theirs"), kubeadm.program, cases, [VALIDATE, MIGRATE])
    lines = [(*line, *given_version) for line in (VALIDATE, MIGRATE)]
    ours = run_garboard_batch(Machine.make(tmp_path / "ours"), cases, lines)
    for case, their, our in zip(cases, theirs, ours, strict=True):
        if compare_statuses(case, their, our):
            assert settled(our.said[1].out) == settled(their.said[1].out), f"seed {case.seed}\n{case.text}"
    refused = sum(not each.said[0].is_success for each in theirs)
    assert len(seeds) / 10 <= refused <= len(seeds) * 9 / 10


def settled(text: str) -> str:
    return _TIMEOUT.sub("", _TOKEN.sub("", text))
