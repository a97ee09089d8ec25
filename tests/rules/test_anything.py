"""No result whatever makes the rules fail: they return findings."""

from random import Random
from typing import Any

import pytest

from garboard.documents import Json
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.rules import (
    RESULT_RULES,
    ComponentPod,
    DocumentField,
    check_component,
    check_kubelet,
    check_pod,
    weakened,
    weakened_kubelet,
)
from garboard.schema import load_schema
from tests.support.rules.component_pods import component_pod
from tests.support.rules.random_results import RandomResults

ANYTHING: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    "--v",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"name": 1},
    {"": None},
    10**30,
)
COUNT = 200


def corrupted(value: Any, random: Random) -> Any:
    """Return the value with anything in a few of its places."""
    if random.random() < 0.03:
        return random.choice(ANYTHING)
    if isinstance(value, dict):
        return {name: corrupted(member, random) for name, member in value.items()}
    return [corrupted(each, random) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_rules_judge_anything(version: KubernetesVersion, seed: int) -> None:
    schema, random = load_schema(version), Random(seed)
    made = RandomResults(schema, random)
    original, codes = component_pod("kube-apiserver"), set[str]()
    for _ in range(COUNT):
        pod: Json = corrupted(made.pod(), random)
        kubelet: Json = corrupted(made.kubelet(), random)
        found = [
            *check_pod(pod, version),
            *weakened(original, pod, "kube-apiserver", schema),
            *weakened(pod, original, "kube-apiserver", schema),
            *check_component(ComponentPod(DocumentField(pod)["spec"], "kube-apiserver", schema)),
            *check_kubelet(kubelet, version),
            *weakened_kubelet(kubelet, kubelet),
        ]
        codes |= {each.code for each in found}
    assert len(codes) > 10
    assert codes <= RESULT_RULES.keys()
