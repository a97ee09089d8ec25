"""Keys and signing requests for certificates that someone else will sign."""

from datetime import datetime

from garboard.errors import GarboardError
from garboard.pki.credentials import unsigned_kubeconfig_files
from garboard.pki.files import SECRET_MODE, Folder, NewFile
from garboard.pki.issue import make_csr
from garboard.pki.keys import KeySource, private_key_pem
from garboard.pki.kubeconfig_spec import KUBECONFIGS
from garboard.pki.spec import CERTIFICATES, PkiInputs
from garboard.pki.store import csr_file

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


def refuse_to_overwrite(folder: Folder, names: tuple[str, ...]) -> None:
    """Raise if any of the files is there: a key that is replaced makes the certificate made for it worthless."""
    found = [folder.path_of(name) for name in names if folder.read(name) is not None]
    if found:
        raise GarboardError(
            f"file already exists: {', '.join(found)}",
            hint="move the files away, or choose another --cert-dir and --kubeconfig-dir",
            error_class="exists",
        )
