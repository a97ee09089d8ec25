"""`init`: the first control-plane node. The context of its phases, the planners of its own, and the tree.

The phases are in kubeadm's order, the same at every minor we know. Everything is planned before anything is done.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from datetime import datetime
from urllib.parse import urlsplit

from garboard.config import Loaded
from garboard.engine import FilePlaceholder, Note, ShowMessage, Step
from garboard.manifests import NodeHost, api_server, manager_and_scheduler
from garboard.manifests.kube_proxy import control_plane_url
from garboard.manifests.uploaded import as_uploaded
from garboard.model.lifecycle import BootstrapToken, InitConfiguration
from garboard.model.paths import ADMIN_CONF, KUBERNETES_DIR
from garboard.phases.next_steps import PIN_PLACEHOLDER, JoinCommand, next_steps
from garboard.phases.node.addons import plan_coredns, plan_kube_proxy
from garboard.phases.node.context import ClusterView, MachineView, NodeContext
from garboard.phases.node.credentials import (
    check_external_ca,
    observe_credentials,
    plan_certificate,
    plan_kubeconfig,
    plan_service_account,
)
from garboard.phases.node.kubelet import plan_kubelet, plan_rotation, wait_for_kubelet
from garboard.phases.node.records import plan_mark_control_plane
from garboard.phases.node.revisions import RECORD_PHASE, RecordedConfiguration, record_first_revision
from garboard.phases.node.static_pods import plan_component, plan_etcd, wait_for_control_plane
from garboard.phases.node.uploads import (
    plan_bootstrap_tokens,
    plan_kubeadm_config,
    plan_kubelet_config,
    share_certificates,
)
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import MachineInspector, control_plane_checks, plan_checks, plan_images
from garboard.phases.workflow import Blocked, Phase, Planned
from garboard.pki import CERTIFICATES, KUBECONFIGS, CertSpec, KubeconfigSpec
from garboard.values import dataclass

_ADDONS, _DNS_ADDON, _PROXY_ADDON = "addon", "addon/coredns", "addon/kube-proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """What a command asks of init besides the configuration."""

    kubeconfig: str = ADMIN_CONF
    kubeconfig_dir: str = KUBERNETES_DIR
    uploads_certs: bool = False
    certificate_key: str = field(default="", repr=False)  # what shared certificates are sealed with
    author: str = ""  # who makes the cluster, for its record
    has_cluster: bool = False  # what lives in etcd on this node already
    shows_join_command: bool = False
    prints_token: bool = True
    prints_certificate_key: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InitContext(NodeContext):
    """The first control-plane node, before and while its plan is made."""

    bootstrap_tokens: tuple[BootstrapToken, ...]
    options: InitOptions


def observe_init(
    loaded: Loaded[InitConfiguration],
    options: InitOptions,
    *,
    host: NodeHost,
    machine: MachineView,
    patches: NodePatches,
    now: datetime,
    cluster: ClusterView | None = None,
    inspector: MachineInspector | None = None,
    ignored_checks: frozenset[str] = frozenset(),
) -> tuple[InitContext, tuple[str, ...]]:
    """Look at the machine and refuse what no phase of init could use; also return warnings about what was found."""
    config = loaded.config
    certificates, kubeconfigs = machine.folder(config.cluster.certificates_dir), machine.folder(options.kubeconfig_dir)
    credentials = observe_credentials(certificates, kubeconfigs, now)
    context = InitContext(
        node_registration=config.node_registration,
        machine=machine,
        host=replace(host, is_external_ca=credentials.is_external_ca),
        now=now,
        cluster=config.cluster,
        local_api_endpoint=config.local_api_endpoint,
        timeouts=config.timeouts,
        components=loaded.components,
        credentials=credentials,
        patches=patches,
        kubeconfig_dir=options.kubeconfig_dir,
        kubeconfig=options.kubeconfig,
        objects=cluster,
        inspector=inspector,
        ignored_checks=ignored_checks,
        bootstrap_tokens=config.bootstrap_tokens,
        options=options,
    )
    return context, check_external_ca(context)


def with_disabled_addons(config: InitConfiguration, skip: Iterable[str]) -> tuple[InitConfiguration, tuple[str, ...]]:
    """Return the configuration that is stored, in which skipped addons are disabled, and all phases to skip.

    Skipping an addon and disabling it in the configuration mean the same: each entails the other.
    """
    skipped = tuple(skip)
    cluster = config.cluster
    cluster = replace(
        cluster,
        dns=replace(cluster.dns, disabled=cluster.dns.disabled or _ADDONS in skipped or _DNS_ADDON in skipped),
        is_proxy_disabled=cluster.is_proxy_disabled or _ADDONS in skipped or _PROXY_ADDON in skipped,
    )
    disabled = {_DNS_ADDON: cluster.dns.disabled, _PROXY_ADDON: cluster.is_proxy_disabled}
    added = tuple(name for name, is_off in disabled.items() if is_off and name not in skipped)
    return replace(config, cluster=cluster), (*skipped, *added)


def plan_preflight(context: InitContext) -> Iterator[Planned]:
    """Plan nothing on a machine that is not ready, else to pull images."""
    node, inspector, ignored = context.node_registration, context.inspector, context.ignored_checks
    wanted = control_plane_checks(context.cluster, context.local_api_endpoint, node)
    findings = tuple(plan_checks(wanted, inspector, ignored))
    yield from findings
    # The runtime is asked for images: one that does not answer is among the findings.
    if inspector is not None and not any(isinstance(each, Blocked) for each in findings):
        yield from plan_images(context.cluster, node, inspector, ignored)


def plan_wait_control_plane(context: InitContext) -> Iterator[Step | Note]:
    yield from wait_for_kubelet(context, "it starts the control plane")
    yield from wait_for_control_plane(context)


def plan_upload_certs(context: InitContext) -> Iterator[Step | Note]:
    """Plan to share the certificates, if that was asked for; the key is shown here unless the join command shows it."""
    options = context.options
    if not options.uploads_certs:
        yield Note("Skipping phase. Please see --upload-certs")
        return
    yield from share_certificates(context, options.certificate_key)
    if options.prints_certificate_key and not options.shows_join_command:
        text = f"The certificates are sealed with this key, which is shown only once:\n{options.certificate_key}\n"
        yield Step(ShowMessage(about="the certificate key", text=text), "nodes need it to open the certificates")


def plan_bootstrap_token(context: InitContext) -> Iterator[Step | Note]:
    yield from plan_bootstrap_tokens(context, context.bootstrap_tokens)


def plan_first_revision(context: InitContext) -> Iterator[Step | Note]:
    """Plan to record what the cluster was made with, as the revision that changes set out from."""
    if context.options.has_cluster:
        return  # it has a record of its own, or the first change finds that it has none
    version = as_uploaded(context.cluster).kubernetes_version
    made = RecordedConfiguration(kubernetes_version=version, patch_sets={context.node_name: ""})
    configuration = made.after(made.kubernetes_version, context.stored_maps)
    yield from record_first_revision(configuration, context.node_name, context.options.author)


def plan_show_join_command(context: InitContext) -> Iterator[Step]:
    """Plan to show everything at the end; the CA's fingerprint is only known then."""
    options = context.options
    key = options.certificate_key if options.prints_certificate_key else ""
    control_planes = _join_command(context, key) if options.uploads_certs else None
    text = next_steps(context, _join_command(context, None), control_planes)
    pins = (FilePlaceholder(PIN_PLACEHOLDER, context.certificate_path("ca.crt")),)
    yield Step(ShowMessage(about="how to use the cluster, and how nodes join", text=text, pins=pins), "")


def _join_command(context: InitContext, certificate_key: str | None) -> JoinCommand:
    tokens = context.bootstrap_tokens
    return JoinCommand(
        endpoint=urlsplit(control_plane_url(context.cluster, context.local_api_endpoint)).netloc,
        pins=(PIN_PLACEHOLDER,),
        token=tokens[0].token if tokens and context.options.prints_token else "",
        certificate_key=certificate_key,
    )


# The flags of the phases' sub-commands.
_BASIC = ("config", "dry-run")
_CERTS = (*_BASIC, "cert-dir", "kubernetes-version")
_API_SERVER_CERT = (
    "apiserver-advertise-address", "apiserver-cert-extra-sans", "control-plane-endpoint", "service-cidr",
    "service-dns-domain",
)  # fmt: skip
_KUBECONFIG = (
    *_BASIC, "apiserver-advertise-address", "apiserver-bind-port", "cert-dir", "control-plane-endpoint",
    "kubeconfig-dir", "kubernetes-version",
)  # fmt: skip
_CONTROL_PLANE = (*_BASIC, "cert-dir", "kubernetes-version", "image-repository", "patches")
_API_SERVER = (
    "apiserver-advertise-address", "apiserver-bind-port", "control-plane-endpoint", "feature-gates", "service-cidr",
    "apiserver-extra-args",
)  # fmt: skip
_CONTROLLER_MANAGER = ("pod-network-cidr", "controller-manager-extra-args")
_SCHEDULER = ("scheduler-extra-args",)
_UPLOAD_CONFIG = (*_BASIC, "cri-socket", "kubeconfig")
_ADDON = (*_BASIC, "image-repository", "kubeconfig", "kubernetes-version")
_COREDNS = ("feature-gates", "service-cidr", "service-dns-domain")
_KUBE_PROXY = ("apiserver-advertise-address", "apiserver-bind-port", "control-plane-endpoint", "pod-network-cidr")


def _all(summary: str, *flags: str) -> Phase[InitContext]:
    return Phase(name="all", summary=summary, flags=flags, runs_siblings=True)


def _certificate(spec: CertSpec) -> Phase[InitContext]:
    flags = (*_CERTS, *_API_SERVER_CERT) if spec.name == "apiserver" else _CERTS
    return Phase(
        name=spec.name,
        summary="Generate the authority and its key" if spec.is_ca else "Generate the certificate and its key",
        details=f"Generate the {spec.summary}",
        plan=plan_certificate(spec),
        flags=flags,
    )


def _kubeconfig(spec: KubeconfigSpec) -> Phase[InitContext]:
    flags = (*_KUBECONFIG, "node-name") if spec.name == "kubelet" else _KUBECONFIG
    return Phase(name=spec.name, summary=f"Generate {spec.file_name}", plan=plan_kubeconfig(spec), flags=flags)


def _component(phase: str, name: str, *flags: str) -> Phase[InitContext]:
    return Phase(
        name=phase,
        summary=f"Generate {name}.yaml",
        details=f"Generate the static Pod manifest of {name}",
        plan=plan_component(name),
        flags=(*_CONTROL_PLANE, *flags),
    )


CERTS: Phase[InitContext] = Phase(
    name="certs",
    summary="Generate certificates and keys",
    children=(
        _all("Generate all certificates", *_CERTS, *_API_SERVER_CERT),
        *map(_certificate, CERTIFICATES),
        Phase(
            name="sa",
            summary="Generate the key that signs tokens",
            plan=plan_service_account,
            flags=_CERTS,
        ),
    ),
)

KUBECONFIG: Phase[InitContext] = Phase(
    name="kubeconfig",
    summary="Generate kubeconfigs",
    children=(_all("Generate all kubeconfigs", *_KUBECONFIG, "node-name"), *map(_kubeconfig, KUBECONFIGS)),
)

ETCD: Phase[InitContext] = Phase(
    name="etcd",
    summary="Generate the manifest of a local etcd",
    children=(
        Phase(
            name="local",
            summary="Generate the manifest of this node's etcd",
            plan=plan_etcd,
            flags=(*_BASIC, "cert-dir", "image-repository", "patches"),
        ),
    ),
)

CONTROL_PLANE: Phase[InitContext] = Phase(
    name="control-plane",
    summary="Generate the manifests of the control plane",
    children=(
        _all("Generate all manifests", *_CONTROL_PLANE, *_API_SERVER, *_CONTROLLER_MANAGER, *_SCHEDULER),
        _component("apiserver", api_server.NAME, *_API_SERVER),
        _component("controller-manager", manager_and_scheduler.CONTROLLER_MANAGER, *_CONTROLLER_MANAGER),
        _component("scheduler", manager_and_scheduler.SCHEDULER, *_SCHEDULER),
    ),
)

UPLOAD_CONFIG: Phase[InitContext] = Phase(
    name="upload-config",
    summary="Store the configuration in the cluster",
    aliases=("uploadconfig",),
    children=(
        _all("Store all configuration", *_UPLOAD_CONFIG),
        Phase(
            name="kubeadm",
            summary="Store the ClusterConfiguration",
            plan=plan_kubeadm_config,
            flags=_UPLOAD_CONFIG,
        ),
        Phase(
            name="kubelet",
            summary="Store the configuration of kubelets",
            plan=plan_kubelet_config,
            flags=_UPLOAD_CONFIG,
        ),
    ),
)

KUBELET_FINALIZE: Phase[InitContext] = Phase(
    name="kubelet-finalize",
    summary="Change what the kubelet needed to start",
    children=(
        _all("Run all kubelet-finalize phases", *_BASIC, "cert-dir"),
        Phase(
            name="enable-client-cert-rotation",
            summary="Let the kubelet rotate its certificate",
            plan=plan_rotation,
            flags=(*_BASIC, "cert-dir"),
        ),
    ),
)

ADDON: Phase[InitContext] = Phase(
    name="addon",
    summary="Install the addons that every cluster has",
    children=(
        _all("Install all addons", *_ADDON, *_COREDNS, *_KUBE_PROXY),
        Phase(
            name="coredns",
            summary="Install CoreDNS",
            plan=plan_coredns,
            flags=(*_ADDON, *_COREDNS, "print-manifest"),
        ),
        Phase(
            name="kube-proxy",
            summary="Install kube-proxy",
            plan=plan_kube_proxy,
            flags=(*_ADDON, *_KUBE_PROXY, "print-manifest"),
        ),
    ),
)

# Hidden, as kubeadm has no such phase.
RECORD: Phase[InitContext] = Phase(
    name=RECORD_PHASE,
    summary="Record what the cluster was made with",
    plan=plan_first_revision,
    is_hidden=True,
)

INIT: tuple[Phase[InitContext], ...] = (
    Phase(
        name="preflight",
        summary="Check that the machine is ready",
        plan=plan_preflight,
        flags=(*_BASIC, "cri-socket", "ignore-preflight-errors", "image-repository"),
    ),
    CERTS,
    KUBECONFIG,
    ETCD,
    CONTROL_PLANE,
    Phase(
        name="kubelet-start",
        summary="Write the kubelet's files and (re)start it",
        plan=plan_kubelet,
        flags=(*_BASIC, "cri-socket", "image-repository", "node-name", "patches"),
    ),
    Phase(
        name="wait-control-plane",
        summary="Wait until the control plane answers",
        plan=plan_wait_control_plane,
    ),
    UPLOAD_CONFIG,
    Phase(
        name="upload-certs",
        summary="Share the certificates with other nodes",
        plan=plan_upload_certs,
        flags=(*_BASIC, "certificate-key", "kubeconfig", "skip-certificate-key-print", "upload-certs"),
    ),
    Phase(
        name="mark-control-plane",
        summary="Label and taint the control-plane node",
        plan=plan_mark_control_plane,
        flags=(*_BASIC, "node-name"),
    ),
    Phase(
        name="bootstrap-token",
        summary="Make bootstrap tokens and their rights",
        aliases=("bootstraptoken",),
        plan=plan_bootstrap_token,
        flags=(*_BASIC, "kubeconfig", "skip-token-print"),
    ),
    KUBELET_FINALIZE,
    ADDON,
    RECORD,
    Phase(
        name="show-join-command",
        summary="Show how other nodes join",
        plan=plan_show_join_command,
        needs=("bootstrap-token", "upload-certs"),
    ),
)
