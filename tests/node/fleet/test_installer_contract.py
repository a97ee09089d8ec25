"""The contract of installers, held by both drivers: a program, here the synthetic one, and garboard on hosts."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.fleet.installers import (
    CREATE_CLUSTER,
    CREATE_IGNITION_CONFIGS,
    CREATE_MANIFESTS,
    DESTROY_CLUSTER,
    INSTALL_CONFIG,
    KUBECONFIG,
    METADATA,
    Installer,
    Verb,
    read_metadata,
)
from garboard.fleet.provision import OutputScrubber
from garboard.node.fleet.host_installer import HostInstaller
from garboard.node.fleet.program_installer import ProgramInstaller
from garboard.node.fleet.remote_host import HostTimes
from tests.support.fleet.install_configs import CONFIG, HOSTS
from tests.support.fleet.provisions import PROGRAM
from tests.support.fleet.simulated_hosts import SimulatedHosts
from tests.support.node.reporters import MemoryReporter


@dataclass
class Driven:
    """An installer, what it makes clusters of, and a folder for each attempt."""

    installer: Installer
    config: str
    folder: Path
    invalid: str  # a manifest, to be made one that is none
    made: Callable[[], list[str]]  # what exists outside of the working directory

    def attempt(self, name: str, *verbs: Verb) -> Path:
        work = self.folder / name
        work.mkdir(mode=0o700)
        (work / INSTALL_CONFIG).write_text(self.config)
        for each in verbs:
            self.installer.run(each, work)
        return work

    def fresh(self, name: str, work: Path) -> Path:
        """Return a new folder with the metadata of an attempt alone."""
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        shutil.copy(work / METADATA, folder)
        return folder


@pytest.fixture(params=["program", "hosts"])
def driven(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driven]:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    reporter, scrubber = MemoryReporter(), OutputScrubber()
    if request.param == "program":
        cloud = tmp_path / "cloud"
        cloud.mkdir()
        with (tmp_path / "lock").open("w") as lock:
            installer = ProgramInstaller(
                PROGRAM, reporter, scrubber, environment={"CLOUD": str(cloud)}, lock=lock.fileno()
            )
            made = lambda: sorted(each.name for each in cloud.iterdir() if each.name != "calls")  # noqa: E731
            yield Driven(installer, "metadata: {name: c1}\n", tmp_path, "manifests/cluster-config.yaml", made)
        return
    hosts = SimulatedHosts(tmp_path / "hosts")
    hosts.make(*HOSTS)
    hosts.install(monkeypatch)
    times = HostTimes(command_s=5.0, find_out_s=2.0)
    yield Driven(
        HostInstaller(reporter, scrubber, times), CONFIG, tmp_path, "hosts/cp1/InitConfiguration.yaml",
        lambda: [file for each in HOSTS for file in hosts.files(each)],
    )  # fmt: skip


def tree(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_manifests_are_the_same_each_time_and_regular_files_in_folders(driven: Driven) -> None:
    first, second = (driven.attempt(each, CREATE_MANIFESTS) for each in ("first", "second"))
    assert tree(first) == tree(second)
    manifests = [each for each in tree(first) if "/" in each and each.endswith((".yaml", ".yml", ".json"))]
    assert len(manifests) > 3
    assert not any(each.is_symlink() for each in first.rglob("*"))


def test_nothing_is_made_outside_before_the_cluster(driven: Driven) -> None:
    driven.attempt("work", CREATE_MANIFESTS, CREATE_IGNITION_CONFIGS)
    assert driven.made() == []


def test_manifest_that_is_invalid_is_refused_and_makes_no_metadata(driven: Driven) -> None:
    work = driven.attempt("work", CREATE_MANIFESTS)
    (work / driven.invalid).unlink()
    with pytest.raises(GarboardError):
        driven.installer.run(CREATE_IGNITION_CONFIGS, work)
    assert not (work / METADATA).exists()


def test_metadata_has_an_infra_id_of_its_own_and_no_secrets(driven: Driven) -> None:
    found = []
    for each in ("first", "second"):
        work = driven.attempt(each, CREATE_MANIFESTS, CREATE_IGNITION_CONFIGS)
        found.append(read_metadata((work / METADATA).read_bytes(), source=METADATA))
        assert (work / KUBECONFIG).read_bytes()
        assert "PRIVATE KEY" not in json.dumps(found[-1].document)
    assert found[0].infra_id != found[1].infra_id


def test_cluster_is_destroyed_by_its_metadata_alone_and_again(driven: Driven) -> None:
    work = driven.attempt("work", CREATE_MANIFESTS, CREATE_IGNITION_CONFIGS, CREATE_CLUSTER)
    assert driven.made() != []
    fresh = driven.fresh("fresh", work)
    shutil.rmtree(work)
    driven.installer.run(DESTROY_CLUSTER, fresh)
    assert driven.made() == []
    driven.installer.run(DESTROY_CLUSTER, driven.fresh("again", fresh))


def test_destroying_leaves_other_clusters(driven: Driven) -> None:
    work = driven.attempt("work", CREATE_MANIFESTS, CREATE_IGNITION_CONFIGS, CREATE_CLUSTER)
    other = driven.attempt("other", CREATE_MANIFESTS, CREATE_IGNITION_CONFIGS)
    before = driven.made()
    driven.installer.run(DESTROY_CLUSTER, driven.fresh("fresh", other))
    assert driven.made() == before
    assert (work / METADATA).exists()
