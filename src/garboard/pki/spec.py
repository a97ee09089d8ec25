"""The certificates of a control plane as data: names, files, signers, usages, and the names each one carries."""

import enum
from collections.abc import Callable
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from garboard.errors import InvalidValue
from garboard.model.addresses import IpAddress, IpNetwork
from garboard.pki.names import NO_NAMES, AltNames, Endpoint, sort_names
from garboard.values import dataclass

# Extended key usages by object identifier (RFC 5280, 4.2.1.12).
SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"

# A node whose clock runs behind ours would refuse a certificate that starts now.
BACKDATE = timedelta(minutes=5)

CERTIFICATE_VALIDITY = timedelta(hours=8760)
CA_CERTIFICATE_VALIDITY = timedelta(hours=87600)


class KeyAlgorithm(enum.Enum):
    """The algorithms of `encryptionAlgorithm`."""

    RSA_2048 = "RSA-2048"
    RSA_3072 = "RSA-3072"
    RSA_4096 = "RSA-4096"
    ECDSA_P256 = "ECDSA-P256"
    ECDSA_P384 = "ECDSA-P384"

    @classmethod
    def parse(cls, text: str) -> "KeyAlgorithm":
        try:
            return cls(text)
        except ValueError:
            known = ", ".join(each.value for each in cls)
            raise InvalidValue(f"{text!r} is not a key algorithm", hint=f"the algorithms are {known}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PkiInputs:
    """What certificates and kubeconfigs depend on, out of everything a cluster's configuration says."""

    node_name: str
    advertise_address: IpAddress
    bind_port: int = 6443
    control_plane_endpoint: Endpoint | None = None
    is_kubelet_local_mode: bool = True
    cluster_name: str = "kubernetes"
    service_subnets: tuple[IpNetwork, ...] = (IPv4Network("10.96.0.0/12"),)
    dns_domain: str = "cluster.local"
    api_server_cert_sans: tuple[str, ...] = ()
    etcd_server_cert_sans: tuple[str, ...] = ()
    etcd_peer_cert_sans: tuple[str, ...] = ()
    has_external_etcd: bool = False
    key_algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048
    certificate_validity: timedelta = CERTIFICATE_VALIDITY
    ca_certificate_validity: timedelta = CA_CERTIFICATE_VALIDITY

    @property
    def local_url(self) -> str:
        """The URL of this node's own API server."""
        return Endpoint(str(self.advertise_address)).url(self.bind_port)

    @property
    def control_plane_url(self) -> str:
        """The URL of the shared endpoint; without one, of this node's API server."""
        endpoint = self.control_plane_endpoint
        return endpoint.url(self.bind_port) if endpoint else self.local_url

    @property
    def api_server_service_ip(self) -> IpAddress:
        """The first address of the first service subnet, under which pods reach the API server."""
        subnet = self.service_subnets[0]
        if subnet.num_addresses < 2:
            raise InvalidValue(
                f"the service subnet {subnet} has no room for the API server's address",
                hint="choose a larger serviceSubnet, such as 10.96.0.0/12",
            )
        return subnet[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertRequest:
    """What one certificate shall say; only key, serial number and signer are missing.

    Without `not_before` the certificate starts when its signer does, as the ones in kubeconfigs do.
    """

    common_name: str
    not_after: datetime
    not_before: datetime | None = None
    organizations: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    alt_names: AltNames = NO_NAMES


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
        """Return what the certificate shall say when this run started at `started_at`."""
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
