"""The provisioner of one deployment: its stages in a work folder, each recorded before and after.

A process that ends anywhere leaves a record that the next one goes on from: nothing that was made is forgotten, for the
infraID is on disk before anything costs money.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TypeAlias

from garboard.errors import GarboardError, NotReady
from garboard.fleet import CustomizationFailed
from garboard.fleet.customize import FailureReason
from garboard.fleet.installers.contract import (
    CREATE_CLUSTER,
    CREATE_IGNITION_CONFIGS,
    CREATE_MANIFESTS,
    DESTROY_CLUSTER,
    INSTALL_CONFIG,
    KUBECONFIG,
    METADATA,
    BadMetadata,
    Installer,
    Verb,
    read_metadata,
)
from garboard.fleet.provision import (
    AttemptRecord,
    BeginAttempt,
    DestroyAttempt,
    DiscardAttempt,
    OutputScrubber,
    Provisioned,
    ProvisionRecord,
    RunStage,
    StageName,
    attempts_to_destroy,
    next_action,
    read_record,
    record_bytes,
)
from garboard.fleet.provision.stages import begun, done
from garboard.host.removal import remove_folder
from garboard.host.work_folder import WorkFolder
from garboard.node.reporter import Reporter
from garboard.values import Json, dataclass

RECORD, FAILURE = "provision.json", "failure.json"
_DOCUMENTS = "documents"  # the stage of what is refused before anything begins
_VERBS: Mapping[StageName, Verb] = {
    "create manifests": CREATE_MANIFESTS,
    "create ignition-configs": CREATE_IGNITION_CONFIGS,
    "create cluster": CREATE_CLUSTER,
}
_PASSWORDS = "-password"
_OTHER_DOCUMENTS = "the documents have changed since it began, and it goes on with what they said then"
# What reading and writing the files of an attempt fails with.
_FILE_ERRORS = ("unreadable", "unwritable", "too-large")
Customize: TypeAlias = Callable[[Mapping[str, bytes | str]], "Customized"]


@dataclass(frozen=True, slots=True)
class Customized:
    """The files that customizations change, and what is doubtful about them."""

    files: Mapping[str, bytes] = field(repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionOrder:
    """What is to be made of one deployment."""

    namespace: str
    deployment: str
    install_config: bytes = field(repr=False)
    customize: Customize = field(repr=False)
    extra_manifests: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # by their name in manifests/
    attempts_limit: int | None = None
    digest: str = ""  # of the documents that it was made of


@dataclass(frozen=True, slots=True)
class OwnedCluster:
    """What an attempt is about to make: who else keeps it can find the cluster again, and use it."""

    infra_id: str
    metadata: bytes = field(repr=False)
    kubeconfig: bytes = field(repr=False)
    passwords: Mapping[str, bytes] = field(repr=False)  # by their names in auth/


# Tells somebody else what is about to be made; nothing is made before it has returned.
Publish: TypeAlias = Callable[[OwnedCluster], None]
# Makes the installer, with the descriptor of the lock that its programs are to hold.
InstallerOf: TypeAlias = Callable[[OutputScrubber, Reporter, int], Installer]


class ScrubbedReporter:
    """Passes lines on without secrets, and keeps them in a log."""

    def __init__(self, reporter: Reporter, scrubber: OutputScrubber, folder: WorkFolder) -> None:
        self._reporter, self._scrubber, self._folder = reporter, scrubber, folder
        self.log = "provision.log"
        self._is_broken = False

    def report(self, line: str, /) -> None:
        scrubbed = self._scrubber.line(line)
        self._keep(f"{scrubbed}\n".encode())
        self._reporter.report(scrubbed)

    def begin(self) -> None:
        """Refuse a log that cannot be written before anything has begun."""
        self._folder.append(self.log, b"")

    def _keep(self, line: bytes) -> None:
        """Add to the log; later on, a full disk is no reason to end what makes or destroys a cluster."""
        try:
            self._folder.append(self.log, line)
        except GarboardError as error:
            if not self._is_broken:
                self._reporter.report(f"warning: {error.message}; what follows is in no log")
            self._is_broken = True

    def show(self, text: str, /) -> None:
        self._reporter.show(self._scrubber.text(text))

    def ask(self, question: str, /) -> str:
        return ""  # an installer asks nothing


class Provisioner:
    """Makes the cluster of a deployment in an open, locked work folder, or takes back what was made of it."""

    def __init__(
        self, folder: WorkFolder, record: ProvisionRecord, installer: Installer, reporter: Reporter,
        scrubber: OutputScrubber, publish: "Publish | None" = None,
    ) -> None:  # fmt: skip
        self._folder, self._record, self._installer = folder, record, installer
        self._reporter, self._scrubber, self._publish = reporter, scrubber, publish

    def provision(self, order: ProvisionOrder) -> None:
        """Carry out stage after stage until the cluster is there."""
        own: int | None = None
        while True:
            action = next_action(self._record, resumes=self._installer.resumes, own=own)
            match action:
                case Provisioned():
                    return
                case BeginAttempt(number):
                    self._begin(number, order)
                    own = number
                case DiscardAttempt(number):
                    self._reporter.report(f"[attempt {number}] it had made nothing, and is left as it is")
                    self._save(self._record.with_attempt(replace(self._attempt, end="discarded")))
                case DestroyAttempt(_):
                    self._destroy(self._attempt)
                case RunStage(stage):
                    if own is None and self._attempt.digest != order.digest:
                        self._reporter.report(f"[attempt {self._attempt.number}] warning: {_OTHER_DOCUMENTS}")
                    own = self._attempt.number
                    self._run(stage, order)

    def resume(self) -> None:
        """Go on with the last attempt with what it began with: without documents, which may have changed or gone."""
        own: int | None = None
        while True:
            action = next_action(self._record, resumes=self._installer.resumes, own=own)
            if isinstance(action, Provisioned):
                return
            if not isinstance(action, RunStage):
                raise NotReady(
                    f"{self._folder.path} has no attempt that can go on without its documents",
                    hint="name them with -f and --deployment, or take everything back: garboard fleet deprovision",
                    error_class="no-attempt",
                )
            own = self._attempt.number
            self._run(action.stage, None)

    def deprovision(self, *, again: bool) -> bool:
        """Destroy what attempts may own; say whether there was anything."""
        found = [each for each in self._record.attempts if each.infra_id] if again else ()
        attempts = found or attempts_to_destroy(self._record)
        for each in attempts:
            self._destroy(each)
        last = self._record.last
        if last is not None and not last.end:
            self._save(self._record.with_attempt(replace(last, end="discarded")))
        for name in (KUBECONFIG.rpartition("/")[2], METADATA, FAILURE):
            self._folder.remove(name)
        return bool(attempts)

    def results(self) -> dict[str, str]:
        """Return which cluster it is, and where what the user is given has been written."""
        paths = {name: str(self._folder.path / name) for name in ("kubeconfig", METADATA)}
        return {
            "deployment": f"{self._record.namespace}/{self._record.deployment}",
            "infraID": self._attempt.infra_id,
            "kubeconfig": paths["kubeconfig"],
            "metadata": paths[METADATA],
        }

    @property
    def _attempt(self) -> AttemptRecord:
        assert self._record.last is not None
        return self._record.last

    def _save(self, record: ProvisionRecord) -> None:
        self._folder.write(RECORD, record_bytes(record))
        self._record = record

    def _begin(self, number: int, order: ProvisionOrder) -> None:
        if order.attempts_limit is not None and number > order.attempts_limit:
            raise NotReady(
                f"{order.attempts_limit} attempts were made, as many as installAttemptsLimit of {order.deployment} "
                "allows",
                hint="find out why they failed, then raise it; garboard fleet deprovision takes back what is left",
                error_class="attempts-limit",
            )
        self._save(self._record.with_attempt(AttemptRecord(number=number, digest=order.digest)))
        self._folder.make_folder(self._attempt.folder)
        self._folder.write(f"{self._attempt.folder}/{INSTALL_CONFIG}", order.install_config)

    def _run(self, stage: StageName, order: ProvisionOrder | None) -> None:
        self._save(begun(self._record, stage))
        attempt = self._attempt
        self._reporter.report(f"[attempt {attempt.number}] {stage}")
        infra_id = ""
        try:
            if stage in _VERBS:
                if stage == CREATE_CLUSTER and self._publish is not None:
                    self._publish(self._owned_by(attempt))
                self._installer.run(_VERBS[stage], self._folder.path / attempt.folder)
                self._learn(attempt)
            elif stage == "patch":
                assert order is not None, "manifests are patched by the process that began the attempt"
                self._patch(attempt, order)
            elif stage == "record":
                infra_id = self._own(attempt)
            else:
                self._collect(attempt)
        except GarboardError as error:
            self._fail(stage, error, attempt.number)
            raise
        self._save(done(self._record, infra_id=infra_id))

    def _patch(self, attempt: AttemptRecord, order: ProvisionOrder) -> None:
        for name, data in order.extra_manifests.items():
            self._folder.write(f"{attempt.folder}/manifests/{name}", data)
        customized = order.customize(self._folder.tree(attempt.folder))
        for warning in customized.warnings:
            self._reporter.report(f"warning: {warning}")
        for path, data in sorted(customized.files.items()):
            self._folder.write(f"{attempt.folder}/{path}", data)
            self._reporter.report(f"[patch] {path}")

    def _own(self, attempt: AttemptRecord) -> str:
        """Keep what the attempt is going to own, so that it can be destroyed whatever happens to its folder."""
        data = self._folder.read(f"{attempt.folder}/{METADATA}")
        found = read_metadata(data, source=METADATA)
        if any(each.infra_id == found.infra_id for each in self._record.attempts if each.number != attempt.number):
            raise BadMetadata(f"{METADATA} has the infraID of an earlier attempt", hint="nothing has been made of it")
        if self._folder.read(f"{attempt.folder}/{KUBECONFIG}") is None:
            raise BadMetadata(f"the installer has written no {KUBECONFIG}", hint="nothing has been made yet")
        assert data is not None
        self._folder.write(_owned(attempt), data)
        self._reporter.report(f"[record] infraID {found.infra_id}")
        return found.infra_id

    def _collect(self, attempt: AttemptRecord) -> None:
        kubeconfig = self._folder.read(f"{attempt.folder}/{KUBECONFIG}")
        if kubeconfig is None:
            raise BadMetadata(f"the installer has written no {KUBECONFIG}", hint="the cluster is there: look for it")
        self._folder.write("kubeconfig", kubeconfig)
        metadata = read_metadata(self._folder.read(_owned(attempt)), source=METADATA)
        scrubbed = self._scrubber.document(metadata.document)
        self._folder.write(METADATA, (json.dumps(scrubbed, indent=2) + "\n").encode())
        for path, data in self._auth(attempt):
            if path.endswith(_PASSWORDS):
                self._folder.write(path, data)
        self._folder.remove(FAILURE)

    def _owned_by(self, attempt: AttemptRecord) -> "OwnedCluster":
        kubeconfig = self._folder.read(f"{attempt.folder}/{KUBECONFIG}")
        metadata = self._folder.read(_owned(attempt)) or b""
        passwords = {path: data for path, data in self._auth(attempt) if path.endswith(_PASSWORDS)}
        return OwnedCluster(attempt.infra_id, metadata, kubeconfig or b"", passwords)

    def _learn(self, attempt: AttemptRecord) -> None:
        """Know the credentials that the installer has made, before anything else is printed."""
        passwords = [data for path, data in self._auth(attempt) if path.endswith(_PASSWORDS)]
        self._scrubber.learn(*(each.decode("utf-8", "replace") for each in passwords))

    def _auth(self, attempt: AttemptRecord) -> Iterator[tuple[str, bytes]]:
        if (self._folder.path / attempt.folder / "auth").is_dir():
            for path, data in self._folder.tree(f"{attempt.folder}/auth").items():
                if isinstance(data, bytes) and "/" not in path:
                    yield path, data

    def _destroy(self, attempt: AttemptRecord) -> None:
        """Destroy what an attempt owns by its metadata alone, in a new folder."""
        self._save(self._record.with_attempt(replace(attempt, is_destroying=True)))
        self._reporter.report(f"[attempt {attempt.number}] {DESTROY_CLUSTER} {attempt.infra_id}")
        name = f"destroy-{attempt.number}-{secrets.token_hex(4)}"
        folder = self._folder.make_folder(name)
        self._folder.write(f"{name}/{METADATA}", self._folder.read(_owned(attempt)) or b"")
        try:
            self._installer.run(DESTROY_CLUSTER, folder)
        except GarboardError as error:
            self._fail(DESTROY_CLUSTER, error, attempt.number)
            raise
        remove_folder(folder)
        current = self._record.attempt(attempt.number)
        self._save(self._record.with_attempt(replace(current, is_destroying=False, end="destroyed", failure=None)))

    def _fail(self, stage: str, error: GarboardError, number: int) -> None:
        """Record a failure without secrets, also in the error itself."""
        error.args = (self._scrubber.text(error.message),)
        error.hint = self._scrubber.text(error.hint) if error.hint else error.hint
        failure = _failure_of(stage, error, self._scrubber)
        self._save(self._record.with_attempt(replace(self._record.attempt(number), failure=failure)))
        self._folder.write(FAILURE, _failure_bytes(failure))


def keep_refusal(work: Path, deployment: str, error: CustomizationFailed, scrubber: OutputScrubber) -> None:
    """Record why documents were refused before an attempt began, unless the folder is that of another deployment."""
    with WorkFolder.opened(work) as folder, folder.locked("garboard fleet provision"):
        data = folder.read(RECORD)
        found = read_record(data, source=str(folder.path / RECORD)) if data is not None else None
        if found is None or deployment in (found.deployment, f"{found.namespace}/{found.deployment}"):
            folder.write(FAILURE, _failure_bytes(_failure_of(_DOCUMENTS, error, scrubber)))


def _failure_of(stage: str, error: GarboardError, scrubber: OutputScrubber) -> dict[str, Json]:
    """Return the record of a failure, without secrets."""
    failure: dict[str, Json] = {"stage": stage, "reason": error.error_class, "message": scrubber.text(error.message)}
    if isinstance(error, CustomizationFailed):
        failure["failures"] = [scrubber.document(each.as_json) for each in error.failures]
        failure["reason"] = str(error.failures[0].reason)
    elif stage == "patch" and error.error_class in _FILE_ERRORS:
        failure["reason"] = str(FailureReason.IO)
    return failure


def _failure_bytes(failure: Mapping[str, Json]) -> bytes:
    return (json.dumps(failure, indent=2) + "\n").encode()


def _owned(attempt: AttemptRecord) -> str:
    return f"owned/{attempt.folder}.json"


@contextmanager
def provisioner(
    work: Path,
    command: str,
    new: ProvisionRecord | None,
    installer_of: Callable[[ProvisionRecord], InstallerOf],
    reporter: Reporter,
    scrubber: OutputScrubber,
    publish: Publish | None = None,
) -> Iterator[Provisioner]:
    """Open and lock a work folder for a command; without `new`, it has to have a record already."""
    with WorkFolder.opened(work) as folder, folder.locked(f"garboard {command}") as lock:
        record = _record_of(folder, new)
        scrubbed = ScrubbedReporter(reporter, scrubber, folder)
        scrubbed.begin()
        installer = installer_of(record)(scrubber, scrubbed, lock)
        yield Provisioner(folder, record, installer, scrubbed, scrubber, publish)


def _record_of(folder: WorkFolder, new: ProvisionRecord | None) -> ProvisionRecord:
    data = folder.read(RECORD)
    if data is None:
        if new is None:
            raise NotReady(
                f"{folder.path} has no {RECORD}: nothing was provisioned there",
                hint="name the folder that --work of garboard fleet provision had",
                error_class="no-record",
            )
        return new
    found = read_record(data, source=str(folder.path / RECORD))
    wanted = new or found
    if (found.namespace, found.deployment, found.installer) != (wanted.namespace, wanted.deployment, wanted.installer):
        raise NotReady(
            f"{folder.path} belongs to {found.namespace}/{found.deployment} with {found.installer}, "
            f"not to {wanted.namespace}/{wanted.deployment} with {wanted.installer}",
            hint="choose another folder for --work",
            error_class="other-deployment",
        )
    return found
