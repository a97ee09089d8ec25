"""What `change adopt` has found, as text for people and as JSON for programs."""

from collections.abc import Iterator

from garboard.change.adopt import AdoptReport, roles
from garboard.change.adopt_codes import FindingLevel
from garboard.change.snapshot import API_VERSION
from garboard.documents import Json

KIND = "AdoptReport"


def report_as_json(report: AdoptReport) -> Json:
    snapshot = report.snapshot
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "cluster": {
            "kubernetesVersion": report.version,
            "serverVersion": snapshot.server_version,
            "controlPlaneEndpoint": report.endpoint,
            "etcd": report.etcd,
            "observedAt": snapshot.observed_at,
            "observedOn": report.here,
        },
        "nodes": [
            {
                "name": each.name,
                "role": roles(each),
                "ready": each.is_ready,
                "kubelet": each.kubelet_version,
                "os": each.os,
                "containerRuntime": each.container_runtime,
                "components": {name: pod.image for name, pod in each.mirror_pods.items()},
                "patchSet": each.patch_set,
                "filesSeen": each.manifests is not None,
            }
            for each in snapshot.nodes
        ],
        "members": None
        if snapshot.members is None
        else [
            {"name": each.name, "id": each.member_id, "node": each.node, "learner": each.is_learner,
             "healthy": each.is_healthy, "version": each.version}
            for each in snapshot.members
        ],
        "findings": [each.as_json() for each in report.findings],
        "notSeen": [*_not_seen(report)],
    }  # fmt: skip


def _not_seen(report: AdoptReport) -> Iterator[str]:
    yield from report.notes
    unseen = [each.name for each in report.snapshot.nodes if each.manifests is None]
    if unseen:
        shown = ", ".join(unseen[:5]) + (f" and {len(unseen) - 5} more" if len(unseen) > 5 else "")
        yield f"files and certificates of {shown}: run garboard change adopt there"
    if report.snapshot.members is None and report.etcd == "stacked":
        yield "the members of etcd: run garboard change adopt on a control plane, as root"


def report_as_text(report: AdoptReport) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: AdoptReport) -> Iterator[str]:
    snapshot = report.snapshot
    etcd = f", {report.etcd} etcd" if report.etcd else ""
    endpoint = report.endpoint or "(no controlPlaneEndpoint)"
    yield f"Kubernetes {report.version or '(no version stored)'} at {endpoint}{etcd}"
    yield ""
    yield from _nodes(report)
    for member in snapshot.members or ():
        state = "learner" if member.is_learner else "healthy" if member.is_healthy else "not healthy"
        yield f"  etcd member {member.name or member.member_id}  {member.version}  {state}  {member.node}"
    yield ""
    counts = [f"{sum(each.level is level for each in report.findings)} {level}" for level in FindingLevel]
    yield f"Findings: {', '.join(counts)}"
    for each in report.findings:
        place = f"{each.node}: " if each.node else ""
        yield ""
        yield f"{each.level} [{each.code}] {place}{each.subject}"
        yield f"  {each.message}: {each.why}"
        yield f"  cure: {each.cure}"
    unseen = [*_not_seen(report)]
    if unseen:
        yield ""
        yield "Not looked at:"
        yield from (f"  {each}" for each in unseen)


def _nodes(report: AdoptReport) -> Iterator[str]:
    rows = [("NODE", "ROLE", "KUBELET", "READY", "PATCHES", "RUNTIME")]
    rows += [
        (each.name, roles(each), each.kubelet_version, "yes" if each.is_ready else "no", each.patch_set[:12] or "-",
         each.container_runtime)
        for each in report.snapshot.nodes
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
