"""Labs for tests: bare nodes for one test, clusters for a module; logs of nodes are kept when a test fails."""

from collections.abc import Iterator

import pytest

from tests.support.lab.clusters import Bare
from tools.harness.lab import RUN, LabUnderTest
from tools.harness.node_program import garboard_for_nodes
from tools.harness.snapshots import ClusterSnapshots
from tools.harness.snapshots import cluster_snapshots as kept_clusters


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep the logs of every lab that a failed test used."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy hands over its result
    if report.when == "call" and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            for lab in value if isinstance(value, list) else [value]:
                if isinstance(lab, LabUnderTest) and lab.files.folder.is_dir():
                    lab.keep_logs(item.name)


@pytest.fixture
def labs_made() -> Iterator[list[LabUnderTest]]:
    """The labs that a test has made; they go when it ends."""
    made: list[LabUnderTest] = []
    yield made
    for lab in made:
        lab.lab("down", check=False)


@pytest.fixture
def bare(labs_made: list[LabUnderTest]) -> Bare:
    """Make bare nodes for one test: `bare(workers=1)` is a lab of two, fresh and its own."""

    def make(control_planes: int = 1, workers: int = 0, version: str = "") -> LabUnderTest:
        lab = LabUnderTest(f"t{RUN}-{len(labs_made)}")
        labs_made.append(lab)
        release = ("--kubernetes-version", version) if version else ()
        size = ("--control-planes", str(control_planes), "--workers", str(workers))
        lab.lab("up", "--by", "none", *size, *release)
        return lab

    return make


@pytest.fixture(scope="session")
def cluster_snapshots(pytestconfig: pytest.Config) -> ClusterSnapshots:
    """The clusters that are kept between runs; `--fresh` makes each anew."""
    return kept_clusters(fresh=bool(pytestconfig.getoption("--fresh")))


def _cluster(snapshots: ClusterSnapshots, name: str, *arguments: str) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(f"t{RUN}-{name}")
    try:
        snapshots.up(lab, *arguments)
        yield lab
    finally:
        lab.lab("down", check=False)


@pytest.fixture(scope="module")
def one_node(cluster_snapshots: ClusterSnapshots) -> Iterator[LabUnderTest]:
    """A cluster of one node, from a snapshot, shared by a module: tests leave it as they found it."""
    yield from _cluster(cluster_snapshots, "one", "--control-planes", "1", "--workers", "0")


@pytest.fixture(scope="module")
def ha(cluster_snapshots: ClusterSnapshots) -> Iterator[LabUnderTest]:
    """Three control planes and a worker, from a snapshot, shared by a module: tests leave them as they found them."""
    yield from _cluster(cluster_snapshots, "ha")


@pytest.fixture(scope="session")
def garboard_in_node() -> Iterator[tuple[str, ...]]:
    """The command that runs garboard in a node."""
    with garboard_for_nodes() as command:
        yield command
