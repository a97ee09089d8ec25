"""Objects replaced in exactly one version, or made once, by a real API server."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from garboard.engine import Note, PutObject, StalePlan, Step, StepContext
from garboard.kube import KubeClient, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.change_record import read_record
from garboard.node.interpreters.objects import ObjectInterpreter, put_object
from garboard.phases.change_record import ChangeRecord
from garboard.phases.node.revisions import RecordedConfiguration, record_first_revision, record_next_revision
from garboard.phases.revision import read_revision, read_target
from tests.support.change.nodes_in_change import Objects
from tests.support.engine.actions import MemoryFiles
from tests.support.kube.real_server import real_api_server

pytestmark = pytest.mark.real
REF = ObjectRef("ConfigMap", "default", "x")


@pytest.fixture(scope="module")
def cluster(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeClient]:
    folder = tmp_path_factory.mktemp("server")
    with real_api_server(binaries, str(DEFAULT_VERSION), folder) as access, KubeClient(access) as client:
        yield client


def content(**data: str) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def version_of(cluster: KubeClient) -> str:
    found: Any = cluster.require("ConfigMap", "default", "x")
    return str(found["metadata"]["resourceVersion"])


def test_only_the_version_that_was_planned_for_is_replaced(cluster: KubeClient) -> None:
    cluster.create(REF, content(a="1"))
    planned = PutObject.of(content(a="2"), resource_version=version_of(cluster))
    put_object(cluster, planned)
    written = version_of(cluster)
    put_object(cluster, planned)  # as a run does that was killed before it knew
    assert version_of(cluster) == written
    cluster.replace(REF, content(a="3"))
    with pytest.raises(StalePlan, match="ConfigMap default/x has changed since"):
        put_object(cluster, planned)
    put_object(cluster, replace(planned, resource_version=version_of(cluster)))
    assert cluster.require("ConfigMap", "default", "x")["data"] == {"a": "2"}
    cluster.delete(REF)
    with pytest.raises(StalePlan, match="ConfigMap default/x has gone"):
        put_object(cluster, planned)


def test_version_that_was_planned_for_keeps_what_others_have_written(cluster: KubeClient) -> None:
    made = content(a="1", other="theirs")
    made["metadata"]["annotations"] = {"example.com/of": "theirs"}
    cluster.create(REF, made)
    planned = PutObject.of(content(a="2"), resource_version=version_of(cluster), keeps_other_data=True)
    put_object(cluster, planned)
    found: Any = cluster.require("ConfigMap", "default", "x")
    assert found["data"] == {"a": "2", "other": "theirs"}
    assert found["metadata"]["annotations"] == {"example.com/of": "theirs"}
    put_object(cluster, planned)  # as a run does that was killed before it knew
    assert version_of(cluster) == found["metadata"]["resourceVersion"]
    cluster.replace(REF, content(a="2", other="moved"))
    with pytest.raises(StalePlan, match="ConfigMap default/x has changed since"):
        put_object(cluster, replace(planned, content=content(a="3")))
    cluster.delete(REF)


def put_all(cluster: KubeClient, steps: Iterable[Step | Note]) -> list[str]:
    """Carry the steps out, and return the warnings."""
    warnings: list[str] = []
    interpreter = ObjectInterpreter(Objects(cluster), MemoryFiles())
    for step in steps:
        assert isinstance(step, Step)
        if isinstance(step.action, PutObject):
            interpreter.put(step.action, StepContext({}, warnings.append, lambda _facts: None))
    return warnings


def test_record_of_a_cluster_is_made_once_and_repeated_without_an_error(cluster: KubeClient) -> None:
    """An init over the etcd of an earlier cluster, and a step that is repeated after a kill: they are immutable."""
    first = RecordedConfiguration(kubernetes_version="v1.37.1", documents={"kubeadm-config": "a: 1\n"})
    other = RecordedConfiguration(kubernetes_version="v1.37.1", documents={"kubeadm-config": "a: 2\n"})
    for made in (first, first, other):
        put_all(cluster, record_first_revision(made, "cp1", "alice"))
    revision = read_revision(cluster.require("ConfigMap", "kube-system", "garboard-revision-0"))
    assert revision.documents == first.documents
    assert datetime.fromisoformat(revision.created) <= datetime.now(UTC)
    target = read_target(cluster.require("ConfigMap", "kube-system", "garboard-change"))
    assert target is not None
    assert target.digest == revision.digest
    record = ChangeRecord(revisions={0: revision}, target=target)
    upgraded = replace(other, kubernetes_version="v1.38.0")
    for _ in range(2):  # the second time as a run that was killed before it knew
        put_all(cluster, record_next_revision(record, other, upgraded, "cp1"))
    names = [cluster.find("ConfigMap", "kube-system", f"garboard-revision-{number}") for number in (1, 2, 3)]
    assert [each is not None for each in names] == [True, True, False]


def test_record_that_somebody_has_written_meanwhile_stays_and_an_upgrade_ends_well(cluster: KubeClient) -> None:
    """Such as the next control plane's, while the run of this one was cut short."""
    for name in ("garboard-revision-0", "garboard-revision-1", "garboard-revision-2", "garboard-change"):
        if cluster.find("ConfigMap", "kube-system", name):
            cluster.delete(ObjectRef("ConfigMap", "kube-system", name))
    first = RecordedConfiguration(kubernetes_version="v1.36.4", documents={"kubeadm-config": "a: 1\n"})
    put_all(cluster, record_first_revision(first, "cp1", "alice"))
    record = read_record(cluster)
    planned = [
        [*record_next_revision(record, first, replace(first, kubernetes_version=version), node)]
        for node, version in (("cp1", "v1.37.0"), ("cp2", "v1.37.1"))
    ]
    assert put_all(cluster, planned[1]) == []
    before = read_record(cluster)
    told = [f"ConfigMap kube-system/garboard-change has changed since version {record.target_version}"]
    for _ in range(2):  # and when it is resumed
        assert put_all(cluster, planned[0]) == [f"warning: {each}; it is left as it is" for each in told]
    assert read_record(cluster) == before
    assert before.target is not None
    assert (before.target.canary, before.revisions[1].kubernetes_version) == ("cp2", "v1.37.1")
