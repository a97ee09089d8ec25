"""Where etcd is, as Pods say; and joins that change its members one after the other."""

import json
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import MEMBER_ID, AcquireLease, AddMember, Outcomes
from garboard.errors import ClusterUnreachable, GarboardError, NotReady, StalePlan
from garboard.etcd import EtcdUnreachable
from garboard.host.node_machine import NodeMachine
from garboard.host.web import WebAnswer
from garboard.kube import KubeClient, read_access
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.interpreters.leases import NodeLeases
from garboard.node.interpreters.members import EtcdMembership, EtcdPaths, endpoints_of_pods, find_endpoints
from garboard.pki.kubeconfig import Kubeconfig
from garboard.retry import Clock
from tests.support.etcd.bolt_files import bolt_file, inline, leaf, reading
from tests.support.etcd.cluster import EtcdCluster, etcd_cluster
from tests.support.kube.api_server import FakeApi
from tools.harness.certificates import Certificates

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
    assert find_endpoints(pods, timeout_s=60, clock=Clock(sleep=lambda _: None)) == ("https://a:2379",)


@pytest.mark.parametrize(
    ("answer", "error"), [((pod(None),), EtcdUnreachable), (ClusterUnreachable("away"), ClusterUnreachable)]
)
def test_waiting_ends(answer: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        find_endpoints(Pods(answer), timeout_s=0)


def test_etcd_that_cannot_be_asked_is_refused_before_the_wait_begins() -> None:
    """A certificate that is missing does not come by waiting: no probe is made, and the error is its own."""
    membership = EtcdMembership(
        NodeMachine(None), EtcdPaths(certificates_dir="/nowhere"), _unused, print, tuple, UNHELD
    )
    with pytest.raises(NotReady, match=r"there is no /nowhere/etcd/ca\.crt"):
        membership.majority_probe()


def _unused() -> KubeClient:
    raise AssertionError("the certificates are read first")


UNHELD = NodeLeases(_unused, print)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        pytest.param([], "it has no voting member", id="nobody votes"),
        pytest.param([GarboardError("no answer in time")], "no answer in time", id="no answer"),
    ],
)
def test_etcd_without_a_majority_keeps_the_gate_closed(
    members: list[GarboardError], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        def members(self) -> tuple[()]:
            if members:
                raise members[0]
            return ()

    membership = EtcdMembership(NodeMachine(None), EtcdPaths(), _unused, print, tuple, UNHELD)
    vars(membership)["_members"] = SimpleNamespace(client=Client())
    assert membership.majority_probe()() == problem


class JoiningNodes:
    """Nodes that join a real etcd of one member, with the Leases of a fake API server."""

    def __init__(self, cluster: EtcdCluster, folder: Path, kubeconfig: Kubeconfig) -> None:
        self.cluster = cluster
        self.told: list[str] = []
        self._access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
        self._place = EtcdPaths(
            certificates_dir=str(folder), data_dir=str(folder / "none"), endpoints=(cluster.members["a"].client_url,)
        )
        of = cluster.certificates
        (folder / "etcd").mkdir()
        for name, source in (("ca.crt", of.ca), ("healthcheck-client.crt", of.client)):
            (folder / "etcd" / name).write_bytes(source.read_bytes())
        (folder / "etcd/healthcheck-client.key").write_bytes(of.client_key.read_bytes())

    def join(self, name: str) -> Outcomes:
        """Add the learner of a node, which then fails; return the outcomes."""
        peer_url = self.cluster.prepare(name).peer_url
        leases = NodeLeases(self._connect, self.told.append)
        membership = self.membership(leases)
        with suppress(GarboardError), closing(leases):
            leases.acquire(
                AcquireLease(name="lock", namespace="kube-system", holder=name, timeout_s=5, peer_url=peer_url)
            )
            outcomes = membership.add(AddMember(name=name, peer_url=peer_url, outcome="members"))
            raise GarboardError("the learner has no vote after 120 s")
        return outcomes

    def membership(self, leases: NodeLeases | None = None) -> EtcdMembership:
        leases = leases or NodeLeases(self._connect, self.told.append)
        return EtcdMembership(NodeMachine(None), self._place, self._connect, self.told.append, tuple, leases)

    def _connect(self) -> KubeClient:
        return KubeClient(self._access)

    def learners(self) -> set[str]:
        return {url for each in self.cluster.client("a").members() if each.is_learner for url in each.peer_urls}


@pytest.mark.real
def test_join_that_failed_leaves_no_learner_in_the_way_of_the_next(
    binaries: Binaries, certificates: Certificates, tmp_path: Path, api: FakeApi, kubeconfig: Kubeconfig
) -> None:
    program = binaries.locate_for("etcd", str(DEFAULT_VERSION))
    with etcd_cluster(program, certificates, tmp_path, "a") as cluster:
        nodes = JoiningNodes(cluster, tmp_path, kubeconfig)
        nodes.join("b")
        assert nodes.learners() == {cluster.members["b"].peer_url}
        outcomes = nodes.join("c")
        assert nodes.learners() == {cluster.members["c"].peer_url}
        assert outcomes[MEMBER_ID] in {each.hex_id for each in cluster.client("a").members()}
        assert any("the join that added it died" in line for line in nodes.told)
        membership = nodes.membership()
        assert [membership.is_learner(cluster.members[name].peer_url) for name in "abc"] == [False, False, True]
        assert not any("trying" in line or "waiting" in line for line in nodes.told), nodes.told


@pytest.mark.parametrize(
    ("answer", "is_refused"),
    [
        pytest.param([("node-1", False)], False, id="alone"),
        pytest.param([("node-1", False), ("", True)], False, id="another one has no vote"),
        pytest.param([("node-1", False), ("node-2", False)], True, id="another one votes by now"),
        pytest.param(EtcdUnreachable("nobody answers"), False, id="it is gone already"),
    ],
)
def test_last_member_that_votes_is_looked_at_again_when_a_reset_goes_on(
    monkeypatch: pytest.MonkeyPatch, answer: list[tuple[str, bool]] | Exception, is_refused: bool
) -> None:
    def members() -> list[SimpleNamespace]:
        if isinstance(answer, Exception):
            raise answer
        return [SimpleNamespace(name=name, peer_urls=("https://x",), is_learner=learns) for name, learns in answer]

    asked = list[tuple[str, ...]]()

    def connect(urls: tuple[str, ...], _access: object) -> SimpleNamespace:
        asked.append(urls)
        return SimpleNamespace(members=members)

    monkeypatch.setattr("garboard.etcd.EtcdClient", connect)
    monkeypatch.setattr(EtcdMembership, "_access", lambda _self: None)
    nobody: Any = None
    membership = EtcdMembership(NodeMachine(None), EtcdPaths(), nobody, nobody, nobody, nobody)
    if is_refused:
        with pytest.raises(StalePlan, match="there are others by now: node-1, node-2"):
            membership.refuse_other_voters(("https://192.0.2.10:2379",))
    else:
        membership.refuse_other_voters(("https://192.0.2.10:2379",))
    assert asked == [("https://192.0.2.10:2379",)]


def versioned(monkeypatch: pytest.MonkeyPatch, stored: str, told: dict[str, str], members: int) -> EtcdMembership:
    """Return a member of etcd that has stopped, with this version in its data, and what others answer."""
    names = {
        f"{number:x}".encode(): json.dumps({"id": number, "clientURLs": [f"https://m{number}:2379"]}).encode()
        for number in range(1, members + 1)
    }
    buckets = {b"cluster": inline({b"clusterVersion": stored.encode()}), b"members": inline(names)}
    read_at = reading(bolt_file(leaf(2, buckets, is_bucket=True)))

    def answer(url: str, **_credentials: bytes) -> WebAnswer:
        if url not in told:
            raise GarboardError(f"{url}: connection refused")
        return WebAnswer(200, json.dumps({"etcdserver": "3.7.0", "etcdcluster": told[url]}))

    monkeypatch.setattr("garboard.node.interpreters.members.probe_as", answer)
    machine: Any = SimpleNamespace(read=lambda _path: b"PEM", read_part=lambda _path, at, count: read_at(at, count))
    nobody: Any = None
    return EtcdMembership(machine, EtcdPaths(), nobody, print, tuple, nobody)


@pytest.mark.parametrize(
    ("stored", "told", "members", "version"),
    [
        pytest.param("3.6.0", {}, 1, "3.6.0", id="a single member"),
        pytest.param("3.7.0", {}, 1, "3.7.0", id="a single member that is raised"),
        pytest.param("3.6.0", {"https://m2:2379/version": "3.6.0"}, 3, "3.6.0", id="one other answers"),
        pytest.param("3.6.0", {"https://m2:2379/version": "3.7.0"}, 3, "3.7.0", id="others have heard more"),
        pytest.param(
            "3.6.0", {"https://m2:2379/version": "3.6.0", "https://m3:2379/version": "3.7.0"}, 3, "3.7.0",
            id="one other has heard more",
        ),
        pytest.param("3.10.0", {"https://m2:2379/version": "3.9.0"}, 3, "3.10.0", id="numbers are no texts"),
    ],
)  # fmt: skip
def test_cluster_version_is_the_highest_that_anybody_knows(
    stored: str, told: dict[str, str], members: int, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert versioned(monkeypatch, stored, told, members).cluster_version() == version


def test_cluster_version_that_no_other_member_tells_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EtcdUnreachable, match="no member of etcd tells its cluster version, of https://m1:2379"):
        versioned(monkeypatch, "3.7.0", {}, 3).cluster_version()
