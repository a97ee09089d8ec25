"""A worker whose network reaches nothing but the tunnel's port: it joins, works, survives restarts, leaves no trace."""

from collections.abc import Iterator

import pytest

from tests.support.lab.node_tree import Plan, journaled, node_tree, unexplained
from tests.support.lab.tunnel_join import BIND, CONTROL_PLANE, WORKER, TunnelJoin, tunnel_join
from tools.harness.killing import KillPoint
from tools.harness.lab import garboard

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
_STRIDE = 5  # no divisor of the number of points, so that all have their day


@pytest.fixture(scope="module")
def cluster(garboard_in_node: tuple[str, ...]) -> Iterator[TunnelJoin]:
    with tunnel_join("via", "v1.37.1", garboard_in_node) as made:
        yield made


def points(plan: Plan) -> list[KillPoint]:
    """Every point at which the join is killed: each step once it has begun, and once it is done."""
    steps = range(len(plan["steps"]))
    return [point for index in steps for point in (KillPoint("begin", index), KillPoint("end", index))]


def undone(cluster: TunnelJoin, point: KillPoint) -> list[str]:
    """Kill the join, undo it, and return what is not as it was."""
    before = node_tree(cluster.lab, WORKER)
    cluster.kill(point)
    cluster.run("undo")
    left = [*cluster.left_over().splitlines(), *unexplained(before, node_tree(cluster.lab, WORKER))]
    cluster.forget_worker()
    return left


def resumed(cluster: TunnelJoin, point: KillPoint) -> None:
    """Kill the join and resume it."""
    cluster.kill(point)
    cluster.run("resume")
    cluster.await_worker()


def reset(cluster: TunnelJoin) -> None:
    cluster.run("reset", "--force")
    assert cluster.left_over() == ""
    cluster.forget_worker()


def test_what_is_not_right_is_told_before_anything_is_changed(cluster: TunnelJoin) -> None:
    assert not cluster.answers(CONTROL_PLANE)
    assert not cluster.answers("10.89.0.1")
    cluster.prepare(bindAddress="10.89.0.77")
    before = node_tree(cluster.lab, WORKER)
    ended = cluster.lab.exec(WORKER, *cluster.join_command, check=False)
    assert ended.returncode == 4
    assert "[TunnelCertSANs] the certificate of the API server is valid for" in ended.stderr
    assert "[TunnelAddress] the agent's address 10.89.0.77 is in 10.89.0.0/24, the network of eth0" in ended.stderr
    assert unexplained(before, node_tree(cluster.lab, WORKER)) == []


def test_killed_join_is_undone_and_leaves_nothing(cluster: TunnelJoin, seed: int) -> None:
    cluster.prepare()
    every = points(cluster.shown())
    assert undone(cluster, every[seed * _STRIDE % len(every)]) == []


def test_worker_joins_works_survives_restarts_and_is_reset(cluster: TunnelJoin, seed: int) -> None:
    cluster.prepare()
    shown = cluster.shown()
    every = points(shown)
    resumed(cluster, every[(seed * _STRIDE + len(every) // 2) % len(every)])
    assert journaled(cluster.lab, WORKER) == shown, "the very plan that was printed"
    assert f"server: https://{BIND}:6443" in cluster.lab.exec(WORKER, "cat", "/etc/kubernetes/kubelet.conf").stdout
    assert cluster.modes() == "600 agent.key\n644 agent.crt\n644 ca.crt\n"
    cluster.run_pod("asks")
    cluster.await_pod("asks")
    assert cluster.say_hello("asks") == "hello\n"
    cluster.crash(WORKER, "agent")
    cluster.await_pod("asks")
    cluster.crash("cp1", "server")
    cluster.await_pod("asks")
    cluster.restart_node()
    cluster.await_pod("asks")
    assert cluster.say_hello("asks") == "hello\n"
    assert not cluster.answers(CONTROL_PLANE), "the network is as closed as before"
    cluster.lab.kubectl("delete", "pod", "asks", "--now")
    reset(cluster)


@pytest.mark.verify
@pytest.mark.timeout(3600)
def test_join_that_is_killed_at_any_point_is_undone_or_resumed(cluster: TunnelJoin, seed: int) -> None:
    cluster.prepare()
    every = points(cluster.shown())
    for number, point in enumerate(every):
        if (number + seed) % 2:
            assert undone(cluster, point) == [], point
        else:
            resumed(cluster, point)
            reset(cluster)


@pytest.mark.verify
def test_agent_may_be_a_static_pod(cluster: TunnelJoin) -> None:
    image = cluster.folder / "image.tar"
    garboard("image", "-o", str(image))
    cluster.lab.lab("load", str(image))
    cluster.prepare(**{"as": "static-pod"})
    every = points(cluster.shown())
    assert undone(cluster, every[-6]) == []
    resumed(cluster, every[-4])
    cluster.run_pod("asks")
    cluster.await_pod("asks")
    assert cluster.say_hello("asks") == "hello\n"
    cluster.restart_node()
    cluster.await_pod("asks")
    cluster.lab.kubectl("delete", "pod", "asks", "--now")
    reset(cluster)
