"""Keys and signing requests for an external certificate authority."""

from dataclasses import replace
from datetime import datetime

from cryptography import x509

from garboard.errors import GarboardError
from garboard.pki.files import SECRET_MODE, Folder, NewFile
from garboard.pki.inputs import PkiInputs
from garboard.pki.issue import csr_pem, make_csr
from garboard.pki.keys import KeySource, private_key_pem
from garboard.pki.kubeconfig import ClientCertificate, Kubeconfig
from garboard.pki.spec import CERTIFICATES, KUBECONFIGS, KubeconfigSpec

CERTIFICATE_REQUEST_FILES = tuple(f"{s.base_name}.{end}" for s in CERTIFICATES if s.ca for end in ("key", "csr"))
KUBECONFIG_REQUEST_FILES = tuple(f"{s.file_name}{end}" for s in KUBECONFIGS for end in ("", ".csr"))


def certificate_requests(inputs: PkiInputs, keys: KeySource, started_at: datetime) -> tuple[NewFile, ...]:
    """Return a key and a request for every certificate that is not an authority, with external etcd too."""
    files: list[NewFile] = []
    for spec in CERTIFICATES:
        if not spec.is_ca:
            key = keys.private_key(inputs.key_algorithm)
            files.append(NewFile(f"{spec.base_name}.key", private_key_pem(key), SECRET_MODE))
            files.append(csr_file(spec.base_name, make_csr(spec.request(inputs, started_at), key)))
    return tuple(files)


def kubeconfig_requests(inputs: PkiInputs, keys: KeySource, started_at: datetime) -> tuple[NewFile, ...]:
    """Return the five kubeconfigs, each with a key but no certificate, and a request for each."""
    return tuple(file for spec in KUBECONFIGS for file in unsigned_kubeconfig_files(spec, inputs, keys, started_at))


def unsigned_kubeconfig_files(
    spec: KubeconfigSpec, inputs: PkiInputs, keys: KeySource, started_at: datetime
) -> tuple[NewFile, ...]:
    """Return a kubeconfig with a key but no certificates, and the signing request for it.

    The server is the shared endpoint for the kubelet too: that is how kubeadm writes it here, unlike in init.
    """
    request = spec.request(inputs, started_at)
    key = keys.private_key(inputs.key_algorithm)
    document = Kubeconfig(
        cluster_name=inputs.cluster_name,
        server=spec.server.url(replace(inputs, is_kubelet_local_mode=False)),
        user_name=request.common_name,
        ca=b"",
        credential=ClientCertificate(b"", private_key_pem(key)),
    )
    return (
        NewFile(spec.file_name, document.to_bytes(), SECRET_MODE),
        csr_file(spec.file_name, make_csr(request, key)),
    )


def csr_file(name: str, csr: x509.CertificateSigningRequest) -> NewFile:
    return NewFile(f"{name}.csr", csr_pem(csr), SECRET_MODE)


def refuse_to_overwrite(folder: Folder, names: tuple[str, ...]) -> None:
    """Raise if any of the files exists: replacing a key would make its certificate unusable."""
    found = [folder.path_of(name) for name in names if folder.read(name) is not None]
    if found:
        raise GarboardError(
            f"file already exists: {', '.join(found)}",
            hint="move the files away, or choose another --cert-dir and --kubeconfig-dir",
            error_class="exists",
        )
