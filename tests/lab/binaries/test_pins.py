import pytest

from garboard.errors import BadUsage
from garboard.lab.binaries.pins import CLUSTER_PROGRAMS, link_variables, read_pins
from garboard.model import SUPPORTED_VERSIONS

PINS = read_pins()


@pytest.mark.parametrize("version", [str(each) for each in SUPPORTED_VERSIONS])
@pytest.mark.parametrize("program", CLUSTER_PROGRAMS)
def test_every_cluster_program_is_pinned_for_every_supported_release(program: str, version: str) -> None:
    wanted = PINS.wanted(program, kubernetes=version)
    assert wanted.version in PINS.versions(wanted.program)


def test_each_pinned_version_of_a_module_has_its_hash() -> None:
    for program in PINS.programs.values():
        for version in PINS.versions(program):
            if program.module:
                assert program.module.sums[version].startswith("h1:"), (program.name, version)


@pytest.mark.parametrize(
    ("program", "kubernetes", "version"),
    [
        ("kubelet", "v1.36.4", "v1.36.4"),
        ("etcd", "v1.36.4", "v3.6.8"),
        ("etcd", "v1.37.1", "v3.7.0"),
        ("coredns", "v1.36.4", "v1.14.2"),
        ("kustomize", "v1.36.4", "v5.8.2"),
    ],
)
def test_programs_follow_the_kubernetes_release(program: str, kubernetes: str, version: str) -> None:
    assert PINS.wanted(program, kubernetes=kubernetes).version == version


def test_an_unknown_program_or_version_names_the_known_ones() -> None:
    with pytest.raises(BadUsage, match="no program 'kubecolor'"):
        PINS.wanted("kubecolor")
    with pytest.raises(BadUsage, match=r"v9\.9\.9 is not known to the lab; known are v1\.37\.1, v1\.36\.4"):
        PINS.wanted("kubeadm", "v9.9.9")
    with pytest.raises(BadUsage, match=r"Kubernetes v1\.20\.0 is not known to the lab"):
        PINS.wanted("kubeadm", kubernetes="v1.20.0")


def test_kubernetes_programs_are_told_their_version() -> None:
    module = PINS.programs["kubeadm"].module
    assert module is not None
    variables = link_variables(module, "v1.36.4")
    assert "k8s.io/component-base/version.gitVersion=v1.36.4" in variables
    assert "k8s.io/component-base/version.gitMinor=36" in variables
