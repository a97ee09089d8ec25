"""Closer looks at changes whose verdict depends on their values, or on the cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from garboard.change.attribute import KUBE_PROXY, AttributeRow
from garboard.change.authorities import WAITING, is_signed_elsewhere
from garboard.change.capacity import judge_capacity
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.flag_judges import judge_flag
from garboard.change.members import member_findings
from garboard.errors import InvalidValue
from garboard.model.addresses import parse_host_port, parse_networks
from garboard.model.version import KubernetesVersion
from garboard.pki import certificate
from garboard.values import Json

Judge = Callable[[AttributeChange, AttributeRow, ChangeContext], list[ChangeFinding]]
_CHECKED_TYPES = ("File", "Directory", "Socket", "CharDevice", "BlockDevice")
# Volumes that kubeadm makes itself: one of the same name takes their place without a word.
_OWN_VOLUMES = ("k8s-certs", "ca-certs", "etc-pki", "kubeconfig", "flexvolume-dir", "etcd-certs-0", "etcd-data")
_MODES = {"iptables": "iptables", "ipvs": "ipvs", "nftables": "nftables"}


def judge_change(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    """Return what there is to say about one change by its row of the table."""
    if row.judge:
        return _JUDGES[row.judge](change, row, context)
    return [of_row(row)]


def of_row(row: AttributeRow, **given: object) -> ChangeFinding:
    found = ChangeFinding(code=row.code, reason=row.why, route=row.route, follow_ups=row.follow_ups)
    return replace(found, **given)  # type: ignore[arg-type]


def _judge_members(_change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    return [of_row(row), *member_findings(context)]


def _judge_volume(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    """Look whether the path of a volume is there on every control plane, and whether its name is taken."""
    item = change.after if isinstance(change.after, dict) else None
    if item is None:
        return [ChangeFinding(reason=f"the volume {change.item} goes, and the component restarts")]
    path, type_ = str(item.get("hostPath", "")), str(item.get("pathType", ""))
    found: list[ChangeFinding] = []
    seen = {node.name: (node.host_paths or {}).get(path) for node in context.snapshot.control_planes}
    missing = [name for name, kind in seen.items() if kind == "absent"]
    if missing and type_ in _CHECKED_TYPES:
        reason = f"{path} is not there on {', '.join(missing)}, and a {type_} that is missing stops the pod"
        found.append(
            ChangeFinding(code="missing-host-path", reason=reason, route=f"make {path} on {', '.join(missing)}")
        )
    unseen = [name for name, kind in seen.items() if kind is None]
    if unseen or missing:
        found.append(
            of_row(row, route=f"see that {path} is there, of the right type, on {', '.join(unseen or missing)}")
        )
    if change.item in _OWN_VOLUMES and change.before is None:
        reason = f"kubeadm has a volume {change.item} of its own, which this one replaces without a word"
        found.append(ChangeFinding(code="host-path", reason=reason, route="take another name"))
    return found or [ChangeFinding(reason=f"{path} is there on every control-plane node; the component restarts")]


def _judge_sans(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    folder, spec = context.current.cluster.certificates_dir, certificate(row.components[0].removeprefix("certs/"))
    external = [node.name for node in context.snapshot.control_planes if is_signed_elsewhere(node, folder, spec)]
    is_of_api = change.path[0] == "apiServer"
    users = _users_of(change.item, context) if is_of_api and change.after is None else []
    if users:
        reason = f"{change.item} is how the API server is reached by {'; '.join(users)}"
        return [ChangeFinding(code="san-in-use", reason=reason, route=_way_off(users))]
    if external:
        reason = f"the key of its authority is not on {', '.join(external)}: the new certificate is signed elsewhere"
        route = (
            f"change apply --requests writes key and request to {WAITING} on a node; change apply tells what is missing"
        )
        return [ChangeFinding(code="external-ca", reason=reason, route=route), of_row(row)]
    return [of_row(row)]


def _way_off(users: Sequence[str]) -> str:
    steps = "move these to another name of the certificate first, and take this one away when nothing uses it any more"
    if any(each.startswith("controlPlaneEndpoint") for each in users):
        steps += "; for the endpoint, garboard change plan --set controlPlaneEndpoint=NAME:PORT shows the steps"
    return steps


def _judge_endpoint(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    """Tell what reaches the API server by the former name, and the way to another one: no step of it is ours yet."""
    former, name = (_host(str(value or "")) for value in (change.before, change.after))
    users = _listed(_users_of(former, context)) if former else ""
    reason = f"{row.why}; {former} is used by {users}" if users else row.why
    new = name or "the new name"
    sans = f" (garboard change plan --set 'apiServer.certSANs+={name}')" if name else ""
    route = (
        f"(a) let {new} resolve on every node, and its load balancer forward to all API servers; "
        f"(b) add it to apiServer.certSANs{sans}, and verify a handshake with each control plane through it; "
        "(c) change controlPlaneEndpoint in ConfigMap kubeadm-config; (d) the server in cluster-info; "
        "(e) the server in the kubeconfig of kube-proxy, and restart its pods one by one; "
        "(f) the server in kubelet.conf of each worker, and restart its kubelet, node by node; "
        "(g) the server in admin.conf and its copies; "
        f"(h) keep {former or 'the old name'} alive and in the certificates until the last client has moved"
    )
    return [of_row(row, reason=reason, route=route)]


def _users_of(name: str, context: ChangeContext) -> list[str]:
    """Return what reaches the API server by a name."""
    snapshot, found = context.snapshot, []
    endpoint = context.current.cluster.control_plane_endpoint
    if endpoint and _host(endpoint) == name:
        found.append(
            "controlPlaneEndpoint (the kubeconfigs admin.conf and super-admin.conf, kube-proxy, kubelets of workers)"
        )
    if _host(snapshot.cluster_info_server) == name:
        found.append("cluster-info, which nodes that join read")
    found += [
        f"{path} on {node.name}"
        for node in snapshot.nodes
        for path, server in sorted((node.kubeconfigs or {}).items())
        if _host(server) == name
    ]
    return found


def _host(server: str) -> str:
    try:
        return urlsplit(server).hostname or "" if "//" in server else parse_host_port(server)[0]
    except (InvalidValue, ValueError):
        return ""


def _judge_etcd_tag(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    facts = context.current.cluster.facts
    before, after = (_release(value, facts.etcd_tag) for value in (change.before, change.after))
    if before is None or after is None:
        reason = f"{change.before or facts.etcd_tag} and {change.after or facts.etcd_tag} cannot be compared"
        return [ChangeFinding(code="etcd-version", reason=reason, route="use a tag such as 3.6.8-0")]
    if after < before or (after.major, after.minor) > (before.major, before.minor + 1):
        reason = f"from {before} to {after}: etcd goes up one minor at a time, and never down"
        return [ChangeFinding(code="etcd-version", reason=reason, route="garboard upgrade, or restore a snapshot")]
    return [of_row(row), *member_findings(context)]


def _release(tag: Json, default: str) -> KubernetesVersion | None:
    try:
        return KubernetesVersion.parse(str(tag or default).partition("-")[0])
    except InvalidValue:
        return None


def _judge_service_range(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    cidrs = "".join(f"  - {each}\n" for each in str(change.after or "").split(",") if each)
    manifest = (
        "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata:\n  name: more-services\nspec:\n  cidrs:\n"
        f"{cidrs}"
    )
    route = f"to have more addresses, nothing restarts: kubectl apply -f - of\n{manifest}"
    address = context.snapshot.addons.dns_service_ip
    reason = f"{row.why} ({address})" if address else row.why
    return [of_row(row, reason=reason, route=route.rstrip() if cidrs else "name the range that is wanted")]


def _judge_pod_range(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    before, after = (parse_networks(str(value or "")) or () for value in (change.before, change.after))
    used = [cidr for node in context.snapshot.nodes for cidr in node.settings.pod_cidrs]
    networks = [*before, *(each for cidr in used for each in parse_networks(cidr) or ())]
    is_larger = bool(before and after) and all(
        any(old.version == new.version and old.subnet_of(new) for new in after)  # type: ignore[arg-type]
        for old in networks
    )
    if not is_larger:
        return [of_row(row)]
    reason = "the new range contains the former one, so nodes keep theirs; the network plug-in knows only the former"
    follow_ups = ("change the range in the configuration of the network plug-in",)
    return [
        ChangeFinding(code="pod-range-grows", reason=reason, route="see that the plug-in can", follow_ups=follow_ups)
    ]


def _judge_drain(_change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    return [of_row(row, drains=tuple(node.name for node in context.snapshot.nodes))]


def _judge_proxy_mode(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    reason = row.why
    ports = [f"{each.namespace}/{each.name}" for each in context.snapshot.services if each.node_ports]
    if ports and change.after == "nftables":
        reason += f"; Services with NodePorts: {_listed(ports)}"
    if change.after == "ipvs":
        reason += "; ipvs is deprecated since v1.35"
    follow_ups: tuple[str, ...] = ()
    if {change.before, change.after} == {"ipvs", "iptables"}:
        follow_ups = ("on each node: kube-proxy --cleanup, or a reboot, takes the former rules away",)
    return [of_row(row, reason=reason, follow_ups=follow_ups)]


def _judge_proxy_section(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    if is_inactive(change, context):
        reason = f"it is the section of another mode than {_mode(context)}: written down, and nothing restarts"
        return [ChangeFinding(code="no-effect", reason=reason)]
    return [of_row(row)]


def is_inactive(change: AttributeChange, context: ChangeContext) -> bool:
    """Say whether a field of kube-proxy belongs to a mode that is not in use."""
    return change.kind == KUBE_PROXY and change.path[0] in _MODES and change.path[0] != _mode(context)


def _mode(context: ChangeContext) -> str:
    proxy = context.target.kube_proxy
    return str(proxy.tree.get("mode") or "iptables") if proxy else "iptables"


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_JUDGES: Mapping[str, Judge] = {
    "capacity": judge_capacity,
    "drain": _judge_drain,
    "endpoint": _judge_endpoint,
    "etcd-tag": _judge_etcd_tag,
    "flag": judge_flag,
    "members": _judge_members,
    "pod-range": _judge_pod_range,
    "proxy-mode": _judge_proxy_mode,
    "proxy-section": _judge_proxy_section,
    "sans": _judge_sans,
    "service-range": _judge_service_range,
    "volume": _judge_volume,
}
