"""Requests for keys, certificates and kubeconfigs, as a plan holds them: specifications, never keys.

The interpreter of the action `Issue` makes them.
"""

from datetime import timedelta
from typing import TypeAlias

from garboard.documents import Json
from garboard.engine import Adapter, Issue, IssuedFile, Registered, Tagged
from garboard.errors import NotReady
from garboard.model.duration import Duration
from garboard.model.go import join_path
from garboard.pki import AltNames, CertSpec, KeyAlgorithm, KubeconfigSpec, PkiInputs, certificate
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE
from garboard.pki.kubeconfig import ReadFile, read_kubeconfig
from garboard.pki.names import ControlPlaneEndpoint
from garboard.pki.spec import KUBECONFIGS, SERVICE_ACCOUNT_BASE_NAME, CertContent
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """A certificate of the tree with its key, below the certificates' folder."""

    spec: CertSpec
    inputs: PkiInputs
    folder: str

    @property
    def key_algorithm(self) -> KeyAlgorithm:
        return self.inputs.key_algorithm

    def describe(self) -> dict[str, Json]:
        spec, inputs = self.spec, self.inputs
        names = spec.all_names(inputs).canonical()
        validity = inputs.ca_certificate_validity if spec.is_ca else inputs.certificate_validity
        shown: dict[str, Json] = {
            "commonName": spec.common_name or inputs.node_name,
            "signedBy": spec.ca or "itself",
            "algorithm": inputs.key_algorithm.value,
            "validFor": _lasting(validity),
        }
        return {**shown, **_names(names)}

    def action(self) -> Issue:
        return Issue(name=f"certificate {self.spec.name}", files=_pair(self.spec, self.folder), request=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountRequest:
    """The key that signs the tokens of service accounts."""

    inputs: PkiInputs
    folder: str

    @property
    def key_algorithm(self) -> KeyAlgorithm:
        return self.inputs.key_algorithm

    def describe(self) -> dict[str, Json]:
        return {"algorithm": self.inputs.key_algorithm.value}

    def action(self) -> Issue:
        base = join_path(self.folder, SERVICE_ACCOUNT_BASE_NAME)
        files = (
            IssuedFile(f"{base}.key", SECRET_MODE, "<key of sa>"),
            IssuedFile(f"{base}.pub", SECRET_MODE, "<public key of sa>"),
        )
        return Issue(name="key sa", files=files, request=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigRequest:
    """A kubeconfig with a client certificate that the CA in the certificates' folder signs."""

    spec: KubeconfigSpec
    inputs: PkiInputs
    folder: str
    kubeconfig_dir: str

    @property
    def key_algorithm(self) -> KeyAlgorithm:
        return self.inputs.key_algorithm

    def describe(self) -> dict[str, Json]:
        spec, inputs = self.spec, self.inputs
        shown: dict[str, Json] = {
            "user": spec.user_name(inputs),
            "server": spec.server.url(inputs),
            "signedBy": "ca",
            "algorithm": inputs.key_algorithm.value,
            "validFor": _lasting(inputs.certificate_validity),
        }
        return {**shown, **_groups(spec.organizations)}

    def action(self) -> Issue:
        path = join_path(self.kubeconfig_dir, self.spec.file_name)
        file = _kubeconfig(path, self.spec.user_name(self.inputs))
        return Issue(name=f"kubeconfig {self.spec.file_name}", files=(file,), request=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalRequest:
    """A certificate that is there, in a file of its own or in a kubeconfig, with the same content but a new key."""

    spec: CertSpec | KubeconfigSpec
    ca: str  # the name of the authority that signs it
    content: CertContent
    validity: timedelta
    key_algorithm: KeyAlgorithm
    folder: str
    kubeconfig_dir: str

    def describe(self) -> dict[str, Json]:
        content = self.content
        shown: dict[str, Json] = {
            "commonName": content.common_name,
            "signedBy": self.ca,
            "algorithm": self.key_algorithm.value,
            "validFor": _lasting(self.validity),
        }
        return {**shown, **_groups(content.organizations), **_names(content.alt_names.canonical())}

    def action(self) -> Issue:
        spec = self.spec
        if isinstance(spec, CertSpec):
            return Issue(name=f"certificate {spec.name}", files=_pair(spec, self.folder), request=self)
        path = join_path(self.kubeconfig_dir, spec.file_name)
        return Issue(
            name=f"certificate in {spec.file_name}",
            files=(_kubeconfig(path, self.content.common_name),),
            request=self,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationRequest:
    """The kubelet's kubeconfig with the certificate that it renews by itself, instead of the one that it began with."""

    path: str
    node_name: str
    pem: str

    def describe(self) -> dict[str, Json]:
        return {"user": self.user_name, "certificate": self.pem}

    @property
    def user_name(self) -> str:
        return f"system:node:{self.node_name}"

    def action(self) -> Issue:
        file = IssuedFile(self.path, SECRET_MODE, f"<kubeconfig with the certificate in {self.pem}>")
        return Issue(name="kubeconfig of a kubelet that rotates its certificate", files=(file,), request=self)

    def is_done(self, read: ReadFile) -> bool:
        found = read(self.path)
        user = read_kubeconfig(found, self.path).user if found is not None else None
        return user is not None and user.get("client-certificate") == self.pem

    def content(self, read: ReadFile) -> bytes:
        """Return the file as it shall be; as it is, if the kubelet has stored no certificate."""
        found = read(self.path)
        if found is None:
            raise NotReady(f"{self.path} has gone", hint="garboard init phase kubeconfig kubelet")
        if read(self.pem) is None:
            return found
        return read_kubeconfig(found, self.path).with_rotating_certificate(self.user_name, self.pem)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A certificate that an external authority has signed, and its key, from the folder in which both wait."""

    spec: CertSpec
    inputs: PkiInputs
    folder: str
    waiting: str

    def path(self, end: str) -> str:
        """Return the file that waits: its key, its csr, or its signed crt."""
        return join_path(self.waiting, f"{self.spec.base_name}.{end}")

    def describe(self) -> dict[str, Json]:
        spec = self.spec
        shown: dict[str, Json] = {"signedBy": f"{spec.ca}, elsewhere", "from": self.path("crt")}
        return {**shown, **_names(spec.all_names(self.inputs).canonical())}

    def action(self) -> Issue:
        return Issue(name=f"signed certificate {self.spec.name}", files=_pair(self.spec, self.folder), request=self)


KeyRequest: TypeAlias = CertificateRequest | ServiceAccountRequest | KubeconfigRequest | RenewalRequest
PkiRequest: TypeAlias = KeyRequest | RotationRequest | SignedRequest


def _pair(spec: CertSpec, folder: str) -> tuple[IssuedFile, ...]:
    base = join_path(folder, spec.base_name)
    return (
        IssuedFile(f"{base}.key", SECRET_MODE, f"<key of {spec.name}>"),
        IssuedFile(f"{base}.crt", CERTIFICATE_MODE, f"<certificate {spec.name}>"),
    )


def _kubeconfig(path: str, user: str) -> IssuedFile:
    return IssuedFile(path, SECRET_MODE, f"<kubeconfig with the key and certificate of {user}>")


def _lasting(validity: timedelta) -> str:
    return str(Duration.of(seconds=validity.total_seconds()))


def _names(names: AltNames) -> dict[str, Json]:
    listed: list[Json] = [*names.dns, *map(str, names.ips)]
    return {"names": listed} if listed else {}


def _groups(organizations: tuple[str, ...]) -> dict[str, Json]:
    return {"groups": [*organizations]} if organizations else {}


_KUBECONFIGS = {spec.name: spec for spec in KUBECONFIGS}

# How journals know these; so has every type of their fields that is not a plain value its line here.
JOURNAL_TYPES: tuple[Registered, ...] = (
    Tagged("certificate-request", CertificateRequest, "CertificateRequest"),
    Tagged("service-account-request", ServiceAccountRequest, "ServiceAccountRequest"),
    Tagged("kubeconfig-request", KubeconfigRequest, "KubeconfigRequest"),
    Tagged("renewal-request", RenewalRequest),
    Tagged("rotation-request", RotationRequest, "RotationRequest"),
    Tagged("signed-request", SignedRequest),
    Tagged("pki-inputs", PkiInputs, "PkiInputs"),
    Tagged("certificate-content", CertContent),
    Tagged("alternative-names", AltNames),
    Tagged("control-plane-endpoint", ControlPlaneEndpoint, "Endpoint"),
    Tagged("key-algorithm", KeyAlgorithm, "KeyAlgorithm"),
    # These hold functions, and are known by their names.
    Adapter("CertSpec", CertSpec, lambda spec: spec.name, certificate),
    Adapter("KubeconfigSpec", KubeconfigSpec, lambda spec: spec.name, _KUBECONFIGS.__getitem__),
)
