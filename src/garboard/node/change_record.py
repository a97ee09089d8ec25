"""What the cluster has recorded of its changes, read as an administrator or as the user of a kubelet."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from garboard.change.outcomes import ChangeInProgress
from garboard.change.record import refuse_unfinished
from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import (
    LABEL,
    LABELLED,
    TARGET,
    ChangeTarget,
    NodeReport,
    Revision,
    read_revision,
    read_target,
    revision_name,
    revision_number,
)
from garboard.retry import CLOCK, Clock, Pauses, wait_until

CONFIG_MAP = "ConfigMap"
_JOINING = Pauses.every(5.0)


class RecordReader(Protocol):
    """The cluster, as far as its record is asked for."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    def labelled(self, kind: str, namespace: str, selector: str) -> Sequence[dict[str, Json]]: ...

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]: ...


def read_record(cluster: RecordReader) -> ChangeRecord:
    """Return everything that is recorded; three requests."""
    stored = cluster.find(CONFIG_MAP, KUBE_SYSTEM, TARGET)
    labelled = cluster.labelled(CONFIG_MAP, KUBE_SYSTEM, f"{LABEL}={LABELLED}")
    revisions = [read_revision(each) for each in labelled if revision_number(name_of(each)) is not None]
    reports = {name: report for node in cluster.list_all("Node") if (name := name_of(node))
               and (report := NodeReport.of_node(node))}  # fmt: skip
    return ChangeRecord(
        revisions={each.number: each for each in revisions},
        target=read_target(stored),
        target_version=version_of(stored),
        reports=reports,
    )


def read_own_record(cluster: RecordReader, node_name: str) -> ChangeRecord:
    """Return what one node needs: the target, its revision, those that it may have had before, and its own report."""
    stored = cluster.find(CONFIG_MAP, KUBE_SYSTEM, TARGET)
    target = read_target(stored)
    if target is None:
        return ChangeRecord()
    report = NodeReport.of_node(cluster.find("Node", "", node_name))
    found = _revisions(cluster, target, report)
    reports: Mapping[str, NodeReport] = {node_name: report} if report else {}
    return ChangeRecord(revisions=found, target=target, target_version=version_of(stored), reports=reports)


def _revisions(cluster: RecordReader, target: ChangeTarget, report: NodeReport | None) -> dict[int, Revision]:
    found: dict[int, Revision] = {}

    def take(number: int) -> Revision | None:
        document = None if number in found else cluster.find(CONFIG_MAP, KUBE_SYSTEM, revision_name(number))
        if document is not None:
            found[number] = read_revision(document)
        return found.get(number)

    wanted = take(target.revision)
    if wanted is not None:
        take(wanted.base)
        if report is not None and wanted.base < report.revision < wanted.number:
            take(report.revision)
    return found


def name_of(document: Mapping[str, Json]) -> str:
    return _metadata(document, "name")


def version_of(document: Mapping[str, Json] | None) -> str:
    return _metadata(document or {}, "resourceVersion")


def _metadata(document: Mapping[str, Json], key: str) -> str:
    metadata = document.get("metadata")
    return str(metadata.get(key) or "") if isinstance(metadata, dict) else ""


def refuse_while_changing(cluster: RecordReader) -> None:
    """Refuse what must not come between the nodes of a change, such as an upgrade; for administrators."""
    if cluster.find(CONFIG_MAP, KUBE_SYSTEM, TARGET) is not None:
        refuse_unfinished(read_record(cluster))


class TargetReader(Protocol):
    """The cluster, as far as one who joins it may see it."""

    def find(self, kind: str, namespace: str, name: str) -> Mapping[str, Json] | None: ...


def await_joining(cluster: TargetReader, *, timeout_s: float, clock: Clock = CLOCK) -> bool:
    """Have a control plane wait that joins while others are changed: it would begin with what not all of them have.

    Returns whether it has waited. What waits to be confirmed is refused at once, since it may go back. Who may not read
    the target joins a cluster that was never changed.
    """
    waited = False

    def problem() -> str | None:
        nonlocal waited
        try:
            target = _target_for_joining(cluster)
        except ClusterUnreachable as error:  # it may be the next to be changed
            if not waited:
                raise
            return error.message
        if target is None or target.is_settled:
            return None
        if target.is_unconfirmed:
            raise _no_joining(f"revision {target.revision} of the cluster waits to be confirmed")
        waited = True
        return f"revision {target.revision} of the cluster is {target.state}"

    left = wait_until(problem, timeout_s=timeout_s, pauses=_JOINING, clock=clock)
    if left is not None:
        raise _no_joining(left)
    return waited


def _target_for_joining(cluster: TargetReader) -> ChangeTarget | None:
    try:
        return read_target(cluster.find(CONFIG_MAP, KUBE_SYSTEM, TARGET))
    except GarboardError as error:
        if error.error_class != "forbidden":
            raise
        return None


def _no_joining(state: str) -> ChangeInProgress:
    return ChangeInProgress(
        f"{state}: no control plane joins meanwhile",
        hint="on a control plane: garboard change status; once all nodes are done, garboard change resume",
    )
