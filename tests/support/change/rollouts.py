"""Changes of made-up clusters on their way, and what the cluster has recorded of them."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from garboard.change.node_work import PlanOptions
from garboard.change.planning import plan_change
from garboard.change.request import ChangeRequest
from garboard.change.rollout import ChangeIntent, Rollout
from garboard.change.snapshot import ClusterSnapshot
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import ChangeState, ChangeTarget, NodeReport, ReportResult, Revision, moment
from tests.support.change.requests import sets

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)


def rollout(
    snapshot: ClusterSnapshot,
    request: ChangeRequest | str,
    *accepted: str,
    here: str = "cp1",
    record: ChangeRecord | None = None,
) -> Rollout:
    """Return a change as its first node begins it; text is one `--set`."""
    asked = sets(request) if isinstance(request, str) else request
    plan = plan_change(snapshot, asked, options=PlanOptions(accepted=accepted, first=here))
    intent = ChangeIntent(author="alice", message="why", request="what", accepted=accepted)
    return Rollout(plan=plan, snapshot=snapshot, here=here, intent=intent, now=NOW, record=record or ChangeRecord())


def begun(found: Rollout, state: ChangeState = "rolling") -> ChangeRecord:
    """Return what is recorded once the first node has done its part."""
    revision = found.revision
    target = msgspec.structs.replace(found.target(revision), state=state)
    made: dict[int, Revision] = {each.number: each for each in (found.found, revision) if each is not None}
    return replace(
        reported(found.record, target, "done", found.here),
        revisions={**found.record.revisions, **made},
        target=target,
        target_version="41",
    )


def reported(record: ChangeRecord, target: ChangeTarget, result: ReportResult, *nodes: str) -> ChangeRecord:
    said = NodeReport(revision=target.revision, digest=target.digest, result=result, at=moment(NOW))
    return replace(record, reports={**record.reports, **dict.fromkeys(nodes, said)})


def as_worker_sees(snapshot: ClusterSnapshot, name: str) -> ClusterSnapshot:
    """Return what the user of a kubelet may read of a cluster."""
    node = snapshot.node(name)
    assert node is not None
    maps = {each: snapshot.config_maps[each] for each in ("kubeadm-config", "kubelet-config")}
    return ClusterSnapshot(config_maps=maps, nodes=[node], patch_sets=snapshot.patch_sets)
