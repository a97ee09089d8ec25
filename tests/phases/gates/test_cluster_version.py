"""etcd's cluster version as a gate: it is open once a minor has no way back."""

import pytest

from garboard.model.version import numbers_of
from garboard.phases.gates import ClusterVersionRaised
from tests.support.phases.gates.views import MemoryNodeView


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("3.6.0", "it is 3.6.0"),
        ("3.6.9", "it is 3.6.9"),
        ("3.5.0", "it is 3.5.0"),
        ("", "it is unknown"),
        ("3.7.0", None),
        ("3.10.0", None),
        ("4.0.0", None),
    ],
)
def test_gate_is_open_once_the_version_is_above_the_minor(version: str, problem: str | None) -> None:
    assert ClusterVersionRaised(above="3.6").probe(MemoryNodeView(cluster_version=version))() == problem


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("3.6.8-0", (3, 6, 8, 0)), ("v1.14.2", (1, 14, 2)), ("3.7.0", (3, 7, 0)), ("mine", ()), ("", ()), ("3.x", ())],
)
def test_numbers_are_read_of_versions_and_tags(text: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(text) == numbers
