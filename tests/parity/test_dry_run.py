"""`init --dry-run` of both: the same objects in the same order, nothing touched, and not slower."""

import hashlib
import json
import time
from pathlib import Path

import pytest

from garboard.documents import Json, write_yaml
from tests.support.parity.dry_run import FOLDER, dry_run_init
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import CONFIG_PATH, CONFIGURATIONS, Configuration
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
NAMES = ("tokens", "component-configurations", "external-etcd", "patches-json", "systemd-resolved", "ipv6")
# Keys are most of the time of kubeadm's dry run, and these are made faster.
CASES = [Configuration(CONFIGURATIONS / f"{name}.yaml", "encryptionAlgorithm: ECDSA-P256\n") for name in NAMES]
_OURS = ("garboard-", "garboard:")  # names
CA_PLACEHOLDER = "<base64 of certificate ca>"


def planned(machine: Machine, configuration: Configuration) -> list[dict[str, Json]]:
    done = machine.run_garboard(
        "init", "--dry-run", "--config", CONFIG_PATH, "-o", "json", environment=configuration.environment
    )
    assert done.returncode == 0, done.stderr
    return [step["action"] for step in json.loads(done.stdout)["steps"]]


@pytest.mark.parametrize("configuration", CASES, ids=lambda each: each.name)
def test_objects_are_those_of_kubeadm(kubeadm: Kubeadm, tmp_path: Path, configuration: Configuration) -> None:
    theirs = dry_run_init(kubeadm, configuration, tmp_path / "theirs")
    actions = planned(configuration.machine(tmp_path / "ours", kubeadm.version), configuration)
    # What is on record of patches and revisions is ours alone, and in objects of its own.
    ours = [each for each in actions if each["type"] == "put-object" and not str(each["name"]).startswith(_OURS)]
    assert [each["kind"] for each in ours] == [name.split()[0] for name in theirs.names()]
    for text, found, action in zip(theirs.texts, theirs.objects(), ours, strict=True):
        if action["kind"] == "Secret":
            assert "content" not in action, "tokens are shown by their digest"
        elif action["name"] == "cluster-info":
            assert write_yaml(_with_placeholder(found)) == write_yaml(action["content"])
        else:
            assert write_yaml(action["content"]) == text


def _with_placeholder(document: dict[str, Json]) -> Json:
    """Return cluster-info without the CA, which is made up anew by every dry run."""
    data = document["data"]
    assert isinstance(data, dict)
    lines = str(data["kubeconfig"]).splitlines(keepends=True)
    kept = [
        f"{line.partition(':')[0]}: {CA_PLACEHOLDER}\n" if "certificate-authority-data" in line else line
        for line in lines
    ]
    return {**document, "data": {"kubeconfig": "".join(kept)}}


def digest_of(root: Path) -> str:
    """Return a digest of every name, mode, time and content below a folder."""
    found = hashlib.sha256()
    for each in sorted(root.rglob("*")):
        state = each.lstat()
        found.update(f"{each} {state.st_mode} {state.st_mtime_ns}".encode())
        found.update(each.read_bytes() if each.is_file() and not each.is_symlink() else b"")
    return found.hexdigest()


@pytest.mark.parametrize("name", ["defaults", "rootless", "patches-strategic"])
def test_dry_run_touches_nothing(kubeadm: Kubeadm, tmp_path: Path, name: str) -> None:
    configuration = Configuration(CONFIGURATIONS / f"{name}.yaml")
    machine = configuration.machine(tmp_path, kubeadm.version)
    planned(machine, configuration)  # folders that the machine is mounted over are made by its first run
    before = digest_of(tmp_path)
    first, second = planned(machine, configuration), planned(machine, configuration)
    assert digest_of(tmp_path) == before
    is_fixed = [action for action in first if action.get("kind") != "Secret"]  # a token is drawn by each run
    assert is_fixed == [action for action in second if action.get("kind") != "Secret"]


@pytest.mark.alone
def test_dry_run_is_not_slower_than_kubeadms(kubeadm: Kubeadm, tmp_path: Path) -> None:
    """The quickest of several runs each, in turn, so that what else the machine does hits both."""
    configuration = Configuration(CONFIGURATIONS / "defaults.yaml")
    machine = configuration.machine(tmp_path, kubeadm.version)
    (tmp_path / FOLDER.lstrip("/")).mkdir()
    line = ("init", "--dry-run", "--skip-phases", "preflight", "--config", CONFIG_PATH)
    theirs, ours = [], []
    for _ in range(5):
        started = time.perf_counter()
        done = machine.run(kubeadm.program, *line, environment={"KUBEADM_INIT_DRYRUN_DIR": FOLDER})
        between = time.perf_counter()
        assert done.returncode == machine.run_garboard(*line).returncode == 0
        theirs.append(between - started)
        ours.append(time.perf_counter() - between)
    print(f"init --dry-run: garboard {min(ours):.2f} s, kubeadm {kubeadm.version} {min(theirs):.2f} s")
    assert min(ours) <= min(theirs)
