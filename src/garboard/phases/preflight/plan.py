"""Which checks a node has to pass, in kubeadm's order, and what they find as notes on a plan.

Pulling images, to kubeadm the last of the checks, is steps of the plan.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from garboard.engine import Note, PullImage, Step
from garboard.errors import BadUsage, GarboardError, InvalidValue, NotReady
from garboard.manifests.container import last_arg
from garboard.model.addresses import parse_ip, parse_networks, split_host_port
from garboard.model.cluster import ClusterConfiguration, control_plane_images
from garboard.model.component import Arg, ExternalEtcd, LocalEtcd
from garboard.model.lifecycle import JoinConfiguration, TokenDiscovery
from garboard.model.minors import MinorFacts
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.model.paths import BOOTSTRAP_KUBELET_CONF, KUBELET_CONF, manifest_path
from garboard.model.version import KubernetesVersion
from garboard.phases.preflight import checks
from garboard.phases.preflight.checks import Check
from garboard.phases.preflight.inspector import MachineInspector
from garboard.phases.workflow import Blocked
from garboard.values import dataclass

IMAGE_PULL = "ImagePull"
KUBELET_PORT, SCHEDULER_PORT, CONTROLLER_MANAGER_PORT, ETCD_PORTS = 10250, 10259, 10257, (2379, 2380)
_FORWARDING = {4: "/proc/sys/net/ipv4/ip_forward", 6: "/proc/sys/net/ipv6/conf/default/forwarding"}
_PULL_CAUSE = "the control plane starts faster with it, or fails now"
_CHECKS_AT_ONCE = 8
_MANIFESTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """Something that is not as it should be; kubeadm's checks warn about some of it and refuse the rest."""

    check: str
    text: str
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """The findings that refuse a machine, and those that are only warnings."""

    errors: tuple[PreflightFinding, ...] = ()
    warnings: tuple[PreflightFinding, ...] = ()


def control_plane_checks(
    cluster: ClusterConfiguration,
    endpoint: ApiEndpoint,
    registration: NodeRegistration,
    *,
    is_joining: bool = False,
    downloads_certs: bool = False,
) -> Iterator[Check]:
    """Yield the checks of a control-plane node; a node that joins has passed `join_checks` before."""
    networking = cluster.networking
    yield checks.enough_cpus()
    yield checks.enough_memory()
    yield checks.firewall_is_open((endpoint.bind_port, KUBELET_PORT))
    yield from _component_ports(cluster, endpoint)
    yield from (checks.file_is_available(manifest_path(name)) for name in _MANIFESTS)
    yield checks.no_proxy_to(endpoint.advertise_address)
    subnets = [text for subnet in (networking.service_subnet, networking.pod_subnet) for text in subnet.split(",")]
    yield from (checks.no_proxy_to_network(subnet) for subnet in subnets if subnet)
    if not is_joining:
        yield from _node_checks(registration, cluster.facts, cluster.release)
        yield from _forwarding(_families(endpoint.advertise_address, subnets))
        if isinstance(cluster.etcd, ExternalEtcd):
            yield checks.external_etcd_fits(cluster.etcd, cluster.facts.minimum_external_etcd)
    yield from _etcd_checks(cluster, endpoint, has_certificates=not (is_joining and downloads_certs))


def join_checks(config: JoinConfiguration, facts: MinorFacts) -> Iterator[Check]:
    """Yield the checks of every node that joins; those of a control-plane node follow once the cluster is known."""
    yield checks.file_is_available(KUBELET_CONF)
    yield checks.file_is_available(BOOTSTRAP_KUBELET_CONF)
    yield from _node_checks(config.node_registration, facts, None)
    if config.control_plane is None:
        yield checks.file_is_available(config.ca_cert_path)
    if isinstance(config.discovery, TokenDiscovery):
        try:
            host, _ = split_host_port(config.discovery.api_server_endpoint)
        except InvalidValue:
            return
        yield checks.no_proxy_to(host)
        address = parse_ip(host)
        yield from _forwarding({address.version} if address else set())


def _node_checks(
    registration: NodeRegistration, facts: MinorFacts, control_plane: KubernetesVersion | None
) -> Iterator[Check]:
    yield checks.runtime_is_ready(registration.cri_socket)
    yield checks.runtime_reports_cgroup_driver(registration.cri_socket, facts)
    yield checks.swap_is_off()
    yield from map(checks.program_is_there, ("losetup", "mount", "cp"))
    yield checks.system_fits()
    yield checks.node_name_works(registration.name)
    yield checks.kubelet_fits(facts, control_plane)
    yield checks.service_is_enabled("kubelet")
    yield checks.port_is_free(KUBELET_PORT)


def _component_ports(cluster: ClusterConfiguration, endpoint: ApiEndpoint) -> Iterator[Check]:
    for port, args in (
        (endpoint.bind_port, cluster.api_server.extra_args),
        (SCHEDULER_PORT, cluster.scheduler.extra_args),
        (CONTROLLER_MANAGER_PORT, cluster.controller_manager.extra_args),
    ):
        is_asked = cluster.facts.checks_configured_bind_address
        yield checks.port_is_free(port, _value(args, "bind-address") if is_asked else "")


def _etcd_checks(cluster: ClusterConfiguration, endpoint: ApiEndpoint, *, has_certificates: bool) -> Iterator[Check]:
    etcd = cluster.etcd
    if isinstance(etcd, LocalEtcd):
        address = _value(cluster.api_server.extra_args, "advertise-address") or endpoint.advertise_address
        is_asked = cluster.facts.checks_configured_bind_address
        yield from (checks.port_is_free(port, address if is_asked else "") for port in ETCD_PORTS)
        yield checks.folder_is_available(etcd.data_dir)
    elif has_certificates:
        files = (etcd.ca_file, etcd.cert_file, etcd.key_file)
        yield from (checks.file_is_there(path, "ExternalEtcdClientCertificates") for path in files if path)


def _families(advertise_address: str, subnets: list[str]) -> set[int]:
    networks = (network for subnet in subnets for network in parse_networks(subnet) or ())
    address = parse_ip(advertise_address)
    return {network.version for network in networks} | ({address.version} if address else set())


def _forwarding(families: set[int]) -> Iterator[Check]:
    yield from (checks.file_says_one(path) for family, path in _FORWARDING.items() if family in families)


def _value(args: tuple[Arg, ...], name: str) -> str:
    found = last_arg(args, name)
    return found[1].value if found else ""


def run_checks(wanted: Iterable[Check], inspector: MachineInspector) -> tuple[PreflightFinding, ...]:
    """Make every check; one that cannot find out what it needs has found just that.

    They run in parallel: most of them wait for a program or a socket, and none for another.
    """
    with ThreadPoolExecutor(max_workers=_CHECKS_AT_ONCE) as pool:
        return tuple(finding for found in pool.map(lambda check: _found(check, inspector), wanted) for finding in found)


def _found(check: Check, inspector: MachineInspector) -> list[PreflightFinding]:
    found: list[PreflightFinding] = []
    try:
        found += (PreflightFinding(check.name, text, is_error) for text, is_error in check.look(inspector))
    except GarboardError as error:
        found.append(PreflightFinding(check.name, error.message))
    return found


def classify(findings: Iterable[PreflightFinding], ignored: Iterable[str]) -> PreflightResult:
    """Sort findings into errors and warnings; the case of ignored names does not count, and `all` stands alone."""
    names = {name.lower() for name in ignored}
    if "all" in names and len(names) > 1:
        others = ", ".join(sorted(names - {"all"}))
        raise BadUsage(
            f"--ignore-preflight-errors: all must not be combined with other checks ({others})",
            hint="name either all, or the checks one by one",
        )
    errors, warnings = list[PreflightFinding](), list[PreflightFinding]()
    for each in findings:
        is_ignored = "all" in names or each.check.lower() in names
        (errors if each.is_error and not is_ignored else warnings).append(each)
    return PreflightResult(tuple(errors), tuple(warnings))


class PreflightFailed(NotReady):
    """The machine is not ready; the message has every reason, and nothing has been changed."""

    default_class = "preflight"

    def __init__(self, errors: Sequence[PreflightFinding]) -> None:
        lines = "".join(f"\n  [{each.check}] {each.text}" for each in errors)
        names = ",".join(dict.fromkeys(each.check for each in errors))
        super().__init__(
            f"this machine is not ready; nothing has been changed:{lines}",
            hint=f"put it right, or pass what you know to be harmless to --ignore-preflight-errors={names}",
        )


def plan_checks(
    wanted: Iterable[Check], inspector: MachineInspector | None, ignored: frozenset[str]
) -> Iterator[Note | Blocked]:
    """Make the checks and yield what they found: errors first, which block the plan, then warnings.

    Without root only that is told: the other checks would see a wrong machine. Without an inspector nothing is checked.
    """
    if inspector is None:
        return
    verdict = classify(run_checks((checks.privileged_user(),), inspector), ignored)
    if not verdict.errors:
        verdict = classify(run_checks(wanted, inspector), ignored)
    if verdict.errors:
        notes = (Note(f"[{each.check}] {each.text}", is_warning=True) for each in verdict.errors)
        yield Blocked(tuple(notes), PreflightFailed(verdict.errors))
    for each in verdict.warnings:
        yield Note(f"[{each.check}] {each.text}", is_warning=True)


def plan_images(
    cluster: ClusterConfiguration, registration: NodeRegistration, inspector: MachineInspector, ignored: frozenset[str]
) -> Iterator[Step | Note]:
    """Plan to pull the images that are missing, one after the other or in parallel, as `imagePullSerial` says."""
    policy = registration.image_pull_policy
    if policy == "Never":
        yield Note("imagePullPolicy is Never: no image is pulled")
        return
    is_always = policy == "Always"
    images = control_plane_images(cluster)
    wanted = [each for each in images if is_always or not inspector.has_image(registration.cri_socket, each)]
    is_needed = not ignored & {"all", IMAGE_PULL.lower()}
    if len(wanted) < len(images):
        yield Note(f"{len(images) - len(wanted)} of {len(images)} images are there")
    groups = [(each,) for each in wanted] if registration.image_pull_serial else [tuple(wanted)] if wanted else []
    for first, *beside in groups:
        action = PullImage(image=first, beside=tuple(beside), is_always=is_always, is_needed=is_needed)
        yield Step(action, _PULL_CAUSE)
