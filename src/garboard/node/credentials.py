"""Credentials that no run makes: signing requests for an external authority, and kubeconfigs for other users.

As with kubeadm, neither takes the node lock: files that exist are never overwritten, and a kubeconfig is only shown.
"""

from datetime import UTC, datetime, timedelta

from garboard.errors import GarboardError
from garboard.host import HostFolder
from garboard.model.lifecycle import InitConfiguration
from garboard.node.reporter import Reporter
from garboard.pki.credentials import ClusterEntry, issue_kubeconfig, token_kubeconfig
from garboard.pki.files import write_files
from garboard.pki.inputs import inputs_of
from garboard.pki.keys import PooledKeys, SystemKeys
from garboard.pki.signing_requests import (
    CERTIFICATE_REQUEST_FILES,
    KUBECONFIG_REQUEST_FILES,
    certificate_requests,
    kubeconfig_requests,
    refuse_to_overwrite,
)
from garboard.pki.spec import client_request
from garboard.pki.store import observe_pair
from garboard.values import dataclass

_REQUESTS = 12  # of all certificates and kubeconfigs


def write_signing_requests(
    configuration: InitConfiguration, cert_dir: str | None, kubeconfig_dir: str, reporter: Reporter
) -> None:
    """Make the keys of all certificates and kubeconfigs, and requests for an external authority to sign."""
    inputs = inputs_of(configuration)
    certificates_dir = cert_dir or configuration.cluster.certificates_dir
    pki, conf = HostFolder(certificates_dir), HostFolder(kubeconfig_dir)
    refuse_to_overwrite(pki, CERTIFICATE_REQUEST_FILES)
    refuse_to_overwrite(conf, KUBECONFIG_REQUEST_FILES)
    with PooledKeys([inputs.key_algorithm] * _REQUESTS) as keys:
        started_at = datetime.now(UTC)
        certificates = certificate_requests(inputs, keys, started_at)
        kubeconfigs = kubeconfig_requests(inputs, keys, started_at)
    for written, folder, files in ((certificates_dir, pki, certificates), (kubeconfig_dir, conf, kubeconfigs)):
        reporter.show(f"generating keys and CSRs in {written}\n")
        write_files(folder, files)
        for file in files:
            if file.name.endswith(".csr"):
                reporter.show(f"  {file.name.removesuffix('.csr')}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigUser:
    """Whom a kubeconfig is for: a user with a token, or else with a certificate for groups and a time."""

    name: str
    groups: tuple[str, ...] = ()
    token: str | None = None
    validity: timedelta


def user_kubeconfig(configuration: InitConfiguration, cert_dir: str | None, user: KubeconfigUser) -> bytes:
    """Return a kubeconfig for another user, signed by the cluster's certificate authority on this machine."""
    inputs = inputs_of(configuration)
    folder = cert_dir or configuration.cluster.certificates_dir
    ca = observe_pair(HostFolder(folder), "ca").as_signer()
    if ca is None:
        raise GarboardError(
            f"the certificate authority in {folder} cannot be used: ca.crt and ca.key must both be there",
            hint="pass --cert-dir if the certificates live elsewhere",
            error_class="bad-authority",
        )
    cluster = ClusterEntry(inputs.cluster_name, inputs.control_plane_url)
    if user.token:
        return token_kubeconfig(user.name, user.token, cluster, ca.certificate).to_bytes()
    request = client_request(user.name, user.groups, not_after=datetime.now(UTC) + user.validity)
    return issue_kubeconfig(request, cluster, ca, inputs.key_algorithm, SystemKeys()).to_bytes()
