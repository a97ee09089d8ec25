"""The configuration that is asked for, looked at as a whole: networks, agreement between documents, rules of results.

The codes of results are those of `patch lint`: what a component refuses, and what the cluster loses.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from garboard.change.attribute import CLUSTER, KUBE_PROXY, KUBELET
from garboard.change.configuration import StoredConfiguration
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.rendering import RenderedPod
from garboard.config import ConfigNotes, InvalidConfiguration
from garboard.config.validate_cluster import cluster_problems
from garboard.documents import DocumentPath, Json
from garboard.manifests import ConfigField
from garboard.model.addresses import parse_networks
from garboard.patches import find_target
from garboard.patches.results import judge
from garboard.rules import DocumentField, ResultFinding, check_kube_proxy
from garboard.schema import load_schema
from garboard.values import dataclass

_FLAG_REMOVED = "flag-removed"
_FREE_RANGE = "take a range that neither a node nor the other network uses"
_FREE = ("extraArgs", "extraVolumes", "extraEnvs")


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding with the label of the attribute that it is about; empty if it is about none in particular."""

    label: str
    finding: ChangeFinding


def refuse_invalid(current: StoredConfiguration, target: StoredConfiguration) -> None:
    """Refuse what kubeadm would refuse as well, unless the cluster stores it already."""
    known = {str(each) for each in cluster_problems(current.cluster, ConfigNotes())}
    found = [str(each) for each in cluster_problems(target.cluster, ConfigNotes())]
    problems = [each for each in found if each not in known]
    if problems:
        raise InvalidConfiguration("the new ClusterConfiguration", problems, hint="garboard config validate")


def whole_findings(changes: tuple[AttributeChange, ...], context: ChangeContext) -> Iterator[PlacedFinding]:
    """Yield what is wrong with networks that overlap, and with documents that no longer agree."""
    labels = {(each.kind, each.path[0]): each.label for each in changes}
    yield from _overlaps(labels, context)
    yield from _disagreements(labels, context)
    yield from _shadows(changes, context)
    yield from _unrendered(changes, context)
    yield from _proxy_findings(changes, context)


def _overlaps(labels: Mapping[tuple[str, str], str], context: ChangeContext) -> Iterator[PlacedFinding]:
    label = labels.get((CLUSTER, "networking"))
    if label is None:
        return
    networking = context.target.cluster.networking
    services, pods = (parse_networks(text) or () for text in (networking.service_subnet, networking.pod_subnet))
    for one in services:
        for other in pods:
            if one.version == other.version and one.overlaps(other):
                reason = f"serviceSubnet {one} and podSubnet {other} share addresses"
                yield PlacedFinding(label, ChangeFinding(code="cidr-overlap", reason=reason, route=_FREE_RANGE))
    addresses = [(node.name, each.address) for node in context.snapshot.nodes for each in node.addresses]
    for name, text in addresses:
        for network in (*services, *pods):
            if _holds(network, text):
                reason = f"{network} holds the address {text} of {name}"
                yield PlacedFinding(label, ChangeFinding(code="cidr-overlap", reason=reason, route=_FREE_RANGE))


def _holds(network: object, text: str) -> bool:
    try:
        return ip_address(text) in network  # type: ignore[operator]
    except ValueError:
        return False


def _disagreements(labels: Mapping[tuple[str, str], str], context: ChangeContext) -> Iterator[PlacedFinding]:
    """Yield documents that agreed before, and would not after."""
    before, after = _agreements(context.current), _agreements(context.target)
    for name, (field, found, wanted) in after.items():
        had = before.get(name)
        if found == wanted or (had and (had[1], had[2]) == (found, wanted)):
            continue
        label = labels.get(name) or labels.get((CLUSTER, "networking")) or labels.get((CLUSTER, "certificatesDir"))
        reason = f"{field} is {found or 'not set'}, and the ClusterConfiguration makes it {wanted}"
        route = f"--set '{field}={wanted}', or leave both as they are"
        yield PlacedFinding(label or "", ChangeFinding(code="cluster-network-mismatch", reason=reason, route=route))


def _agreements(configuration: StoredConfiguration) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return fields of the components with what they are, and what the cluster's configuration makes of them."""
    cluster, kubelet = configuration.cluster, configuration.kubelet.tree
    networking, dns = cluster.networking, kubelet.get("clusterDNS")
    first = str(dns[0]) if isinstance(dns, list) and dns else ""
    authority = DocumentField(dict(kubelet)).at("authentication", "x509", "clientCAFile").text
    found = {
        (KUBELET, "clusterDNS"): (f"{KUBELET}:clusterDNS", first, networking.dns_ip),
        (KUBELET, "clusterDomain"): (
            f"{KUBELET}:clusterDomain", str(kubelet.get("clusterDomain") or ""), networking.dns_domain,
        ),
        (KUBELET, "authentication"): (
            f"{KUBELET}:authentication.x509.clientCAFile", authority, f"{cluster.certificates_dir}/ca.crt",
        ),
    }  # fmt: skip
    if configuration.kube_proxy is not None and networking.pod_subnet:
        range_ = str(configuration.kube_proxy.tree.get("clusterCIDR") or "")
        found[(KUBE_PROXY, "clusterCIDR")] = (f"{KUBE_PROXY}:clusterCIDR", range_, networking.pod_subnet)
    return found


def _shadows(changes: tuple[AttributeChange, ...], context: ChangeContext) -> Iterator[PlacedFinding]:
    """Yield fields of the kubelet that a flag on a node stands above."""
    for change in changes:
        if change.kind != KUBELET:
            continue
        flag = _flag_of(change.path[-1])
        nodes = [node.name for node in context.snapshot.nodes if f"--{flag}=" in (node.kubelet_flags or "")]
        if nodes:
            reason = f"--{flag} in kubeadm-flags.env of {', '.join(nodes)} stands above it"
            route = "take the flag out of /var/lib/kubelet/kubeadm-flags.env there"
            yield PlacedFinding(change.label, ChangeFinding(code="shadowed-by-flag", reason=reason, route=route))


def _unrendered(changes: tuple[AttributeChange, ...], context: ChangeContext) -> Iterator[PlacedFinding]:
    """Yield control planes whose static pods cannot be rendered, if a change may be about these."""
    nodes = [node.name for node in context.snapshot.control_planes if node.endpoint is None]
    if nodes and any(change.kind == CLUSTER for change in changes):
        reason = f"where the API server of {', '.join(nodes)} listens is not known: nothing is planned for its pods"
        route = f"run it on {nodes[0]}, or look at its mirror pod"
        yield PlacedFinding("", ChangeFinding(code="not-looked-at", reason=reason, route=route))


def _flag_of(field: str) -> str:
    """Return the flag of a kubelet's field: `maxPods` is --max-pods."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in field)


def _proxy_findings(changes: tuple[AttributeChange, ...], context: ChangeContext) -> Iterator[PlacedFinding]:
    """Yield what kube-proxy refuses in its new configuration, and did not in the former."""
    before, after = context.current.kube_proxy, context.target.kube_proxy
    if before is None or after is None or before.tree == after.tree:
        return
    release = context.target.cluster.release
    known = {(each.code, each.message) for each in check_kube_proxy(dict(before.tree), release)}
    for each in check_kube_proxy(dict(after.tree), release):
        if (each.code, each.message) not in known:
            yield PlacedFinding(_nearest(KUBE_PROXY, each.path, changes), _as_finding(each))


def pod_findings(
    component: str,
    before: RenderedPod,
    after: RenderedPod,
    changes: tuple[AttributeChange, ...],
    context: ChangeContext,
) -> Iterator[PlacedFinding]:
    """Yield what a component refuses in its new manifest, or the cluster loses by it, at its attribute."""
    asked = {change.item for change in changes if change.after is None}
    is_asked = _flags(before.document) - _flags(after.document) <= asked
    for each in _result_findings(component, before.document, after.document, context):
        source = after.source_of(each.path)
        if each.code == _FLAG_REMOVED and is_asked:
            continue  # whoever takes a flag out that is not kubeadm's own means it
        if isinstance(source, ConfigField) and each.rule.is_acceptable and not _is_free(source):
            continue
        # kubeadm has its probes ask where --bind-address and --listen-metrics-urls say.
        if each.code == "probe-changed" and _at(after.document, each.path) == _at(after.plain.document, each.path):
            continue
        label = _label_of(source, changes, after.document, each.path) if isinstance(source, ConfigField) else ""
        yield PlacedFinding(label, _as_finding(each))


def _flags(pod: Mapping[str, Json]) -> set[str]:
    """Return the names of the flags of a static pod."""
    words = _at(dict(pod), ("spec", "containers", 0, "command"))
    listed = words if isinstance(words, list) else []
    return {str(word).removeprefix("--").partition("=")[0] for word in listed if str(word).startswith("--")}


def _is_free(source: ConfigField) -> bool:
    """Say whether a field holds whatever its user writes; for all others the table says what a change of them loses."""
    return any(step in _FREE for step in source.path)


def kubelet_findings(
    before: Mapping[str, Json], after: Mapping[str, Json], changes: tuple[AttributeChange, ...], context: ChangeContext
) -> Iterator[PlacedFinding]:
    """Yield what the kubelet refuses in its new configuration, or the node loses by it."""
    for each in _result_findings("kubeletconfiguration", dict(before), dict(after), context):
        yield PlacedFinding(_nearest(KUBELET, each.path, changes), _as_finding(each))


def _nearest(kind: str, path: DocumentPath, changes: tuple[AttributeChange, ...]) -> str:
    """Return the label of the change of a component's configuration that a finding is about."""
    own = [change for change in changes if change.kind == kind and path[:1] == change.path[:1]]
    nearest = [change for change in own if path[: len(change.path)] == change.path] or own
    return nearest[0].label if nearest else ""


def _result_findings(target_name: str, before: Json, after: Json, context: ChangeContext) -> list[ResultFinding]:
    """Return the findings about a result that were not there before."""
    release = context.target.cluster.release
    target, schema = find_target(target_name, release), load_schema(release)
    known = {(each.code, each.message) for each in judge(before, before, target, schema)}
    return [each for each in judge(before, after, target, schema) if (each.code, each.message) not in known]


def _as_finding(found: ResultFinding) -> ChangeFinding:
    return ChangeFinding(code=found.code, reason=found.message, route=found.hint or found.rule.mend)


def _label_of(source: ConfigField, changes: tuple[AttributeChange, ...], document: Json, path: DocumentPath) -> str:
    """Return the label of the change that a field of the configuration belongs to."""
    steps = tuple(step for step in source.path if isinstance(step, str))
    own = [each for each in changes if each.kind == source.kind and steps[: len(each.path)] == each.path]
    if len(own) < 2:
        return own[0].label if own else ""
    word = _at(document, path)
    name = word.lstrip("-").partition("=")[0] if isinstance(word, str) else ""
    return next((each.label for each in own if each.item == name), own[0].label)


def _at(document: Json, path: DocumentPath) -> Json:
    for step in path:
        if isinstance(document, dict):
            document = document.get(str(step))
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document
