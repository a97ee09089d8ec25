"""Who makes what phases ask to be issued."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from garboard.engine import IssueRequest
from garboard.errors import NotReady
from garboard.model.go_paths import join_path
from garboard.phases.issuing import (
    CertificateRequest,
    KeyRequest,
    KubeconfigRequest,
    PkiRequest,
    RotationRequest,
    ServiceAccountRequest,
)
from garboard.pki import certificate
from garboard.pki.credentials import kubeconfig_file
from garboard.pki.files import Folder, NewFile
from garboard.pki.issue import IssuedPair, issue_certificate
from garboard.pki.keys import KeySource
from garboard.pki.store import observe_pair, pair_files, service_account_files

FolderAt: TypeAlias = Callable[[str], Folder]


@dataclass(frozen=True, slots=True)
class PkiIssuer:
    """Issues what is asked for; signers are read when they are needed, for an earlier step may have made them."""

    folder_at: FolderAt
    keys: KeySource
    started_at: datetime

    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        assert isinstance(request, PkiRequest), "phases ask for nothing else"
        if isinstance(request, RotationRequest):
            return {request.path: request.content(self.folder_at("/").read)}
        root = request.kubeconfig_dir if isinstance(request, KubeconfigRequest) else request.folder
        return {join_path(root, file.name): file.data for file in self._files(request)}

    def _files(self, request: KeyRequest) -> tuple[NewFile, ...]:
        match request:
            case ServiceAccountRequest():
                return service_account_files(self.keys.private_key(request.inputs.key_algorithm))
            case KubeconfigRequest():
                ca = self._signer("ca", request.folder)
                return (kubeconfig_file(request.spec, request.inputs, ca, self.keys, self.started_at),)
            case CertificateRequest():
                spec = request.spec
                signer = self._signer(spec.ca, request.folder) if spec.ca else None
                pair = issue_certificate(spec, request.inputs, signer, self.keys, self.started_at)
                return pair_files(spec.base_name, pair)

    def _signer(self, name: str, folder: str) -> IssuedPair:
        found = observe_pair(self.folder_at(folder), certificate(name).base_name).as_signer()
        if found is None:
            raise NotReady(f"the certificate authority {name} in {folder} has gone since the plan was made")
        return found
