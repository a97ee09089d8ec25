"""The control plane of a node upgraded: its static pods replaced in one outage, with their certificates renewed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from garboard.documents import read_yaml
from garboard.engine import AwaitGate, ControlService, Note, PullImage, SaveSnapshot, Step, WriteFile
from garboard.manifests import ControlPlaneNode
from garboard.manifests.etcd import CLIENT_PORT, PEER_PORT
from garboard.manifests.kube_proxy import control_plane_url
from garboard.manifests.rootless import plan_users
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.model.addresses import join_host_port
from garboard.model.cluster import etcd_image, tag_of
from garboard.model.component import LocalEtcd
from garboard.model.go import join_path
from garboard.model.paths import KUBELET_CONF, manifest_path
from garboard.model.version import numbers_of
from garboard.phases.control_plane_lease import UNIT, acquire_lease, release_lease
from garboard.phases.gates import API_SERVER, EtcdSparesMember
from garboard.phases.gates.control_plane import container_of
from garboard.phases.node.credentials import RenewalSettings
from garboard.phases.node.kubelet import KUBELET, wait_for_kubelet
from garboard.phases.static_pods import ETCD, ReplacedPod, SwapSettings, member_url_of, plan_pulls, plan_swap, swapped
from garboard.phases.upgrade.context import UpgradeContext
from garboard.pki.expiration import ObservedNode
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.renewal import Renew, decide_renewals, renewable, renewables

SNAPSHOTS = "/var/lib/garboard/etcd-snapshots"
_KEPT_SNAPSHOTS = 2
_SPARED_WITHIN_S = 60.0  # another member may just be starting
# The API server that renews the Lease is among what is replaced, and may be the only one.
_LEASE_S = 600.0
# What is renewed with which component, as kubeadm does it.
_CERTIFICATES = {
    ETCD: ("etcd-server", "etcd-peer", "etcd-healthcheck-client"),
    API_SERVER: ("apiserver", "apiserver-kubelet-client", "front-proxy-client", "apiserver-etcd-client"),
    "kube-controller-manager": ("controller-manager.conf",),
    "kube-scheduler": ("scheduler.conf",),
}
_ADMINISTRATORS = ("admin.conf", "super-admin.conf")


def plan_control_plane(context: UpgradeContext) -> Iterator[Step | Note]:
    """Plan the new static pods, and the renewal of the certificates that belong to those which change."""
    notes, pods = render_pods(context)
    yield from notes
    cause = (
        f"the cluster goes from {context.upgraded.former.kubernetes_version} to {context.cluster.kubernetes_version}"
    )
    steps = plan_swap(pods, context.node_name, cause, _swap_settings(context, pods))
    if not steps:
        yield Note("the static pods are as they should be")
        return
    yield from _under_lease(context, pods, steps)
    if context.options.renews_certificates:
        yield from _renewals(context, _ADMINISTRATORS)


def _under_lease(context: UpgradeContext, pods: Sequence[ReplacedPod], steps: Sequence[Step]) -> Iterator[Step | Note]:
    yield from _pulls(context, pods)
    holder = context.node_name
    wanted = acquire_lease(holder, payload=f"{UNIT}:{holder}", duration_s=_LEASE_S)
    yield Step(wanted, "one node at a time changes its control plane")
    changed = [pod.component for pod in swapped(pods) if pod.is_changed]
    if ETCD in changed and isinstance(context.cluster.etcd, LocalEtcd):
        # Before anything is changed: with a second member away, there would be nothing to take back to.
        spared = EtcdSparesMember(peer_url=_member_url(context), timeout_s=_SPARED_WITHIN_S)
        yield Step(AwaitGate(gate=spared), "a second member that is away would stop the cluster")
        if context.options.is_first or saves_snapshot(context):
            yield from _snapshot(context)
    if context.options.renews_certificates:
        yield from _renewals(context, [name for each in changed for name in _CERTIFICATES[each]])
    yield from steps
    yield Step(release_lease(holder), "the next node may follow")


def _pulls(context: UpgradeContext, pods: Sequence[ReplacedPod]) -> Iterator[Step | Note]:
    """Plan to pull images as `imagePullPolicy` and `imagePullSerial` say."""
    registration, inspector = context.node_registration, context.inspector
    policy, socket = registration.image_pull_policy, registration.cri_socket
    if inspector is None:
        return
    if policy == "Never":
        yield Note("imagePullPolicy is Never: no image is pulled")
        return
    is_always = policy == "Always"
    for step in plan_pulls(pods, lambda image: not is_always and inspector.has_image(socket, image)):
        assert isinstance(step.action, PullImage)
        images = (step.action.image, *step.action.beside)
        for first, *beside in ((each,) for each in images) if registration.image_pull_serial else (images,):
            yield replace(step, action=PullImage(image=first, beside=tuple(beside), is_always=is_always))


def render_pods(context: UpgradeContext) -> tuple[list[Note], list[ReplacedPod]]:
    """Return the static pods of this node as they are and as they shall be; what decodes to the same is the same."""
    patches = context.patches.begin(context.cluster.release)
    node = rendered_node(context)
    wanted = [control_plane_pod(name, node) for name in CONTROL_PLANE]
    notes = list[Note]()
    if isinstance(context.cluster.etcd, LocalEtcd) and context.options.upgrades_etcd:
        wanted.append(etcd_pod(node))
    rendered = {pod.name: static_pod_file(pod, patches).content for pod in wanted}
    if note := _newer_etcd(context, rendered.get(ETCD)):
        notes.append(note)
        del rendered[ETCD]
    pods = [
        ReplacedPod(component=name, former=former, manifest=_unless_same(former, rendered.get(name, former)))
        for name, former in context.manifests.items()
    ]
    return [*notes, *patches.notes()], pods


def _newer_etcd(context: UpgradeContext, rendered: bytes | None) -> Note | None:
    """Say that etcd stays as it is, if it is newer than the one that was rendered: its data never go back.

    A patch may have chosen the image.
    """
    running, wanted = _etcd_tag(context.manifests.get(ETCD)), _etcd_tag(rendered)
    if rendered is None or not numbers_of(wanted) or numbers_of(running) <= numbers_of(wanted):
        return None
    return Note(f"etcd {running} is newer than {wanted}, and stays as it is", is_warning=True)


def _etcd_tag(manifest: bytes | None) -> str:
    """Return the tag of the image of etcd in a manifest; nothing without one."""
    document = read_yaml(manifest or b"{}", source=manifest_path(ETCD))
    image = container_of(document, ETCD).get("image") if isinstance(document, dict) else None
    return tag_of(str(image or ""))


def _former_etcd(context: UpgradeContext, pod: ReplacedPod) -> str:
    """Return the minor of etcd that this node leaves, such as 3.6; empty if etcd keeps its minor.

    A tag of somebody's own says nothing: then etcd is taken for the one that the minor of Kubernetes has.
    """
    former = numbers_of(_etcd_tag(pod.former)) or numbers_of(context.upgraded.former.facts.etcd_tag)
    target = numbers_of(_etcd_tag(pod.manifest)) or numbers_of(context.cluster.facts.etcd_tag)
    return ".".join(map(str, former[:2])) if former[:2] != target[:2] else ""


def _unless_same(former: bytes, manifest: bytes) -> bytes:
    is_same = read_yaml(former, source="") == read_yaml(manifest, source="")
    return former if is_same else manifest


def rendered_node(context: UpgradeContext) -> ControlPlaneNode:
    """Return this node as its static pods are rendered from it."""
    host = context.host
    if context.cluster.is_rootless:
        texts = [context.machine.read(path) or b"" for path in ("/etc/passwd", "/etc/group", "/etc/login.defs")]
        planned = plan_users(*(text.decode("utf-8", "surrogateescape") for text in texts))
        host = replace(host, rootless_ids=planned.ids)
    return ControlPlaneNode(
        cluster=context.cluster,
        name=context.node_name,
        endpoint=context.local_api_endpoint,
        host=host,
        health_check_timeout=context.timeouts.control_plane_component_health_check,
        kind=context.config_kind,
    )


def _swap_settings(context: UpgradeContext, pods: Sequence[ReplacedPod]) -> SwapSettings:
    member = next((pod for pod in pods if pod.component == ETCD), None)
    return SwapSettings(
        member_url=_member_url(context) if member else "",
        voters=context.upgraded.members,
        settled_within_s=context.timeouts.upgrade_manifests.seconds,
        former_etcd=_former_etcd(context, member) if member else "",
    )


def _member_url(context: UpgradeContext) -> str:
    """Return where the other members of etcd reach that of this node."""
    default_url = f"https://{join_host_port(context.local_api_endpoint.advertise_address, PEER_PORT)}"
    return member_url_of(context.manifests.get(ETCD, b"{}")) or default_url


def saves_snapshot(context: UpgradeContext) -> bool:
    """Say whether this node is the first one that gets another etcd; `apply` saves the data in any case."""
    if not isinstance(context.cluster.etcd, LocalEtcd) or ETCD not in context.manifests:
        return False
    if not context.options.upgrades_etcd:
        return False
    running, wanted = _etcd_tag(context.manifests[ETCD]), tag_of(etcd_image(context.cluster))
    if running == wanted or numbers_of(running) > numbers_of(wanted):
        return False
    others = [tag_of(image) for name, image in context.upgraded.etcds.items() if name != context.node_name]
    return context.options.is_first or (bool(others) and wanted not in others)


def _snapshot(context: UpgradeContext) -> Iterator[Step]:
    """Plan to save the data of etcd before its first member changes; the two newest snapshots are kept."""
    stamp = context.now.strftime("%Y%m%dT%H%M%SZ")
    name = f"{context.upgraded.former.kubernetes_version}-{stamp}.db"
    url = f"https://{join_host_port(context.local_api_endpoint.advertise_address, CLIENT_PORT)}"
    action = SaveSnapshot(path=join_path(SNAPSHOTS, name), client_url=url, keeps=_KEPT_SNAPSHOTS)
    yield Step(action, "a newer etcd writes what the older one cannot read")


def _renewals(context: UpgradeContext, names: Sequence[str]) -> Iterator[Step | Note]:
    found, inputs = context.credentials, context.inputs
    known = {each.name for each in renewables(has_external_etcd=inputs.has_external_etcd)}
    targets = [renewable(name) for name in names if name in known]
    observed = ObservedNode(found.pairs, found.kubeconfigs)
    settings = RenewalSettings(
        folder=context.cluster.certificates_dir,
        kubeconfig_dir=context.kubeconfig_dir,
        validity=inputs.certificate_validity,
        key_algorithm=inputs.key_algorithm,
        node_name=context.node_name,
    )
    for each in decide_renewals(targets, observed, settings.validity, context.now):
        if isinstance(each, Renew):
            yield Step(settings.request(each).action(), "an upgrade renews it; --certificate-renewal=false does not")
        elif each.target.name != "super-admin.conf":  # only the first node has it
            yield Note(each.message)


def plan_kubelet_server(context: UpgradeContext) -> Iterator[Step | Note]:
    """Plan that the kubelet uses the API server of its own node (KEP-4471), if it uses the shared endpoint."""
    if not context.cluster.is_kubelet_local_mode:
        yield Note("ControlPlaneKubeletLocalMode is off: the kubelet keeps the server that it uses")
        return
    data = context.machine.read(KUBELET_CONF) or b""
    current = read_kubeconfig(data, KUBELET_CONF)
    local = f"https://{context.local_api_endpoint.host_port}"
    if current.server == local or current.server != control_plane_url(context.cluster, context.local_api_endpoint):
        yield Note(f"the kubelet uses {current.server}, and keeps it")
        return
    cause = "the kubelet of a control-plane node uses the API server beside it"
    action = WriteFile(path=KUBELET_CONF, content=current.with_server(local), mode=0o600, is_secret=True)
    yield Step(action, cause)
    if context.machine.has_service_manager():
        restart = ControlService(service=KUBELET, verb="restart", is_needed=False)
        yield Step(restart, "it reads kubelet.conf when it starts")
        yield from wait_for_kubelet(context, "it was restarted")
