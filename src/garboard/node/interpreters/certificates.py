"""The issuer: makes the keys, certificates and kubeconfigs that a plan requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from garboard.engine import IssueRequest
from garboard.errors import NotReady
from garboard.model.go import join_path
from garboard.phases.issuing import (
    CertificateRequest,
    KubeconfigRequest,
    PkiRequest,
    RenewalRequest,
    RotationRequest,
    ServiceAccountRequest,
    SignedRequest,
)
from garboard.pki import CertSpec, certificate
from garboard.pki.credentials import kubeconfig_file
from garboard.pki.external import WaitingFiles, signed_problem
from garboard.pki.files import Folder, IssuedPair, NewFile
from garboard.pki.issue import issue_certificate, issue_leaf
from garboard.pki.keys import KeySource
from garboard.pki.renewal import renewed_kubeconfig
from garboard.pki.store import observe_pair, pair_files, service_account_files

FolderAt: TypeAlias = Callable[[str], Folder]


@dataclass(frozen=True, slots=True)
class PkiIssuer:
    """Issues what is requested; CAs are read when they are needed, because an earlier step may have made them."""

    folder_at: FolderAt
    keys: KeySource
    started_at: datetime

    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        assert isinstance(request, PkiRequest), "phases ask for nothing else"
        match request:
            case RotationRequest():
                return {request.path: request.content(self.folder_at("/").read)}
            case RenewalRequest():
                return self._renewed(request)
            case SignedRequest():
                return self._signed(request)
            case KubeconfigRequest():
                return _at(request.kubeconfig_dir, self._new_files(request))
            case CertificateRequest() | ServiceAccountRequest():
                return _at(request.folder, self._new_files(request))

    def _new_files(
        self, request: CertificateRequest | ServiceAccountRequest | KubeconfigRequest
    ) -> tuple[NewFile, ...]:
        match request:
            case ServiceAccountRequest():
                return service_account_files(self.keys.private_key(request.key_algorithm))
            case KubeconfigRequest():
                ca = self._signer("ca", request.folder)
                return (kubeconfig_file(request.spec, request.inputs, ca, self.keys, self.started_at),)
            case CertificateRequest():
                spec = request.spec
                signer = self._signer(spec.ca, request.folder) if spec.ca else None
                pair = issue_certificate(spec, request.inputs, signer, self.keys, self.started_at)
                return pair_files(spec.base_name, pair)

    def _renewed(self, request: RenewalRequest) -> Mapping[str, bytes]:
        spec, ca = request.spec, self._signer(request.ca, request.folder)
        wanted = request.content.request(self.started_at, request.validity)
        pair = issue_leaf(wanted, ca, request.key_algorithm, self.keys)
        if isinstance(spec, CertSpec):
            return _at(request.folder, pair_files(spec.base_name, pair))
        path = join_path(request.kubeconfig_dir, spec.file_name)
        found = self.folder_at(request.kubeconfig_dir).read(spec.file_name)
        if found is None:
            raise NotReady(f"{path} has gone since the plan was made")
        return {path: renewed_kubeconfig(found, path, pair, ca.certificate)}

    def _signed(self, request: SignedRequest) -> Mapping[str, bytes]:
        """Return what waits, if it is signed as it has to be."""
        spec, tree = request.spec, self.folder_at(request.folder)
        waiting = WaitingFiles.read(self.folder_at(request.waiting), spec)
        problem = signed_problem(
            waiting,
            spec,
            request.inputs,
            authority=tree.read(f"{certificate(spec.ca or 'ca').base_name}.crt"),
            former=tree.read(f"{spec.base_name}.crt"),
            now=self.started_at,
        )
        if problem or waiting.key is None or waiting.certificate is None:
            raise NotReady(f"{request.path('crt')}: {problem}", hint="have it signed, and run the same command again")
        base = join_path(request.folder, spec.base_name)
        return {f"{base}.key": waiting.key, f"{base}.crt": waiting.certificate}

    def _signer(self, name: str, folder: str) -> IssuedPair:
        found = observe_pair(self.folder_at(folder), certificate(name).base_name).as_signer()
        if found is None:
            raise NotReady(f"the certificate authority {name} in {folder} has gone since the plan was made")
        return found


def _at(folder: str, files: tuple[NewFile, ...]) -> Mapping[str, bytes]:
    return {join_path(folder, file.name): file.data for file in files}
