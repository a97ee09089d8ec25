"""What passes lint starts: the real programs of both minors, with random flags and configurations that we accept."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import find_target
from garboard.patches.results import judge
from garboard.rules import check_kubelet
from garboard.schema import load_schema
from tests.support.rules.component_pods import component_pod
from tests.support.rules.random_results import RandomResults
from tests.support.rules.starts import ControlPlane, Start, control_plane, serving

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
# Starts of each component at each minor: 210 in all.
STARTS = {"kube-apiserver": 15, "kube-controller-manager": 25, "kube-scheduler": 25, "etcd": 15, "kubelet": 25}
ASKS_A_SERVER = ("kube-controller-manager", "kube-scheduler")


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def version(request: pytest.FixtureRequest) -> KubernetesVersion:
    found: KubernetesVersion = request.param
    return found


@pytest.fixture(scope="module")
def plane(
    binaries: Binaries, version: KubernetesVersion, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A namespace in which components start, one at a time."""
    with control_plane(binaries, version, tmp_path_factory.mktemp("plane")) as made:
        yield made


@pytest.fixture(scope="module")
def asked(
    binaries: Binaries, version: KubernetesVersion, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A namespace with an API server, for the components that ask it."""
    with control_plane(binaries, version, tmp_path_factory.mktemp("asked")) as made, serving(made) as server:
        yield server


@pytest.mark.sampled(35)
@pytest.mark.parametrize(
    ("component", "number"), [(name, number) for name, count in STARTS.items() for number in range(count)]
)
def test_what_passes_lint_starts(
    component: str, number: int, version: KubernetesVersion, seed: int, request: pytest.FixtureRequest
) -> None:
    made = RandomResults(load_schema(version), Random(f"{seed} {component} {number} {version}"))
    if component == "kubelet":
        document = passing_configuration(made, version)
        start = request.getfixturevalue("plane").start_kubelet(document)
        assert start.is_past, f"{document}\n{start.log}"
        return
    words = passing_flags(made, component, version)
    control: ControlPlane = request.getfixturevalue("asked" if component in ASKS_A_SERVER else "plane")
    start = started(control, component, words)
    assert start.is_past, f"{words}\n{start.log}"


def started(control: ControlPlane, component: str, words: list[str]) -> Start:
    everything = [*control.words(component), *map(control.placed, words)]
    if component != "kube-apiserver":
        return control.start(component, everything)
    with control.running("etcd", control.words("etcd")) as etcd:
        assert etcd.is_past, etcd.log
        return control.start(component, everything)


def passing_flags(made: RandomResults, component: str, version: KubernetesVersion) -> list[str]:
    """Return random flags that lint does not object to beside those of kubeadm."""
    while True:
        words = made.more_flags(component)
        pod: Any = component_pod(component)
        pod["spec"]["containers"][0]["command"] += words
        if not judge(component_pod(component), pod, find_target(component, version), load_schema(version)):
            return words


def passing_configuration(made: RandomResults, version: KubernetesVersion) -> Any:
    while True:
        document: Any = made.kubelet()
        if not check_kubelet(document, version):
            return document
