"""One attempt of a controller at making a cluster, or at destroying it: a process of its own, with a work folder.

What the cluster is made of stands in a Secret of the attempt. Before anything is made, infraID, metadata and
credentials are on record in the API server, and the controller has agreed. Begun again after a kill, it goes on.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError, NotReady
from garboard.fleet import CustomizationFailed, ProvisionRequest, load_documents, resolve_deployment
from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.attempt import DOCUMENTS, documents_name
from garboard.fleet.controllers.conditions import Said, with_conditions
from garboard.fleet.controllers.install_configs import secret_text
from garboard.fleet.controllers.marks import API_VERSION, DEPLOYMENT_NAME, PROVISION_NAME, SECRET_TYPE
from garboard.fleet.controllers.provisions import owner
from garboard.fleet.controllers.stored import ObjectId
from garboard.fleet.installers.contract import METADATA, read_metadata
from garboard.fleet.names import derived_name
from garboard.fleet.provision import AttemptRecord, OutputScrubber, ProvisionRecord, record_bytes
from garboard.host.work_folder import WorkFolder
from garboard.kube import KubeClient, ObjectConflict, ObjectRef
from garboard.model import DEFAULT_VERSION
from garboard.node.fleet.control.serving import find_access
from garboard.node.fleet.orders import environment_for, installer_for, prepare_order, scrubber_for
from garboard.node.fleet.provisioning import FAILURE, RECORD, OwnedCluster, provisioner
from garboard.node.reporter import Reporter
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.schema import load_schema
from garboard.values import dataclass

_AGREED_WITHIN_S = 300.0
_KEPT_LOG, _LONGEST_LOG = 48 * 1024, 256 * 1024 * 1024
_INSTALLER = "installer"
_PATIENCE_S = 300.0  # an API server that is away for a while fails no attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOfController:
    """Which attempt, where it works, and who hears of it."""

    client: KubeClient
    namespace: str
    name: str
    work: Path
    installer: str
    reporter: Reporter
    clock: Clock = CLOCK

    def provision(self) -> None:
        """Make the cluster of a ClusterProvision; what fails it is written there."""
        attempt = self._find("ClusterProvision", self.name)
        if attempt is None or attempt.is_deleting or attempt.text("spec", "stage") in ("complete", "failed"):
            return
        try:
            self._provision(attempt)
        except ClusterUnreachable:
            raise
        except GarboardError as error:
            if error.error_class == "locked":
                raise  # an earlier process is still at work: it says how this ends
            self._fail(error)
            raise

    def _provision(self, attempt: Stored) -> None:
        request = self._request(attempt)
        scrubber = scrubber_for(request)
        prepared = prepare_order(request, lambda: load_schema(DEFAULT_VERSION), self.installer)
        for warning in prepared.warnings:
            self.reporter.report(f"warning: {scrubber.known(warning)}")

        def publish(owned: OwnedCluster) -> None:
            self._publish(owned, prepared.record.installer)

        environment, before = environment_for(request), attempt.text("spec", "prevInfraID")
        if before:
            previous = derived_name(attempt.text("spec", "prevProvisionName"), "metadata-json")
            self._restore(request.name, previous, before)
        with provisioner(
            self.work, "fleet attempt", prepared.record, lambda record: installer_for(record, environment),
            self.reporter, scrubber, publish,
        ) as each:  # fmt: skip
            each.provision(replace(prepared.order, attempts_limit=None))  # the controller counts
        said = Said("ClusterProvisionCompleted", "True", "InstallComplete", "Install job has completed successfully")
        self._write_status("ClusterProvision", self.name, said)
        self._change(lambda found: found.edited(self._log(), "spec", "installLog").edited("complete", "spec", "stage"))

    def _request(self, attempt: Stored) -> ProvisionRequest:
        secret = self._find("Secret", documents_name(attempt), "v1")
        text = secret_text(secret, DOCUMENTS) if secret is not None else None
        if text is None:
            raise NotReady(
                f"Secret {self.namespace}/{documents_name(attempt)} with the documents is missing",
                hint="delete the ClusterProvision: another attempt is made",
                error_class="no-documents",
            )
        documents = load_documents([(f"Secret {documents_name(attempt)}", text.encode())])
        return resolve_deployment(documents, attempt.text("spec", "clusterDeploymentRef", "name"))

    def _publish(self, owned: OwnedCluster, installer: str) -> None:
        """Put on record what is about to be made, and wait until the controller has taken note."""
        attempt = self._require("ClusterProvision", self.name)
        if attempt.text("spec", "infraID") not in ("", owned.infra_id):
            raise NotReady(
                f"this attempt was to make {attempt.text('spec', 'infraID')}, and was cut short",
                hint="another one begins after that was destroyed",
                error_class="cut-short",
            )
        deployment = self._require("ClusterDeployment", attempt.text("spec", "clusterDeploymentRef", "name"))
        password = next(iter(sorted(owned.passwords.items())), None)
        metadata = {METADATA: owned.metadata, _INSTALLER: installer.encode()}
        self._keep(deployment, "metadata-json", "metadata.json", metadata)
        self._keep(deployment, "admin-kubeconfig", "kubeconfig", {"kubeconfig": owned.kubeconfig})
        if password is not None:
            user = password[0].rpartition("-")[0].encode()
            self._keep(deployment, "admin-password", "kubeadmincreds", {"username": user, "password": password[1]})
        cluster_id = read_metadata(owned.metadata, source=METADATA).cluster_id
        said = Said("ClusterProvisionInitialized", "True", "InitializationComplete", "Install job has initialized")
        self._write_status("ClusterProvision", self.name, said)

        def recorded(found: Stored) -> Stored:
            changed = found.edited(owned.infra_id, "spec", "infraID").edited(cluster_id, "spec", "clusterID")
            kubeconfig: Json = {"name": derived_name(self.name, "admin-kubeconfig")}
            changed = changed.edited(kubeconfig, "spec", "adminKubeconfigSecretRef")
            secret: Json = {"name": derived_name(self.name, "admin-password")}
            return changed.edited(secret, "spec", "adminPasswordSecretRef") if password is not None else changed

        self._change(recorded)
        self._await_agreement()

    def _await_agreement(self) -> None:
        def not_agreed() -> str | None:
            found = self._require("ClusterProvision", self.name)
            if found.is_deleting or found.text("spec", "stage") == "failed":
                raise NotReady(f"ClusterProvision {self.name} was given up", hint="another attempt may follow")
            is_agreed = found.text("spec", "stage") == "provisioning"
            return None if is_agreed else f"the stage is {found.text('spec', 'stage')}"

        waits = wait_until(not_agreed, timeout_s=_AGREED_WITHIN_S, pauses=Pauses.every(1.0), clock=self.clock)
        if waits is not None:
            raise NotReady(
                f"the controller has not agreed within {_AGREED_WITHIN_S:.0f} s: {waits}",
                hint="look at the log of the controller",
                error_class="not-agreed",
            )

    def _keep(self, deployment: Stored, suffix: str, type_: str, files: dict[str, bytes]) -> None:
        """Write a Secret of the attempt; it goes with the deployment."""
        name = derived_name(self.name, suffix)
        data: dict[str, Json] = {key: base64.b64encode(content).decode() for key, content in files.items()}
        metadata: dict[str, Json] = {
            "name": name,
            "namespace": self.namespace,
            "labels": {SECRET_TYPE: type_, PROVISION_NAME: self.name, DEPLOYMENT_NAME: deployment.name},
            "ownerReferences": [owner(deployment)],
        }
        content: dict[str, Json] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        ref = ObjectRef("Secret", self.namespace, name, "v1")
        if self._find("Secret", name, "v1") is None:
            self.client.create(ref, content)
        else:
            self.client.replace(ref, content)

    def _fail(self, error: GarboardError) -> None:
        """Write why an attempt has failed, with the end of its log."""
        reason, message = self._reason(error)
        with suppress(ClusterUnreachable):
            said = Said("ClusterProvisionFailed", "True", reason, message)
            self._write_status("ClusterProvision", self.name, said)
            self._change(
                lambda found: found.edited(self._log(), "spec", "installLog").edited("failed", "spec", "stage")
            )

    def _reason(self, error: GarboardError) -> tuple[str, str]:
        if isinstance(error, CustomizationFailed):
            return str(error.failures[0].reason), error.message
        failure: Json = None
        with suppress(GarboardError, ValueError), WorkFolder.opened(self.work) as folder:
            failure = json.loads(folder.read(FAILURE) or b"null")
        told = failure if isinstance(failure, dict) and failure.get("message") == error.message else {}
        reason = str(told.get("reason") or error.error_class)
        if "-" in reason or reason.islower():
            reason = "".join(part.title() for part in reason.split("-"))
        return reason, error.message

    def _log(self) -> str:
        """Return the end of the log, which has no secrets."""
        with suppress(GarboardError), WorkFolder.opened(self.work) as folder:
            text = (folder.read("provision.log", limit=_LONGEST_LOG) or b"").decode("utf-8", "replace")
            return text[-_KEPT_LOG:]
        return ""

    def destroy(self) -> None:
        """Destroy the cluster of a ClusterDeprovision, by the work folder or by the metadata that was recorded."""
        attempt = self._find("ClusterDeprovision", self.name)
        if attempt is None or attempt.at("status", "completed") is True:
            return
        scrubber, environment = self._surroundings(attempt)
        at = ("spec", "metadataJSONSecretRef", "name")
        self._restore(attempt.label(DEPLOYMENT_NAME), attempt.text(*at), attempt.text("spec", "infraID"))
        try:
            with provisioner(
                self.work, "fleet attempt --destroy", None,
                lambda record: installer_for(record, environment), self.reporter, scrubber,
            ) as each:  # fmt: skip
                each.deprovision(again=False)
        except GarboardError as error:
            if error.error_class != "locked":
                reason = "".join(part.title() for part in error.error_class.split("-"))
                said = Said("DeprovisionFailed", "True", reason, error.message)
                self._write_status("ClusterDeprovision", self.name, said)
            raise
        self._write_status("ClusterDeprovision", self.name, None)

    def _surroundings(self, attempt: Stored) -> tuple[OutputScrubber, dict[str, str]]:
        """Return what the installer needs beside the metadata, if the documents of the attempt are still there."""
        deployment = self._find("ClusterDeployment", attempt.label(DEPLOYMENT_NAME))
        name = deployment.text("status", "provisionRef", "name") if deployment is not None else ""
        made = self._find("ClusterProvision", name) if name else None
        if made is None:
            return OutputScrubber(), {}
        try:
            request = self._request(made)
        except NotReady:
            return OutputScrubber(), {}
        return scrubber_for(request), environment_for(request)

    def _restore(self, deployment: str, secret_name: str, infra_id: str) -> None:
        """Give a work folder that has no record one of what was made in another folder, which is to be destroyed."""
        with WorkFolder.opened(self.work) as folder:
            if folder.read(RECORD) is not None:
                return
            secret = self._find("Secret", secret_name, "v1")
            metadata = secret_text(secret, METADATA) if secret is not None else None
            if metadata is None:
                raise NotReady(
                    f"neither {self.work} nor a Secret knows what {infra_id} consists of",
                    hint="destroy it by hand, then set preserveOnDelete of the ClusterDeployment",
                    error_class="no-record",
                )
            assert secret is not None
            found = read_metadata(metadata.encode(), source=METADATA)
            made = AttemptRecord(number=1, stage="create cluster", infra_id=found.infra_id, is_destroying=True)
            record = ProvisionRecord(
                namespace=self.namespace,
                deployment=deployment,
                installer=secret_text(secret, _INSTALLER) or self.installer,
                attempts=(made,),
            )
            folder.write(f"owned/{made.folder}.json", metadata.encode())
            folder.write(RECORD, record_bytes(record))

    def _write_status(self, kind: str, name: str, said: Said | None) -> None:
        """Add a condition; None says that a deprovision is complete."""
        self._repeat(lambda: self._write_status_once(kind, name, said))

    def _write_status_once(self, kind: str, name: str, said: Said | None) -> None:
        found = self._require(kind, name)
        after = found.edited(True, "status", "completed") if said is None else found
        after = with_conditions(after, [said] if said is not None else [], datetime.now(UTC))
        if after.at("status") != found.at("status"):
            ref = ObjectRef(kind, self.namespace, name, API_VERSION)
            self.client.replace(ref, dict(after.tree), subresource="status")

    def _change(self, changed: Callable[[Stored], Stored]) -> None:
        def change() -> None:
            after = changed(self._require("ClusterProvision", self.name))
            self.client.replace(_ref(after.id), dict(after.tree))

        self._repeat(change)

    def _repeat(self, write: Callable[[], None]) -> None:
        for _ in range(20):
            try:
                write()
            except ObjectConflict:
                continue
            return
        write()

    def _find(self, kind: str, name: str, api_version: str = API_VERSION) -> Stored | None:
        found = self.client.find(kind, self.namespace, name, api_version=api_version) if name else None
        return Stored(found) if found is not None else None

    def _require(self, kind: str, name: str) -> Stored:
        return Stored(self.client.require(kind, self.namespace, name, api_version=API_VERSION))


def _ref(key: ObjectId) -> ObjectRef:
    return ObjectRef(key.kind, key.namespace, key.name, API_VERSION)


@contextmanager
def attempt_of_controller(
    kubeconfig: str | None, namespace: str, name: str, work: Path, installer: str, reporter: Reporter
) -> Iterator[AttemptOfController]:
    """Connect to the API server for one attempt."""
    with KubeClient(find_access(kubeconfig), patience_s=_PATIENCE_S, report=reporter.report) as client:
        yield AttemptOfController(
            client=client, namespace=namespace, name=name, work=work, installer=installer, reporter=reporter
        )
