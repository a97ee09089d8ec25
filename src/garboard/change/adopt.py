"""A cluster as it was found, judged: what should be known, and mended, before it is upgraded or changed."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from garboard.change.adopt_codes import AdoptFinding, in_order
from garboard.change.adopt_flags import differing_flags, flag_findings
from garboard.change.snapshot import CertificateFacts, ClusterSnapshot, SnapshotNode
from garboard.documents import Json, read_yaml
from garboard.errors import GarboardError, InvalidValue
from garboard.manifests.coredns import is_own_corefile
from garboard.manifests.uploaded import CONFIG_KEYS, KUBEADM_CONFIG
from garboard.model.minors import MINORS
from garboard.model.version import KubernetesVersion, Minor
from garboard.pki.spec import CERTIFICATES
from garboard.values import dataclass

_SOON = timedelta(days=30)
_SOON_FOR_AUTHORITY = timedelta(days=365)
_NAMES = {f"{spec.base_name}.crt": spec for spec in CERTIFICATES}
_OLD_FLAGS = ("pod-infra-container-image",)
_SOCKET_FLAG = "container-runtime-endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptReport:
    """What was found: the cluster in a few words, and the findings, what matters most first."""

    snapshot: ClusterSnapshot
    version: str  # as the cluster stores it; empty if it stores none
    endpoint: str
    etcd: str  # stacked, external, or empty
    here: str
    findings: tuple[AdoptFinding, ...]
    notes: tuple[str, ...]


def adopt_report(
    snapshot: ClusterSnapshot,
    now: datetime,
    *,
    here: str = "",
    is_whole: bool = True,
    notes: Iterable[str] = (),
    drift: Iterable[AdoptFinding] = (),
) -> AdoptReport:
    """Judge a cluster; `drift` is what a comparison of its files and pods with its configuration has found.

    Without `is_whole`, only what the user of a kubelet may read was looked at.
    """
    stored = _stored(snapshot)
    version = stored.get("kubernetesVersion")
    etcd = stored.get("etcd")
    minor = _minor(version) or _minor(snapshot.server_version)
    found = [
        *(each for each in _of_configuration(snapshot, stored, minor) if is_whole or each.code != "missing-config"),
        *_of_versions(snapshot, version),
        *_of_nodes(snapshot),
        *_of_members(snapshot),
        *_of_certificates(snapshot, now),
        *_of_kubelet_files(snapshot),
        *_of_addons(snapshot, version, minor),
        *(flag_findings(snapshot, minor) if minor else ()),
        *differing_flags(snapshot),
        *drift,
    ]
    return AdoptReport(
        snapshot=snapshot,
        version=version if isinstance(version, str) else "",
        endpoint=str(stored.get("controlPlaneEndpoint") or ""),
        etcd="external" if isinstance(etcd, dict) and etcd.get("external") else "stacked" if stored else "",
        here=here,
        findings=tuple(sorted(found, key=in_order)),
        notes=tuple(notes),
    )


def _stored(snapshot: ClusterSnapshot) -> Mapping[str, Json]:
    """Return the ClusterConfiguration as plain data, whatever its version; empty if it cannot be read."""
    try:
        document = read_yaml(snapshot.stored_text(KUBEADM_CONFIG) or "{}", source=KUBEADM_CONFIG)
    except GarboardError:
        return {}
    return document if isinstance(document, dict) else {}


def _minor(text: Json) -> Minor | None:
    try:
        return KubernetesVersion.parse(str(text).partition("-")[0].partition("+")[0]).as_minor
    except InvalidValue:
        return None


def _of_configuration(
    snapshot: ClusterSnapshot, stored: Mapping[str, Json], minor: Minor | None
) -> Iterator[AdoptFinding]:
    restore = "restore it from a backup, or store it again: kubeadm init phase upload-config all --config FILE"
    for name, key in CONFIG_KEYS.items():
        if snapshot.stored_text(name) is None:
            message = f"there is no ConfigMap kube-system/{name} with the key {key}"
            yield AdoptFinding(code="missing-config", subject=f"ConfigMap {name}", message=message, cure=restore)
    if snapshot.stored_text(KUBEADM_CONFIG) is not None and not stored:
        message = "its ClusterConfiguration is no document"
        yield AdoptFinding(code="missing-config", subject=f"ConfigMap {KUBEADM_CONFIG}", message=message, cure=restore)
    version = stored.get("apiVersion")
    row = MINORS.get(minor) if minor else None
    if row is not None and isinstance(version, str) and version != row.config_api.written:
        yield AdoptFinding(
            code="old-api",
            subject="apiVersion of the ClusterConfiguration",
            message=f"it is stored as {version}; kubeadm of {minor} writes {row.config_api.written}",
            cure=f"garboard upgrade apply {stored.get('kubernetesVersion')} stores it anew",
        )
    if minor is not None and row is None:
        known = " and ".join(map(str, MINORS))
        message = f"the cluster is of {minor}, and this garboard knows {known}"
        cure = "read on for what does not depend on it; upgrade with the kubeadm of each minor on the way"
        yield AdoptFinding(code="unknown-minor", subject=f"Kubernetes {minor}", message=message, cure=cure)
    yield from _of_endpoint(snapshot, stored)


def _of_endpoint(snapshot: ClusterSnapshot, stored: Mapping[str, Json]) -> Iterator[AdoptFinding]:
    endpoint = stored.get("controlPlaneEndpoint")
    server = snapshot.cluster_info_server
    if stored and not endpoint:
        yield AdoptFinding(
            code="no-endpoint",
            subject="controlPlaneEndpoint",
            message="the cluster has no controlPlaneEndpoint",
            cure="plan it before the cluster grows: garboard change plan --set controlPlaneEndpoint=NAME:6443 says how",
        )
    elif isinstance(endpoint, str) and server and endpoint.partition(":")[0] not in server:
        yield AdoptFinding(
            code="endpoint-differs",
            subject="ConfigMap kube-public/cluster-info",
            message=f"it names {server}, and the configuration {endpoint}",
            cure="kubectl -n kube-public edit configmap cluster-info",
        )


def _of_versions(snapshot: ClusterSnapshot, version: Json) -> Iterator[AdoptFinding]:
    """Yield the nodes whose kubelet or static pods are not of the version that the cluster stores."""
    if not isinstance(version, str):
        return
    for node in snapshot.nodes:
        command = f"on {node.name}: garboard upgrade node"
        if node.kubelet_version and node.kubelet_version != version:
            yield AdoptFinding(
                code="version-skew",
                node=node.name,
                subject="kubelet",
                message=f"it is {node.kubelet_version}, and the cluster {version}",
                cure=f"{command}; then install that kubelet, and systemctl restart kubelet",
            )
        for component, pod in node.mirror_pods.items():
            tag = pod.image.rpartition("@")[0].rpartition(":")[2] if "@" in pod.image else pod.image.rpartition(":")[2]
            if component != "etcd" and tag != version.replace("+", "_"):
                message = f"its image is {pod.image}, and the cluster is {version}"
                yield AdoptFinding(
                    code="version-skew", node=node.name, subject=component, message=message, cure=command
                )


def _of_nodes(snapshot: ClusterSnapshot) -> Iterator[AdoptFinding]:
    for node in snapshot.nodes:
        if not node.is_ready:
            yield AdoptFinding(
                code="node-not-ready",
                node=node.name,
                subject=node.name,
                message="the node is not Ready",
                cure=f"kubectl describe node {node.name}; on the node: journalctl -u kubelet",
            )
        for component, pod in node.mirror_pods.items():
            if not pod.is_ready:
                yield AdoptFinding(
                    code="component-not-ready",
                    node=node.name,
                    subject=component,
                    message=f"its pod is not Ready, after {pod.restarts} restarts",
                    cure=f"kubectl -n kube-system logs {component}-{node.name}",
                )


def _of_members(snapshot: ClusterSnapshot) -> Iterator[AdoptFinding]:
    members = snapshot.members or []
    for each in members:
        subject = f"member {each.name or each.member_id}"
        remove = f"on a control plane that is well: etcdctl member remove {each.member_id}"
        peers = ", ".join(each.peer_urls)
        if each.is_learner:
            message = f"it is a learner at {peers}, which no join has promoted"
            yield AdoptFinding(code="learner-left", node=each.node, subject=subject, message=message, cure=remove)
        elif not each.node:
            message = f"no control-plane node has its address {peers}, or its name"
            yield AdoptFinding(code="orphan-member", subject=subject, message=message, cure=remove)
        elif not each.is_healthy:
            cure = f"on {each.node}: crictl logs $(crictl ps -a --name etcd -q | head -1)"
            message = f"it does not answer at {', '.join(each.client_urls) or peers}, or reports an alarm"
            yield AdoptFinding(code="unhealthy-member", node=each.node, subject=subject, message=message, cure=cure)
    voters = sum(not each.is_learner for each in members)
    if voters and voters % 2 == 0:
        yield AdoptFinding(
            code="even-members",
            subject="etcd",
            message=f"{voters} members vote",
            cure="join one more control plane, or reset one: garboard join --help",
        )


def _of_certificates(snapshot: ClusterSnapshot, now: datetime) -> Iterator[AdoptFinding]:
    for node in snapshot.nodes:
        for each in node.certificates or ():
            finding = _of_certificate(each, node.name, now)
            if finding is not None:
                yield finding


def _of_certificate(found: CertificateFacts, node: str, now: datetime) -> AdoptFinding | None:
    if not found.not_after:
        return None
    ends_at = datetime.fromisoformat(found.not_after)
    spec = _NAMES.get(found.path)
    is_authority = spec is not None and spec.is_ca
    left = ends_at - now
    if left > (_SOON_FOR_AUTHORITY if is_authority else _SOON):
        return None
    code = (
        "certificate-expired" if left < timedelta() else "authority-expires" if is_authority else "certificate-expires"
    )
    name = spec.name if spec else found.path.rpartition("/")[2]
    return AdoptFinding(
        code=code,
        node=node,
        subject=found.path,
        message=f"it {'ended' if left < timedelta() else 'ends'} on {ends_at:%Y-%m-%d}",
        cure=_renewal(name, node, is_authority=is_authority),
    )


def _renewal(name: str, node: str, *, is_authority: bool) -> str:
    if is_authority:
        return "replace the authority by hand, in stages: no command of kubeadm or garboard does it"
    if name.startswith("kubelet"):
        return f"on {node}: systemctl restart kubelet, which renews it; if it has ended, join the node again"
    return f"on {node}: garboard certs renew {name}"


def _of_kubelet_files(snapshot: ClusterSnapshot) -> Iterator[AdoptFinding]:
    for node in snapshot.nodes:
        for name in _OLD_FLAGS:
            if f"--{name}" in (node.kubelet_flags or ""):
                yield AdoptFinding(
                    code="old-kubelet-flag",
                    node=node.name,
                    subject="/var/lib/kubelet/kubeadm-flags.env",
                    message=f"it has --{name}, which kubelets from 1.35 on do not know",
                    cure=f"on {node.name}: remove the flag before the kubelet is upgraded",
                )
        if node.instance_config == "" and (
            f"--{_SOCKET_FLAG}" in (node.kubelet_flags or "") or node.settings.cri_socket
        ):
            yield AdoptFinding(
                code="socket-not-noted",
                node=node.name,
                subject="/var/lib/kubelet/instance-config.yaml",
                message="it is not there; the socket of the runtime stands in the kubelet's flags or on the Node",
                cure=f"on {node.name}: garboard upgrade node",
            )


def _of_addons(snapshot: ClusterSnapshot, version: Json, minor: Minor | None) -> Iterator[AdoptFinding]:
    addons = snapshot.addons
    tag = addons.kube_proxy_image.rpartition(":")[2]
    if addons.kube_proxy_image and isinstance(version, str) and tag != version.replace("+", "_"):
        message = f"its image is {addons.kube_proxy_image}, and the cluster is {version}"
        cure = f"garboard upgrade apply {version}"
        yield AdoptFinding(code="addon-version", subject="DaemonSet kube-proxy", message=message, cure=cure)
    if minor in MINORS and addons.corefile and not is_own_corefile(addons.corefile):
        message = "its Corefile is not the one that kubeadm makes"
        cure = "kubectl -n kube-system get configmap coredns -o yaml; keep what you need of it"
        yield AdoptFinding(code="corefile-changed", subject="ConfigMap coredns", message=message, cure=cure)


def roles(node: SnapshotNode) -> str:
    return "control-plane" if node.is_control_plane else "worker"
