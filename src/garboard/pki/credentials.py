"""Kubeconfigs of a control-plane node: making them, and what to do about the ones that are already there."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from garboard.errors import BadDocument, GarboardError
from garboard.pki.chain import read_certificates
from garboard.pki.decide import Decision, Generate, Keep, Refuse
from garboard.pki.files import SECRET_MODE, Folder, IssuedPair, NewFile, Unreadable
from garboard.pki.inputs import KeyAlgorithm, PkiInputs
from garboard.pki.issue import certificate_pem, issue_leaf
from garboard.pki.keys import KeySource, private_key_pem
from garboard.pki.kubeconfig import BearerToken, ClientCertificate, CurrentContext, Kubeconfig, read_kubeconfig
from garboard.pki.spec import CertRequest, KubeconfigSpec, ServerChoice

# With an external CA the kubelet's kubeconfig is compared with the shared endpoint, unlike the one init writes.
_EXTERNAL_CA_CHECKS = (
    ("controller-manager.conf", ServerChoice.LOCAL),
    ("scheduler.conf", ServerChoice.LOCAL),
    ("admin.conf", ServerChoice.SHARED),
    ("super-admin.conf", ServerChoice.SHARED),
    ("kubelet.conf", ServerChoice.SHARED),
)


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """The cluster of a kubeconfig: its name there, and the URL of its API server."""

    name: str
    server: str


def issue_kubeconfig(
    request: CertRequest, cluster: ClusterEntry, ca: IssuedPair, algorithm: KeyAlgorithm, keys: KeySource
) -> Kubeconfig:
    """Return a kubeconfig with a new client certificate signed by `ca`."""
    pair = issue_leaf(request, ca, algorithm, keys)
    return Kubeconfig(
        cluster_name=cluster.name,
        server=cluster.server,
        user_name=request.common_name,
        ca=certificate_pem(ca.certificate),
        credential=ClientCertificate(certificate_pem(pair.certificate), private_key_pem(pair.key)),
    )


def token_kubeconfig(user: str, token: str, cluster: ClusterEntry, ca: x509.Certificate) -> Kubeconfig:
    """Return a kubeconfig that authenticates with a bearer token."""
    return Kubeconfig(
        cluster_name=cluster.name,
        server=cluster.server,
        user_name=user,
        ca=certificate_pem(ca),
        credential=BearerToken(token),
    )


def kubeconfig_file(
    spec: KubeconfigSpec, inputs: PkiInputs, ca: IssuedPair, keys: KeySource, started_at: datetime
) -> NewFile:
    """Return one of the five files with a new credential."""
    request = spec.request(inputs, started_at)
    cluster = ClusterEntry(inputs.cluster_name, spec.server.url(inputs))
    document = issue_kubeconfig(request, cluster, ca, inputs.key_algorithm, keys)
    return NewFile(spec.file_name, document.to_bytes(), SECRET_MODE)


@dataclass(frozen=True, slots=True)
class ObservedKubeconfig:
    """An existing kubeconfig; `trusted` are the CA certificates of its cluster, none if they cannot be read."""

    path: str
    current: CurrentContext | Unreadable
    trusted: tuple[x509.Certificate, ...] = ()

    def problem(self, ca: tuple[x509.Certificate, ...]) -> str | None:
        """Say why the file cannot be used with the CA certificates `ca`, if it cannot."""
        if isinstance(self.current, Unreadable):
            return self.current.reason
        if not self.trusted:
            return f'the kubeconfig file "{self.path}" contains an invalid CA cert'
        if self.trusted[0] in ca:
            return None
        return (
            f'a kubeconfig file "{self.path}" exists but does not contain a trusted CA '
            f"in its current context's cluster. Total CA certificates found: {len(self.trusted)}"
        )

    def server_warning(self, expected: str) -> tuple[str, ...]:
        if isinstance(self.current, Unreadable) or self.current.server == expected:
            return ()
        warning = (
            f'a kubeconfig file "{self.path}" exists already but has an unexpected API Server URL: '
            f"expected: {expected}, got: {self.current.server}"
        )
        return (warning,)


def observe_kubeconfig(folder: Folder, file_name: str) -> ObservedKubeconfig | None:
    """Read a kubeconfig of `folder`, and the file that it names for its CA when it embeds none."""
    path = folder.path_of(file_name)
    data = folder.read(file_name)
    if data is None:
        return None
    try:
        current = read_kubeconfig(data, path)
        embedded = current.ca.strip()
    except BadDocument as error:
        return ObservedKubeconfig(path, Unreadable(error.message))
    try:
        linked = folder.read(current.ca_path) if current.ca_path and not embedded else None
        return ObservedKubeconfig(path, current, read_certificates((linked or embedded).strip()))
    except GarboardError:
        return ObservedKubeconfig(path, current)


def decide_kubeconfig(
    spec: KubeconfigSpec, found: ObservedKubeconfig | None, inputs: PkiInputs, ca: tuple[x509.Certificate, ...]
) -> Decision:
    """Decide about one file as its init phase does: one that trusts the CA is kept, whatever else it says."""
    if found is None:
        return Generate(spec.file_name)
    if problem := found.problem(ca):
        return Refuse(spec.file_name, problem)
    message = f'Using existing kubeconfig file: "{found.path}"'
    return Keep(spec.file_name, message, found.server_warning(spec.server.url(inputs)))


def decide_with_external_ca(
    found: Mapping[str, ObservedKubeconfig | None], inputs: PkiInputs, ca: tuple[x509.Certificate, ...]
) -> tuple[Decision, ...]:
    """Decide about the five files when the CA's key is elsewhere: all must be there, because none can be made."""
    return tuple(_decide_provided(name, server, found.get(name), inputs, ca) for name, server in _EXTERNAL_CA_CHECKS)


def _decide_provided(
    name: str,
    server: ServerChoice,
    found: ObservedKubeconfig | None,
    inputs: PkiInputs,
    ca: tuple[x509.Certificate, ...],
) -> Decision:
    problem = found.problem(ca) if found else "there is no such file"
    if problem or found is None:
        return Refuse(name, f"the {name} file does not exist or it is not valid: {problem}")
    message = f"External CA mode: Using user provided {name}"
    return Keep(name, message, found.server_warning(server.url(inputs)))
