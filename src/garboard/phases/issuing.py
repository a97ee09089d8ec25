"""What phases ask to be issued: keys, certificates, kubeconfigs. Making them is left to `issuer`."""

from typing import TypeAlias

from garboard.documents import Json
from garboard.engine import Issue, IssuedFile
from garboard.errors import NotReady
from garboard.model.duration import Duration
from garboard.model.go_paths import join_path
from garboard.pki import CertSpec, KubeconfigSpec, PkiInputs
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE
from garboard.pki.kubeconfig import ReadFile, read_kubeconfig
from garboard.pki.spec import SERVICE_ACCOUNT_BASE_NAME
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """A certificate of the tree with its key, below the certificates' folder."""

    spec: CertSpec
    inputs: PkiInputs
    folder: str

    def describe(self) -> dict[str, Json]:
        spec, inputs = self.spec, self.inputs
        names = spec.all_names(inputs).canonical()
        validity = inputs.ca_certificate_validity if spec.is_ca else inputs.certificate_validity
        shown: dict[str, Json] = {
            "commonName": spec.common_name or inputs.node_name,
            "signedBy": spec.ca or "itself",
            "algorithm": inputs.key_algorithm.value,
            "validFor": str(Duration.of(seconds=validity.total_seconds())),
        }
        alt_names: list[Json] = [*names.dns, *map(str, names.ips)]
        return {**shown, "names": alt_names} if alt_names else shown

    def action(self) -> Issue:
        base = join_path(self.folder, self.spec.base_name)
        files = (
            IssuedFile(f"{base}.key", SECRET_MODE, f"<key of {self.spec.name}>"),
            IssuedFile(f"{base}.crt", CERTIFICATE_MODE, f"<certificate {self.spec.name}>"),
        )
        return Issue(name=f"certificate {self.spec.name}", files=files, request=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountRequest:
    """The key that signs the tokens of service accounts."""

    inputs: PkiInputs
    folder: str

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

    def describe(self) -> dict[str, Json]:
        spec, inputs = self.spec, self.inputs
        shown: dict[str, Json] = {
            "user": spec.user_name(inputs),
            "server": spec.server.url(inputs),
            "signedBy": "ca",
            "algorithm": inputs.key_algorithm.value,
            "validFor": str(Duration.of(seconds=inputs.certificate_validity.total_seconds())),
        }
        return {**shown, "groups": [*spec.organizations]} if spec.organizations else shown

    def action(self) -> Issue:
        path = join_path(self.kubeconfig_dir, self.spec.file_name)
        holds = f"<kubeconfig with the key and certificate of {self.spec.user_name(self.inputs)}>"
        file = IssuedFile(path, SECRET_MODE, holds)
        return Issue(name=f"kubeconfig {self.spec.file_name}", files=(file,), request=self)


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


KeyRequest: TypeAlias = CertificateRequest | ServiceAccountRequest | KubeconfigRequest
PkiRequest: TypeAlias = KeyRequest | RotationRequest
