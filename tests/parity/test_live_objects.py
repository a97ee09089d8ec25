"""ConfigMaps, RBAC, tokens and addons in a live API server: put by kubeadm into one cluster, by us into another."""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.parity.live import (
    ADMIN_BINDING,
    LiveCluster,
    Object,
    Programs,
    control_plane,
    make_node_files,
    name_of,
    when_ready,
)
from tests.support.parity.node_run import CONFIGURATIONS, Configuration
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
NAMES = ("component-configurations", "dual-stack", "patches-json", "tokens")
CASES = [Configuration(CONFIGURATIONS / f"{name}.yaml") for name in NAMES]
# What the server gives to each object itself; who manages which field is compared too, but not since when.
ASSIGNED = ("uid", "resourceVersion", "creationTimestamp")
TOKEN_PREFIX = "bootstrap-token-"
DRAWN = ("token-id", "token-secret", "expiration")


@dataclass(frozen=True)
class Pair:
    """Two clusters with the same files, each emptied before a test."""

    theirs: LiveCluster
    ours: LiveCluster

    def configured(self, configuration: Configuration) -> "Pair":
        for each in (self.theirs, self.ours):
            each.empty()
            each.configure(configuration)
        return self


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def clusters(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    programs = Programs.of(str(request.param), binaries)
    roots = [tmp_path_factory.mktemp(name) for name in ("theirs", "ours")]
    machines = [Machine.make(root) for root in roots]
    make_node_files(machines[0], programs.version)
    machines[1].put_tree("/etc/kubernetes", roots[0] / "etc/kubernetes")
    with ExitStack() as stack:
        started = [stack.enter_context(control_plane(machine, programs)) for machine in machines]
        yield Pair(*map(when_ready, started))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("configuration", CASES, ids=lambda each: each.name)
def test_objects_of_both_are_equal(clusters: Pair, configuration: Configuration) -> None:
    pair = clusters.configured(configuration)
    pair.theirs.put_by_kubeadm()
    pair.ours.put_by_garboard()
    expected = comparable(pair.theirs)
    assert {"Deployment kube-system/coredns", "ConfigMap kube-public/cluster-info"} <= set(expected)
    assert ADMIN_BINDING in expected
    assert len(expected) >= 29
    assert comparable(pair.ours) == expected


def test_putting_again_changes_nothing(clusters: Pair) -> None:
    """Tokens aside: both give them their time anew."""
    cluster = clusters.configured(CASES[-1]).theirs
    cluster.put_by_kubeadm()
    first = versions(cluster)
    cluster.put_by_kubeadm()
    assert versions(cluster) == first, "kubeadm itself changes something"
    cluster.put_by_garboard()
    assert versions(cluster) == first


def test_what_an_owner_changed_is_kept_or_put_right_as_kubeadm_does_it(clusters: Pair) -> None:
    pair = clusters.configured(CASES[-1])
    for cluster, put in ((pair.theirs, pair.theirs.put_by_kubeadm), (pair.ours, pair.ours.put_by_garboard)):
        put()
        patch(cluster, "deployment/coredns", {"spec": {"replicas": 5, "minReadySeconds": 7}})
        patch(cluster, "configmap/coredns", {"data": {"Corefile": ".:53 {\n    whoami\n}\n", "other": "x"}})
        patch(cluster, "configmap/kubeadm-config", {"data": {"ClusterStatus": "x", "ClusterConfiguration": "old"}})
        patch(cluster, "configmap/kubelet-config", {"data": {"other": "x"}, "metadata": {"labels": {"mine": "x"}}})
        patch(cluster, "role/kube-proxy", {"rules": []})
        patch(cluster, "service/kube-dns", {"spec": {"selector": {"mine": "x"}}})
        patch(cluster, "daemonset/kube-proxy", {"spec": {"minReadySeconds": 7}})
        put()
    expected, found = comparable(pair.theirs), comparable(pair.ours)
    assert found == expected
    assert found["Deployment kube-system/coredns"]["spec"]["replicas"] == 5
    assert "minReadySeconds" not in found["Deployment kube-system/coredns"]["spec"]
    assert "whoami" in found["ConfigMap kube-system/coredns"]["data"]["Corefile"]
    assert found["ConfigMap kube-system/kubeadm-config"]["data"]["ClusterStatus"] == "x"
    assert set(found["ConfigMap kube-system/kubelet-config"]["data"]) == {"kubelet"}


OLD_COREFILE = """\
.:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        upstream
        resyncperiod 5m
    }
    forward . /etc/resolv.conf
    forward example.org 192.0.2.1
    log
}
"""
STRANGE_COREFILE = OLD_COREFILE.replace(".:53", "example.org:53")
OWNERS_COREFILE = ".:53 {\n    whoami\n}\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("tag", "corefile"), [
    pytest.param("1.3.1", OLD_COREFILE, id="migrated"),
    pytest.param("v1.3.1", OLD_COREFILE, id="tag that is not understood"),
    pytest.param("1.3.1", STRANGE_COREFILE, id="cannot be migrated"),
    pytest.param("v1.9.3", OWNERS_COREFILE, id="nothing to migrate"),
    pytest.param("v1.9.3", "# nothing\n", id="no server"),
])  # fmt: skip
def test_corefile_of_an_older_release_is_treated_as_kubeadm_treats_it(clusters: Pair, tag: str, corefile: str) -> None:
    pair = clusters.configured(CASES[-1])
    for cluster, put in ((pair.theirs, pair.theirs.put_by_kubeadm), (pair.ours, pair.ours.put_by_garboard)):
        put(["addon coredns"])
        patch(cluster, "configmap/coredns", {"data": {"Corefile": corefile, "other": "x"}})
        image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": f"example/coredns:{tag}"}]
        cluster.kubectl("patch", "-n", "kube-system", "deployment/coredns", "--type=json", "-p", json.dumps(image))
        put(["addon coredns"])
    assert comparable(pair.ours) == comparable(pair.theirs)


def patch(cluster: LiveCluster, what: str, change: Object) -> None:
    cluster.kubectl("patch", "-n", "kube-system", what, "--type=merge", "-p", json.dumps(change))


def versions(cluster: LiveCluster) -> dict[str, str]:
    found = cluster.objects().items()
    return {name: each["metadata"]["resourceVersion"] for name, each in found if TOKEN_PREFIX not in name}


def comparable(cluster: LiveCluster) -> dict[str, Object]:
    """Return the objects without what the server assigns and what is drawn."""
    found = (_without_assigned(each) for each in cluster.objects().values())
    kept = [_without_drawn(each) if each["metadata"]["name"].startswith(TOKEN_PREFIX) else each for each in found]
    named = {name_of(each): each for each in kept}
    assert len(named) == len(kept)
    return named


def _without_assigned(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in ASSIGNED}
    # They are in the order of their times, by the second.
    managed = ({**each, "time": ""} for each in metadata.get("managedFields", ()))
    metadata["managedFields"] = sorted(managed, key=lambda each: (each["manager"], each["operation"]))
    return {**item, "metadata": metadata}


def _without_drawn(secret: Object) -> Object:
    """Return the Secret of a token; only those whose secret is the tests' own keep their name."""
    data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    is_fixed = data["token-secret"] in ("0123456789abcdef", "bbbbbbbbbbbbbbbb", "dddddddddddddddd")
    drawn = ("expiration",) if is_fixed else DRAWN
    name = secret["metadata"]["name"] if is_fixed else f"{TOKEN_PREFIX}drawn"
    data |= {key: "" for key in drawn if key in data}
    return {**secret, "metadata": {**secret["metadata"], "name": name}, "data": data}
