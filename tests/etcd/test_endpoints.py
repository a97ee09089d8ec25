"""Where etcd is, as Pods say."""

from typing import Any

import pytest

from garboard.documents import Json
from garboard.errors import ClusterUnreachable
from garboard.etcd import EtcdUnreachable, endpoints_of_pods, find_endpoints

ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"


def pod(url: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {ANNOTATION: url} if url else {}}}


class Pods:
    """Answers one after the other; the last one stays."""

    def __init__(self, *answers: tuple[dict[str, Any], ...] | Exception) -> None:
        self.answers = list(answers)

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        assert (kind, namespace, selector) == ("Pod", "kube-system", "component=etcd,tier=control-plane")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        pytest.param([pod("https://a:2379"), pod("https://b:2379")], ("https://a:2379", "https://b:2379"), id="all"),
        pytest.param([pod("https://a:2379,https://a6:2379")], ("https://a:2379", "https://a6:2379"), id="two URLs"),
        pytest.param([pod("https://a:2379"), pod(None)], None, id="one without its annotation"),
        pytest.param([], None, id="no Pod"),
        pytest.param([{}], None, id="no metadata"),
    ],
)
def test_every_pod_has_to_announce_itself(pods: list[dict[str, Any]], found: tuple[str, ...] | None) -> None:
    assert endpoints_of_pods(pods) == found


def test_endpoints_are_waited_for() -> None:
    pods = Pods(ClusterUnreachable("away"), (pod(None),), (pod("https://a:2379"),))
    assert find_endpoints(pods, timeout_s=60, sleep=lambda _: None) == ("https://a:2379",)


@pytest.mark.parametrize(
    ("answer", "error"), [((pod(None),), EtcdUnreachable), (ClusterUnreachable("away"), ClusterUnreachable)]
)
def test_waiting_ends(answer: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        find_endpoints(Pods(answer), timeout_s=0)
