"""What is found of a component, made comparable."""

import copy
from dataclasses import replace
from typing import Any

from garboard.documents import Json
from garboard.drift import DriftSubject, FoundDocument, compare, flags_document, kubelet_command, own_part
from garboard.schema import load_schema
from tests.support.drift.subjects import NEWEST, rendered_target, subject

ENV = b'KUBELET_KUBEADM_ARGS="--hostname-override=node-1 --node-labels=a=b"\n'


def test_the_flags_of_the_kubelet_are_compared_with_its_command_line() -> None:
    on_disk = FoundDocument(flags_document(ENV), "kubeadm-flags.env", ENV)
    words = ["/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml", "--hostname-override=node-1", "--v=4"]
    found = compare(
        DriftSubject(
            component="kubeadm-flags.env",
            where="/var/lib/kubelet/kubeadm-flags.env",
            on_disk=on_disk,
            running=FoundDocument(kubelet_command(words), "the kubelet's command line"),
        )
    )
    assert [(each.field, each.kind.value) for each in found] == [
        ("KUBELET_KUBEADM_ARGS[--node-labels]", "stale"),
        ("KUBELET_KUBEADM_ARGS[--v]", "stale"),
    ]


def test_flags_without_quotes_and_with_an_open_quote_are_read() -> None:
    assert flags_document(b"KUBELET_KUBEADM_ARGS=--v=4\n") == {"KUBELET_KUBEADM_ARGS": ["--v=4"]}
    assert flags_document(b'KUBELET_KUBEADM_ARGS="--v=4\n') == {"KUBELET_KUBEADM_ARGS": ['"--v=4']}
    assert flags_document(b"") == {"KUBELET_KUBEADM_ARGS": []}


def mirror(document: Any) -> dict[str, Any]:
    """Return a static Pod as a kubelet mirrors it, with the defaults of the API server."""
    pod: dict[str, Any] = copy.deepcopy(document)
    metadata, spec = pod["metadata"], pod["spec"]
    metadata.update(
        uid="1",
        resourceVersion="7",
        creationTimestamp="2026-01-01T00:00:00Z",
        ownerReferences=[{"kind": "Node", "name": "node-1"}],
        annotations={
            **metadata.get("annotations", {}),
            "kubernetes.io/config.hash": "0",
            "kubernetes.io/config.mirror": "0",
            "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
            "kubernetes.io/config.source": "file",
        },
    )
    spec.update(
        nodeName="node-1",
        enableServiceLinks=True,
        terminationGracePeriodSeconds=30,
        tolerations=[{"effect": "NoExecute", "operator": "Exists"}],
        preemptionPolicy="PreemptLowerPriority",
    )
    for each in spec["containers"]:
        each.update(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
        for port in each["ports"]:
            port["hostPort"] = port["containerPort"]
    pod["status"] = {"phase": "Running"}
    return pod


def test_a_mirror_pod_is_what_its_manifest_says() -> None:
    plain = subject("etcd")
    assert plain.on_disk is not None
    running = FoundDocument(own_part(mirror(plain.on_disk.document)), "Pod kube-system/etcd-node-1")
    assert compare(replace(plain, running=running)) == ()


def live_dns(**spec: Json) -> dict[str, Json]:
    """Return the Deployment of CoreDNS as the API server shows it."""
    live: Any = copy.deepcopy(rendered_target("corednsdeployment").document)
    live["metadata"].update(uid="x", generation=3, annotations={"deployment.kubernetes.io/revision": "2"})
    live["spec"].update({"progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, **spec})
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    live["spec"]["template"]["metadata"]["annotations"] = restarted
    live["status"] = {"replicas": 2}
    found: dict[str, Json] = live
    return found


def dns(live: dict[str, Json]) -> DriftSubject:
    declared = subject("corednsdeployment").rendered
    shape = load_schema(NEWEST).type_of("apps/v1", "Deployment")
    found = FoundDocument(own_part(live), "Deployment kube-system/coredns")
    return DriftSubject(
        component="corednsdeployment", where=found.source, shape=shape, rendered=declared, running=found
    )


def test_a_deployment_with_what_the_cluster_adds_does_not_differ() -> None:
    assert compare(dns(live_dns())) == ()


def test_a_deployment_that_was_edited_differs_in_what_was_edited() -> None:
    (found,) = compare(dns(live_dns(minReadySeconds=7)))
    assert (found.field, found.kind.value, found.running.value) == ("spec.minReadySeconds", "hand-edit", 7)
