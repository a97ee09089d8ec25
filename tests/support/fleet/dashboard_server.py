"""`garboard fleet dashboard` as a process, on a real API server with the example fleet and people who change it."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from garboard.fleet.controllers import Stored
from garboard.kube import Access, KubeClient, ObjectRef, PatchFormat
from tests.support.browser import wait_for
from tests.support.fleet.controller_process import GARBOARD
from tests.support.fleet.dashboard_fleet import EVERYTHING, HIVE

_NEEDED: dict[str, dict[str, Any]] = {
    "ClusterPool": {"platform": {"none": {}}, "baseDomain": "example.com", "imageSetRef": {"name": "img"}},
    "ClusterDeployment": {
        "platform": {"none": {}}, "baseDomain": "example.com",
        "provisioning": {"installConfigSecretRef": {"name": "config"}},
    },
    "ClusterProvision": {
        "infraID": "made-x7k2p", "clusterID": "id", "adminKubeconfigSecretRef": {"name": "admin-kubeconfig"},
    },
}  # fmt: skip
_METADATA: dict[str, Any] = {
    "infraID": "made-x7k2p",
    "clusterID": "id",
    "adminKubeconfigSecretRef": {"name": "admin-kubeconfig"},
}


class RealFleet:
    """Objects of a fleet on a real API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def put_everything(self) -> None:
        for content in EVERYTHING:
            self.put(content)

    def put(self, content: dict[str, Any]) -> None:
        """Create an object, with what a real API server asks for beside what a dashboard shows, and its status."""
        stored = Stored(content)
        ref, namespace = ref_of(stored), ObjectRef("Namespace", "", stored.namespace)
        if self._client.find("Namespace", "", stored.namespace) is None:
            self._client.create(namespace, {"metadata": {"name": stored.namespace}})
        spec = {**_NEEDED.get(stored.kind, {}), **content["spec"]}
        if spec.get("installed"):
            spec["clusterMetadata"] = {**_METADATA, **spec.get("clusterMetadata", {})}
        elif "clusterMetadata" in spec:
            spec["clusterMetadata"] = {**_METADATA, **spec["clusterMetadata"]}
        claim = stored.text("spec", "clusterPoolRef", "claimName")
        if claim:
            spec["clusterPoolRef"] = {key: value for key, value in spec["clusterPoolRef"].items() if key != "claimName"}
        metadata: dict[str, Any] = {"name": stored.name, "namespace": stored.namespace}
        if stored.is_deleting:
            metadata["finalizers"] = ["hive.openshift.io/deprovision"]
        self._client.create(ref, {"apiVersion": HIVE, "kind": stored.kind, "metadata": metadata, "spec": spec})
        if claim:
            self._client.patch(ref, {"spec": {"clusterPoolRef": {"claimName": claim}}}, PatchFormat.MERGE)
        if content.get("status"):
            self.say(content)
        if stored.is_deleting:
            self._client.delete(ref)

    def say(self, content: dict[str, Any]) -> None:
        """Write the status of an object that is there."""
        status = {"status": content["status"]}
        self._client.patch(ref_of(Stored(content)), status, PatchFormat.MERGE, subresource="status")

    def delete(self, content: dict[str, Any]) -> None:
        self._client.delete(ref_of(Stored(content)))


def ref_of(stored: Stored) -> ObjectRef:
    return ObjectRef(stored.kind, stored.namespace, stored.name, HIVE)


def token_of(access: Access, namespace: str, account: str) -> str:
    """Return a token of a service account."""
    with KubeClient(access) as client:
        asked: Any = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
        made = client.create(ObjectRef("ServiceAccount", namespace, account), asked, subresource="token")
    return Stored(made).text("status", "token")


@contextmanager
def dashboard(folder: Path, *words: str) -> Iterator[str]:
    """Run the command; the URL that it prints is yielded."""
    out, log = folder / "dashboard.out", folder / "dashboard.log"
    with out.open("wb") as printed, log.open("wb") as told:
        process = subprocess.Popen([GARBOARD, "fleet", "dashboard", *words], stdout=printed, stderr=told)
    try:
        wait_for(lambda: out.read_text().endswith("\n") or process.poll() is not None, "it prints its URL")
        assert process.poll() is None, log.read_text()
        yield out.read_text().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0, log.read_text()
    assert "Traceback" not in log.read_text()


def quoted(text: str) -> str:
    """Return a text as a script writes it."""
    return json.dumps(text)
