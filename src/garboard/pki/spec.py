"""The certificates and kubeconfigs of a control plane as data: names, files, signers, usages, users and API servers."""

import enum
from collections.abc import Callable
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address

from garboard.errors import InvalidValue
from garboard.pki.inputs import PkiInputs
from garboard.pki.names import NO_NAMES, AltNames, sort_names
from garboard.values import dataclass

# Extended key usages by object identifier (RFC 5280, 4.2.1.12).
SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"

# A node whose clock runs behind ours would refuse a certificate that starts now.
BACKDATE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertRequest:
    """The content of a certificate to be issued: all but its key, serial number and signer.

    Without `not_before` the certificate starts when its signer does, as the ones in kubeconfigs do.
    """

    common_name: str
    not_after: datetime
    not_before: datetime | None = None
    organizations: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    alt_names: AltNames = NO_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class CertContent:
    """The content of a certificate apart from its dates: what stays the same when the certificate is renewed."""

    common_name: str
    organizations: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    alt_names: AltNames = NO_NAMES

    def request(self, started_at: datetime, validity: timedelta) -> CertRequest:
        """Return the request for a certificate with this content in a run that started at `started_at`."""
        return CertRequest(
            common_name=self.common_name,
            organizations=self.organizations,
            usages=self.usages,
            alt_names=self.alt_names,
            not_before=started_at - BACKDATE,
            not_after=started_at + validity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CertSpec:
    """One certificate of the tree; `name` is its phase and renewal name, `base_name` its files without suffix."""

    name: str
    base_name: str
    summary: str
    ca: str | None = None
    common_name: str | None = None  # None: the name of the node
    usages: tuple[str, ...] = ()
    alt_names: Callable[[PkiInputs], AltNames] | None = None
    extra_sans: Callable[[PkiInputs], tuple[str, ...]] | None = None

    @property
    def is_ca(self) -> bool:
        return self.ca is None

    @property
    def is_etcd(self) -> bool:
        return "etcd-ca" in (self.name, self.ca)

    def all_names(self, inputs: PkiInputs) -> AltNames:
        """Return every name that the configuration asks for, in its order and with repeats."""
        names = self.alt_names(inputs) if self.alt_names else NO_NAMES
        return names + sort_names(self.extra_sans(inputs)).names if self.extra_sans else names

    def rejected_sans(self, inputs: PkiInputs) -> tuple[str, ...]:
        """Return the extra names that are neither address nor DNS name; kubeadm leaves them out with a warning."""
        return sort_names(self.extra_sans(inputs)).rejected if self.extra_sans else ()

    def request(self, inputs: PkiInputs, started_at: datetime) -> CertRequest:
        """Return the request for the certificate in a run that started at `started_at`."""
        common_name = self.common_name or inputs.node_name
        return CertRequest(
            common_name=common_name,
            usages=self.usages,
            alt_names=AltNames(dns=(common_name,)) if self.is_ca else self.all_names(inputs),
            not_before=started_at - BACKDATE,
            not_after=started_at + (inputs.ca_certificate_validity if self.is_ca else inputs.certificate_validity),
        )


def _api_server_names(inputs: PkiInputs) -> AltNames:
    dns = [inputs.node_name] if inputs.node_name else []
    dns += ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    if inputs.dns_domain:
        dns.append(f"kubernetes.default.svc.{inputs.dns_domain}")
    names = AltNames(tuple(dns), (inputs.api_server_service_ip, inputs.advertise_address))
    return names + inputs.control_plane_endpoint.names() if inputs.control_plane_endpoint else names


def _etcd_names(inputs: PkiInputs) -> AltNames:
    dns = (inputs.node_name, "localhost") if inputs.node_name else ("localhost",)
    return AltNames(dns, (inputs.advertise_address, IPv4Address("127.0.0.1"), IPv6Address("::1")))


# In the order of the phases below `certs`.
CERTIFICATES = (
    CertSpec(
        name="ca",
        base_name="ca",
        common_name="kubernetes",
        summary="self-signed Kubernetes CA to provision identities for other Kubernetes components",
    ),
    CertSpec(
        name="apiserver",
        base_name="apiserver",
        ca="ca",
        common_name="kube-apiserver",
        usages=(SERVER_AUTH,),
        alt_names=_api_server_names,
        extra_sans=lambda inputs: inputs.api_server_cert_sans,
        summary="certificate for serving the Kubernetes API",
    ),
    CertSpec(
        name="apiserver-kubelet-client",
        base_name="apiserver-kubelet-client",
        ca="ca",
        common_name="kube-apiserver-kubelet-client",
        usages=(CLIENT_AUTH,),
        summary="certificate for the API server to connect to kubelet",
    ),
    CertSpec(
        name="front-proxy-ca",
        base_name="front-proxy-ca",
        common_name="front-proxy-ca",
        summary="self-signed CA to provision identities for front proxy",
    ),
    CertSpec(
        name="front-proxy-client",
        base_name="front-proxy-client",
        ca="front-proxy-ca",
        common_name="front-proxy-client",
        usages=(CLIENT_AUTH,),
        summary="certificate for the front proxy client",
    ),
    CertSpec(
        name="etcd-ca",
        base_name="etcd/ca",
        common_name="etcd-ca",
        summary="self-signed CA to provision identities for etcd",
    ),
    CertSpec(
        name="etcd-server",
        base_name="etcd/server",
        ca="etcd-ca",
        # etcd dials its own gateway with its serving certificate, so that one must be good for a client as well.
        usages=(SERVER_AUTH, CLIENT_AUTH),
        alt_names=_etcd_names,
        extra_sans=lambda inputs: inputs.etcd_server_cert_sans,
        summary="certificate for serving etcd",
    ),
    CertSpec(
        name="etcd-peer",
        base_name="etcd/peer",
        ca="etcd-ca",
        usages=(SERVER_AUTH, CLIENT_AUTH),
        alt_names=_etcd_names,
        extra_sans=lambda inputs: inputs.etcd_peer_cert_sans,
        summary="certificate for etcd nodes to communicate with each other",
    ),
    CertSpec(
        name="etcd-healthcheck-client",
        base_name="etcd/healthcheck-client",
        ca="etcd-ca",
        common_name="kube-etcd-healthcheck-client",
        usages=(CLIENT_AUTH,),
        summary="certificate for liveness probes to healthcheck etcd",
    ),
    CertSpec(
        name="apiserver-etcd-client",
        base_name="apiserver-etcd-client",
        ca="etcd-ca",
        common_name="kube-apiserver-etcd-client",
        usages=(CLIENT_AUTH,),
        summary="certificate the apiserver uses to access etcd",
    ),
)

SERVICE_ACCOUNT_BASE_NAME = "sa"

_BY_NAME = {spec.name: spec for spec in CERTIFICATES}


def certificate(name: str) -> CertSpec:
    """Return the certificate of that name; one that does not exist is refused with the list."""
    if name not in _BY_NAME:
        raise InvalidValue(f"{name!r} is not a certificate", hint=f"the certificates are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def expected_certificates(*, has_external_etcd: bool) -> tuple[CertSpec, ...]:
    """Return the certificates a cluster has; with external etcd its own are made elsewhere."""
    return tuple(spec for spec in CERTIFICATES if not (has_external_etcd and spec.is_etcd))


class ServerChoice(enum.Enum):
    """Which API server a kubeconfig names."""

    LOCAL = "local"  # the one on this node
    SHARED = "shared"  # the control plane endpoint, where there is one
    KUBELET = "kubelet"  # the local one, unless local mode is off

    def url(self, inputs: PkiInputs) -> str:
        is_local = self is ServerChoice.LOCAL or (self is ServerChoice.KUBELET and inputs.is_kubelet_local_mode)
        return inputs.local_url if is_local else inputs.control_plane_url


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigSpec:
    """One kubeconfig of a control-plane node; `name` is its phase, `summary` what its certificate is called."""

    name: str
    file_name: str
    user: str  # {node} stands for the name of the node
    organizations: tuple[str, ...] = ()
    server: ServerChoice
    summary: str = ""
    is_renewable: bool = True

    def user_name(self, inputs: PkiInputs) -> str:
        return self.user.format(node=inputs.node_name)

    def request(self, inputs: PkiInputs, started_at: datetime) -> CertRequest:
        """Return the request for the embedded certificate, which starts when the CA does."""
        return client_request(
            self.user_name(inputs), self.organizations, not_after=started_at + inputs.certificate_validity
        )


# In the order of the phases below `kubeconfig`.
KUBECONFIGS = (
    KubeconfigSpec(
        name="admin",
        file_name="admin.conf",
        user="kubernetes-admin",
        organizations=("kubeadm:cluster-admins",),
        server=ServerChoice.SHARED,
        summary="certificate embedded in the kubeconfig file for the admin to use and for kubeadm itself",
    ),
    KubeconfigSpec(
        name="super-admin",
        file_name="super-admin.conf",
        user="kubernetes-super-admin",
        organizations=("system:masters",),
        server=ServerChoice.SHARED,
        summary="certificate embedded in the kubeconfig file for the super-admin",
    ),
    KubeconfigSpec(
        name="kubelet",
        file_name="kubelet.conf",
        user="system:node:{node}",
        organizations=("system:nodes",),
        # A kubelet must not be newer than its API server, so it speaks to the one beside it (KEP-4471).
        server=ServerChoice.KUBELET,
        is_renewable=False,  # the kubelet renews its own
    ),
    KubeconfigSpec(
        name="controller-manager",
        file_name="controller-manager.conf",
        user="system:kube-controller-manager",
        server=ServerChoice.LOCAL,
        summary="certificate embedded in the kubeconfig file for the controller manager to use",
    ),
    KubeconfigSpec(
        name="scheduler",
        file_name="scheduler.conf",
        user="system:kube-scheduler",
        server=ServerChoice.LOCAL,
        summary="certificate embedded in the kubeconfig file for the scheduler manager to use",
    ),
)


def client_request(user: str, organizations: tuple[str, ...], *, not_after: datetime) -> CertRequest:
    """Return the request for a client certificate of `user`."""
    return CertRequest(common_name=user, organizations=organizations, usages=(CLIENT_AUTH,), not_after=not_after)
