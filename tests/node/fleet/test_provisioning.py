"""The provisioner with a synthetic installer: its stages, kills at every write, failures, secrets, links and locks."""

import json
import os
import signal
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from garboard.errors import BadDocument, GarboardError
from garboard.fleet.installers import InstallerFailed
from garboard.host.work_folder import WorkFolder
from garboard.node.fleet.provisioning import FAILURE, Customized
from tests.support.fleet.provisions import PULL_SECRET, Provisioning, in_child, kill_at_write, synthetic
from tests.support.fleet.synthetic_installer import PASSWORD


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    folder = tmp_path / "cloud"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed leaves what it has written also where it has not waited for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def resources(cloud: Path) -> dict[str, int]:
    """Return how many resources each infraID has in the cloud."""
    found = [each.name.rpartition("-")[0] for each in cloud.iterdir() if each.name != "calls"]
    return {infra: found.count(infra) for infra in found}


def calls(cloud: Path) -> list[str]:
    return (cloud / "calls").read_text().splitlines()


def assert_whole(made: Provisioning, cloud: Path) -> None:
    """Assert that there is one cluster, that of the record, and nothing else."""
    last = made.record().last
    assert last is not None
    assert last.end == "complete"
    assert resources(cloud) == {last.infra_id: 3}


def test_stages_come_in_their_order_and_the_results_are_private(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud))
    made.provision()
    assert calls(cloud) == ["create manifests", "create ignition-configs", "create cluster"]
    stages = [line for line in made.reporter.lines if line.startswith("[attempt 1]")]
    assert [each.removeprefix("[attempt 1] ") for each in stages] == [
        "create manifests", "patch", "create ignition-configs", "record", "create cluster", "collect",
    ]  # fmt: skip
    assert_whole(made, cloud)
    for name in ("kubeconfig", "metadata.json", "provision.json", "kubeadmin-password", "provision.log"):
        assert stat.S_IMODE((work / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    assert json.loads((work / "metadata.json").read_text())["cloud"] == {"userName": "REDACTED", "password": "REDACTED"}


def test_patches_come_between_manifests_and_ignition_configs_and_extra_manifests_before_them(
    work: Path, cloud: Path
) -> None:
    seen: list[Mapping[str, bytes | str]] = []

    def customize(tree: Mapping[str, bytes | str]) -> Customized:
        seen.append(tree)
        return Customized({"cluster-api/02_infra-cluster.yaml": b"patched: true\n"}, ("a doubt",))

    made = Provisioning(work, synthetic(cloud), customize=customize)
    made.provision()
    (tree,) = seen
    assert tree["manifests/extra.yaml"] == b"kind: Extra\n"
    assert "openshift/99_worker-machineset-0.yaml" in tree
    (made_of, *_) = [each for each in cloud.iterdir() if each.name != "calls"]
    assert json.loads(made_of.read_text())["cluster-api/02_infra-cluster.yaml"] == "patched: true\n"
    assert "warning: a doubt" in made.reporter.lines


def test_infra_id_is_on_disk_before_anything_costs_money(
    work: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="kill:create-cluster"))
    assert made.is_killed(made.provision)
    last = made.record().last
    assert last is not None
    assert last.infra_id in resources(cloud)
    assert json.loads((work / "owned/attempt-1.json").read_text())["infraID"] == last.infra_id


def test_installed_cluster_is_not_made_again(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud))
    made.provision()
    before = calls(cloud)
    made.provision()
    assert calls(cloud) == before


# Of a whole provision: the record before and after each of 6 stages and at the beginning, the install config, the extra
# manifest, the metadata that is kept, and three results.
WRITES = 19


def test_writes_of_a_provision_are_counted(work: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, is_killed in ((WRITES - 1, True), (WRITES, False)):
        made = Provisioning(work.with_name(f"work-{number}"), synthetic(cloud))
        with monkeypatch.context() as patched:
            kill_at_write(patched, number, after=False)
            assert made.is_killed(made.provision) == is_killed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(WRITES))
@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
def test_killed_at_any_write_it_goes_on_and_leaves_nothing_unowned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    """Both ways out of every point: the same command again, and deprovision."""
    for way in ("provision", "deprovision"):
        cloud = tmp_path / way
        cloud.mkdir()
        made = Provisioning(tmp_path / f"work-{way}", synthetic(cloud))
        with monkeypatch.context() as patched:
            kill_at_write(patched, number, after=after)
            assert made.is_killed(made.provision)
        if way == "provision":
            made.provision()
            assert_whole(made, cloud)
        else:
            made.deprovision()
            assert resources(cloud) == {}


def test_killed_while_it_destroys_it_destroys_again(work: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="kill:create-cluster"))
    assert made.is_killed(made.provision)
    again = Provisioning(work, synthetic(cloud))
    for number in range(3):
        with monkeypatch.context() as patched:
            kill_at_write(patched, number, after=True)
            assert again.is_killed(again.deprovision)
    again.deprovision()
    assert resources(cloud) == {}


def test_program_that_was_killed_is_destroyed_and_begun_anew(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="half:create-cluster"))
    with pytest.raises(InstallerFailed) as failed:
        made.provision()
    assert failed.value.status == 4
    first = made.record().last
    assert first is not None
    assert resources(cloud) == {first.infra_id: 2}
    again = Provisioning(work, synthetic(cloud))
    again.provision()
    assert_whole(again, cloud)
    assert calls(cloud)[-4:] == ["destroy cluster", "create manifests", "create ignition-configs", "create cluster"]
    assert (work / "attempt-1").is_dir(), "an attempt has a folder of its own"
    assert [each.end for each in again.record().attempts] == ["destroyed", "complete"]


def test_nothing_begins_while_an_installer_goes_on_without_its_provisioner(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="kill:create-cluster slow:create-cluster"))
    assert in_child(made.provision) == -signal.SIGKILL
    with pytest.raises(GarboardError, match="or an installer that it has started, is at work") as refused:
        made.deprovision()
    assert refused.value.error_class == "locked"


def test_two_provisions_at_once_on_one_folder_are_refused(work: Path, cloud: Path) -> None:
    inner = Provisioning(work, synthetic(cloud))
    errors: list[GarboardError] = []

    def customize(_tree: Mapping[str, bytes | str]) -> Customized:
        try:
            inner.provision()
        except GarboardError as error:
            errors.append(error)
        return Customized({})

    made = Provisioning(work, synthetic(cloud), customize=customize)
    made.provision()
    (error,) = errors
    assert error.error_class == "locked"
    assert "garboard fleet test (process" in error.message
    assert_whole(made, cloud)


def test_attempts_are_limited(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="fail:create-manifests"), attempts_limit=2)
    for _ in range(2):
        with pytest.raises(InstallerFailed):
            made.provision()
    with pytest.raises(GarboardError) as refused:
        made.provision()
    assert refused.value.error_class == "attempts-limit"
    none = Provisioning(work.with_name("none"), synthetic(cloud), attempts_limit=0)
    with pytest.raises(GarboardError, match="0 attempts"):
        none.provision()


@pytest.mark.parametrize(
    ("misbehave", "error_class"),
    [
        ("no-infra-id", "bad-metadata"),
        ("no-kubeconfig", "bad-metadata"),
        ("fail:create-ignition-configs", "installer-failed"),
    ],
)
def test_what_fails_before_the_cluster_owns_nothing(work: Path, cloud: Path, misbehave: str, error_class: str) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave=misbehave))
    with pytest.raises(GarboardError) as failed:
        made.provision()
    assert failed.value.error_class == error_class
    assert "create cluster" not in calls(cloud)
    assert json.loads((work / FAILURE).read_text())["reason"] == error_class
    made.deprovision()
    assert "destroy cluster" not in calls(cloud)


def test_infra_id_of_an_earlier_attempt_is_refused(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="same-infra-id half:create-cluster"))
    with pytest.raises(InstallerFailed):
        made.provision()
    with pytest.raises(GarboardError, match="infraID of an earlier attempt"):
        made.provision()


def test_installer_that_does_not_end_is_ended(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="slow:create-cluster", cluster_s=0.7))
    with pytest.raises(InstallerFailed, match="did not end within"):
        made.provision()


def test_secrets_are_in_no_output(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="fail:create-cluster", say=f"x{PULL_SECRET}y"))
    with pytest.raises(InstallerFailed):
        made.provision()
    said = "\n".join(made.reporter.lines)
    assert "REDACTED LINE OF OUTPUT" in said
    assert "environment: xREDACTEDy" in said
    kept = "".join((work / each).read_text() for each in ("provision.log", "provision.json", FAILURE))
    for secret in (PULL_SECRET, "hunter2hunter2"):
        assert secret not in said
        assert secret not in kept


def test_password_that_the_installer_makes_is_known_from_then_on(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud))
    made.provision()
    assert "done, login kubeadmin REDACTED" in "\n".join(made.reporter.lines)
    assert PASSWORD not in (work / "provision.log").read_text()


def test_failed_patch_is_recorded_with_its_reason(work: Path, cloud: Path) -> None:
    def customize(_tree: Mapping[str, bytes | str]) -> Customized:
        raise BadDocument(f"no manifest matches {PULL_SECRET}", error_class="manifest-no-match")

    made = Provisioning(work, synthetic(cloud), customize=customize)
    with pytest.raises(BadDocument, match="no manifest matches REDACTED"):
        made.provision()
    found = json.loads((work / FAILURE).read_text())
    assert (found["stage"], found["reason"]) == ("patch", "manifest-no-match")
    assert calls(cloud) == ["create manifests"]


def test_full_disk_ends_the_log_and_not_the_cluster(work: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append, count = WorkFolder.append, [0]

    def failing(folder: WorkFolder, name: str, data: bytes) -> None:
        count[0] += 1
        if count[0] > 5:
            raise GarboardError("cannot write provision.log: no space is left", error_class="unwritable")
        append(folder, name, data)

    monkeypatch.setattr(WorkFolder, "append", failing)
    made = Provisioning(work, synthetic(cloud))
    made.provision()
    assert_whole(made, cloud)
    assert len([line for line in made.reporter.lines if "what follows is in no log" in line]) == 1


def test_attempt_that_cannot_go_on_needs_its_documents(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud, misbehave="half:create-cluster"))
    with pytest.raises(InstallerFailed):
        made.provision()
    with pytest.raises(GarboardError) as refused:
        made.resume()
    assert refused.value.error_class == "no-attempt"
    assert "destroy cluster" not in calls(cloud)


def test_other_deployment_does_not_get_the_folder(work: Path, cloud: Path) -> None:
    made = Provisioning(work, synthetic(cloud))
    made.provision()
    other = Provisioning(work, synthetic(cloud), installer="another")
    with pytest.raises(GarboardError) as refused:
        other.provision()
    assert refused.value.error_class == "other-deployment"


def test_work_folder_that_is_a_link_or_shared_is_refused(tmp_path: Path, cloud: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    for name, error_class in (("link", "unreadable"), ("shared", "shared-folder")):
        with pytest.raises(GarboardError) as refused:
            Provisioning(tmp_path / name, synthetic(cloud)).provision()
        assert refused.value.error_class == error_class


@pytest.mark.parametrize(
    "name", ["provision.json", "kubeconfig", "provision.log", "attempt-1", "owned", "metadata.json"]
)
def test_links_in_the_work_folder_lead_nowhere(tmp_path: Path, work: Path, cloud: Path, name: str) -> None:
    work.mkdir(mode=0o700)
    outside = tmp_path / "outside"
    if name in ("attempt-1", "owned"):
        outside.mkdir()
    else:
        outside.write_text("precious")
    (work / name).symlink_to(outside)
    with pytest.raises((GarboardError, FileExistsError)):
        Provisioning(work, synthetic(cloud)).provision()
    assert list(outside.iterdir()) == [] if outside.is_dir() else outside.read_text() == "precious"


def test_link_among_the_manifests_is_told_and_neither_read_nor_written(
    work: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes | str] = []

    def customize(tree: Mapping[str, bytes | str]) -> Customized:
        seen.append(tree["manifests/link.yaml"])
        return Customized({"manifests/link.yaml": b"x: y\n"})

    outside = cloud.parent / "outside"
    outside.write_text("precious")
    monkeypatch.setenv("LINK_TO", str(outside))
    with pytest.raises(GarboardError, match="a link"):
        Provisioning(work, synthetic(cloud, misbehave="link"), customize=customize).provision()
    assert seen == ["a symbolic link"]
    assert json.loads((work / FAILURE).read_text())["reason"] == "ManifestIOError"
    assert outside.read_text() == "precious"
