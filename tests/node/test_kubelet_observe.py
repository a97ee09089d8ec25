"""Kubelets are asked what they run with, each once, where that is allowed; who was not asked is told."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from garboard.change.snapshot import ClusterSnapshot
from garboard.host.root import inside
from garboard.model.paths import KUBELET_CONF
from garboard.node.change_observe import ObservedCluster, observe_cluster
from garboard.node.kubelet_observe import AskedKubelets, with_kubelets
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.change.api_objects import NODES, PagedApi, stored_objects
from tests.support.change.snapshots import f1
from tests.support.kube.api_server import serving
from tools.harness.certificates import Certificates


@pytest.fixture
def api(certificates: Certificates) -> Iterator[PagedApi]:
    with serving(PagedApi(), certificates) as running:
        assert isinstance(running, PagedApi)
        yield running


@pytest.fixture
def admin(kubeconfig: Kubeconfig, tmp_path: Path) -> str:
    (tmp_path / "admin.conf").write_bytes(kubeconfig.to_bytes())
    return str(tmp_path / "admin.conf")


def configz(name: str) -> str:
    return f"{NODES}/{name}/proxy/configz"


def serve(api: PagedApi, snapshot: ClusterSnapshot) -> None:
    api.objects |= stored_objects(snapshot)
    api.objects |= {
        configz(each.name): {"kubeletconfig": {"kind": "KubeletConfiguration", "maxPods": number}}
        for number, each in enumerate(snapshot.nodes)
    }


def asked(api: PagedApi) -> list[str]:
    return [path for _, path in api.asked if path.endswith("/configz")]


def test_from_elsewhere_every_kubelet_is_asked_once(api: PagedApi, admin: str) -> None:
    serve(api, f1())
    found = with_kubelets(observe_cluster(admin), admin)
    assert asked(api) == [configz(name) for name in ("cp1", "w1", "w2")]
    assert found.kubelets == {
        name: {"kind": "KubeletConfiguration", "maxPods": number} for number, name in enumerate(("cp1", "w1", "w2"))
    }
    assert found.notes == ()
    assert {method for method, _ in api.asked} == {"GET"}


def test_on_a_node_only_its_own_kubelet_is_asked_unless_all_are_wanted(api: PagedApi, admin: str) -> None:
    serve(api, f1())
    observed = replace(observe_cluster(admin), here="w1")
    assert [*with_kubelets(observed, admin).kubelets] == ["w1"]
    assert asked(api) == [configz("w1")]
    assert [*with_kubelets(observed, admin, AskedKubelets.ALL).kubelets] == ["cp1", "w1", "w2"]


def test_nobody_is_asked_if_that_is_not_wanted_or_nothing_else(api: PagedApi, admin: str) -> None:
    serve(api, f1())
    observed = observe_cluster(admin)
    assert asked(api) == [], "plans and adopt ask no kubelet"
    assert with_kubelets(observed, admin, AskedKubelets.NONE) == observed
    assert asked(api) == []


def test_without_the_right_one_request_is_made_and_the_right_is_named(api: PagedApi, admin: str) -> None:
    serve(api, f1())
    api.refuse("GET", configz("cp1"), 403, "Forbidden", "no")
    found = with_kubelets(observe_cluster(admin), admin)
    assert (found.kubelets, len(asked(api))) == ({}, 1)
    (note,) = found.notes
    assert note.startswith("what kubelets run with: the right to get nodes/proxy --all-namespaces is missing")
    assert "garboard change rbac --kubelets" in note


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "its answer was 404", id="not there"),
        pytest.param({"other": {}}, "its answer was no configuration", id="another document"),
        pytest.param({"kubeletconfig": [1]}, "its answer was no configuration", id="another type"),
    ],
)
def test_kubelet_that_does_not_tell_is_noted_and_the_next_one_asked(
    api: PagedApi, admin: str, content: Any, said: str
) -> None:
    serve(api, f1())
    if content is None:
        del api.objects[configz("w1")]
    else:
        api.objects[configz("w1")] = content
    found = with_kubelets(observe_cluster(admin), admin)
    assert [*found.kubelets] == ["cp1", "w2"]
    assert found.notes == (f"what the kubelet of w1 runs with: {said}",)


def test_connection_that_breaks_is_noted_and_the_next_kubelet_asked(api: PagedApi, admin: str) -> None:
    serve(api, f1())
    api.fail("GET", configz("w1"), "unanswered", "unanswered")
    found = with_kubelets(observe_cluster(admin), admin)
    assert [*found.kubelets] == ["cp1", "w2"]
    assert found.notes == ("what the kubelet of w1 runs with: it did not answer in time",)


def test_many_kubelets_that_are_silent_are_not_all_waited_for(api: PagedApi, admin: str) -> None:
    workers = tuple(f"w{number:02}" for number in range(1, 31))
    serve(api, f1(workers=workers))
    for name in workers:
        api.fail("GET", configz(name), "unanswered", "unanswered")
    found = with_kubelets(observe_cluster(admin), admin)
    assert {*asked(api)} == {configz(name) for name in ("cp1", "w01", "w02", "w03")}
    assert [*found.kubelets] == ["cp1"]
    silent, others = found.notes
    assert silent == "what the kubelet of w01, w02, w03 runs with: it did not answer in time"
    assert others.startswith("what the kubelet of w04, w05, w06, ")
    assert others.endswith(", w13 and 17 more runs with: not asked, because others did not answer")


def test_node_that_is_not_ready_is_not_asked(api: PagedApi, admin: str) -> None:
    made = f1()
    down = msgspec.structs.replace(made.nodes[1], is_ready=False)
    serve(api, msgspec.structs.replace(made, nodes=[made.nodes[0], down, made.nodes[2]]))
    found = with_kubelets(observe_cluster(admin), admin)
    assert asked(api) == [configz("cp1"), configz("w2")]
    assert found.notes == ("what the kubelet of w1 runs with: the node is not ready",)


def test_user_of_a_kubelet_is_not_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    place = tmp_path / KUBELET_CONF.removeprefix("/")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"{}")
    observed = ObservedCluster(snapshot=f1(), here="w1", is_whole=False)
    with inside(str(tmp_path)):
        found = with_kubelets(observed, None)
    assert (found.kubelets, found.notes) == ({}, (f"what kubelets run with: {KUBELET_CONF} may not ask",))
