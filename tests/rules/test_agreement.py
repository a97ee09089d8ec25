"""Thousands of random results, beside Kubernetes' own validation: both refuse one, or neither does."""

import json
from random import Random
from typing import Any

import pytest

from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.rules import RuleKind, check_flags, check_kubelet, check_pod, check_workload
from garboard.schema import load_schema
from tests.support.rules.random_results import RandomResults
from tests.support.rules.reference import refused_by_kubernetes
from tools.harness.answers import Answers

# A cold build of the program takes minutes.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
COUNT, COUNT_TO_VERIFY = 2000, 12_000
LEAST_SHARE = 0.15  # of results that work, and of results that do not: else the comparison says little

every_version = pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
every_kind = pytest.mark.parametrize("kind", ["pod", "workload", "kubelet", "flags"])


@every_version
@every_kind
def test_rules_refuse_what_kubernetes_refuses(answers: Answers, version: KubernetesVersion, kind: str) -> None:
    compare(answers, version, kind, seed=1, count=COUNT)


@pytest.mark.verify
@every_version
@every_kind
def test_rules_refuse_what_kubernetes_refuses_in_others_every_day(
    answers: Answers, version: KubernetesVersion, kind: str, seed: int
) -> None:
    compare(answers, version, kind, seed=seed, count=COUNT_TO_VERIFY)


def compare(answers: Answers, version: KubernetesVersion, kind: str, seed: int, count: int) -> None:
    made = RandomResults(load_schema(version), Random(f"{seed} {kind} {version}"))
    questions = [question(made, kind) for _ in range(count)]
    told = refused_by_kubernetes(answers, version, questions)
    different = []
    for asked, refused in zip(questions, told, strict=True):
        ours = our_findings(asked, version)
        if bool(ours) != bool(refused):
            different.append(f"{json.dumps(asked)}\n  ours: {ours}\n  theirs: {refused}")
    share = sum(bool(refused) for refused in told) / count
    assert different == [], f"{len(different)} of {count}"
    assert LEAST_SHARE < share < 1 - LEAST_SHARE


def question(made: RandomResults, kind: str) -> dict[str, Any]:
    if kind == "pod":
        return {"pod": made.pod()}
    if kind == "workload":
        return {"workload": made.workload()}
    if kind == "kubelet":
        return {"kubelet": made.kubelet()}
    component, args = made.flags()
    return {"component": component, "args": args}


def our_findings(asked: dict[str, Any], version: KubernetesVersion) -> list[str]:
    if "pod" in asked:
        found = check_pod(asked["pod"], version)
    elif "workload" in asked:
        found = check_workload(asked["workload"], asked["workload"]["kind"], version)
    elif "kubelet" in asked:
        found = check_kubelet(asked["kubelet"], version)
    else:
        found = check_flags(asked["component"], asked["args"], version)
    assert all(each.rule.kind is RuleKind.VALIDITY for each in found)
    return [f"{each.code} {each.path} {each.message}" for each in found]
