"""Probes beside the flags of the component that they ask."""

from collections.abc import Callable
from typing import Any

import pytest

from garboard.model import DEFAULT_VERSION
from garboard.rules import ComponentPod, DocumentField
from garboard.rules.probes import check_probes
from garboard.schema import load_schema
from tests.support.rules.component_pods import changed_pod

SCHEMA = load_schema(DEFAULT_VERSION)
TOKEN = {"name": "Authorization", "value": "Bearer x"}


def told(change: Callable[[Any], object], component: str) -> list[str]:
    pod = changed_pod(lambda spec, main: change(main), component)
    return [each.message for each in check_probes(ComponentPod(DocumentField(pod)["spec"], component, SCHEMA))]


def flag(word: str) -> Callable[[Any], object]:
    name = word.partition("=")[0] + "="

    def change(main: Any) -> None:
        main["command"] = [*(each for each in main["command"] if not each.startswith(name)), word]

    return change


def move(main: Any) -> None:
    flag("--secure-port=10999")(main)
    main["ports"][0]["containerPort"] = 10999


def with_tokens(main: Any) -> None:
    flag("--anonymous-auth=false")(main)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        main[probe]["httpGet"]["httpHeaders"] = [TOKEN]


@pytest.mark.parametrize(
    ("component", "change"),
    [
        pytest.param("kube-scheduler", flag("--secure-port=10999"), id="another port"),
        pytest.param("kube-scheduler", flag("--secure-port=0"), id="no port"),
        pytest.param("kube-controller-manager", flag("--bind-address=10.0.0.11"), id="another address"),
        pytest.param("kube-apiserver", flag("--bind-address=127.0.0.1"), id="the loopback"),
        pytest.param("kube-apiserver", flag("--anonymous-auth=false"), id="no credentials"),
        pytest.param("etcd", flag("--listen-metrics-urls=https://127.0.0.1:2381"), id="another scheme"),
        pytest.param("kube-apiserver", lambda main: main.pop("ports"), id="no port of this name"),
    ],
)
def test_component_that_does_not_answer_its_probes_is_told_once(
    component: str, change: Callable[[Any], object]
) -> None:
    assert len(told(change, component)) == 1


@pytest.mark.parametrize(
    ("component", "change"),
    [
        pytest.param("kube-scheduler", move, id="the port moves with it"),
        pytest.param("kube-scheduler", flag("--bind-address=0.0.0.0"), id="everywhere"),
        pytest.param("kube-scheduler", flag("--bind-address=::"), id="everywhere, of both families"),
        pytest.param("kube-scheduler", flag("--secure-port=$(PORT)"), id="a port from the environment"),
        pytest.param("kube-apiserver", with_tokens, id="with credentials"),
        pytest.param("etcd", flag("--listen-metrics-urls=http://0.0.0.0:2381"), id="metrics everywhere"),
    ],
)
def test_component_that_answers_is_not_told(component: str, change: Callable[[Any], object]) -> None:
    assert told(change, component) == []
