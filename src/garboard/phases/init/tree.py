"""The tree of `init`: phases in kubeadm's order, the same at every minor we know."""

from garboard.manifests import api_server, manager_and_scheduler
from garboard.phases.init.certs import plan_certificate, plan_service_account
from garboard.phases.init.context import InitContext
from garboard.phases.init.kubeconfig import plan_kubeconfig
from garboard.phases.init.kubelet import plan_kubelet_start
from garboard.phases.init.live import (
    plan_mark_control_plane,
    plan_rotation,
    plan_upload_certs,
    plan_wait_control_plane,
)
from garboard.phases.init.next_steps import plan_show_join_command
from garboard.phases.init.objects import (
    plan_bootstrap_token,
    plan_coredns,
    plan_kube_proxy,
    plan_kubeadm_config,
    plan_kubelet_config,
)
from garboard.phases.init.preflight import plan_preflight
from garboard.phases.init.static_pods import plan_component, plan_etcd
from garboard.phases.workflow import Phase
from garboard.pki import CERTIFICATES, KUBECONFIGS, CertSpec, KubeconfigSpec

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
        plan=plan_kubelet_start,
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
    Phase(
        name="show-join-command",
        summary="Show how other nodes join",
        plan=plan_show_join_command,
        needs=("bootstrap-token", "upload-certs"),
    ),
)
