"""Authorities whose keys are not on a node: what they sign is signed elsewhere, and waited for."""

from garboard.change.snapshot import SnapshotNode
from garboard.model.go import join_path
from garboard.pki import CertSpec, certificate

WAITING = "/var/lib/garboard/signing"  # keys, requests, and the signed certificates beside them


def authority_keys(certificates_dir: str) -> tuple[str, ...]:
    """Return where the keys are of the authorities that sign serving certificates."""
    return tuple(_key(certificates_dir, name) for name in ("ca", "etcd-ca"))


def is_signed_elsewhere(node: SnapshotNode, certificates_dir: str, spec: CertSpec) -> bool:
    """Whether the key that would sign a certificate is not on a node; false where nobody has looked."""
    return (node.host_paths or {}).get(_key(certificates_dir, spec.ca or "ca")) == "absent"


def _key(certificates_dir: str, name: str) -> str:
    return join_path(certificates_dir, f"{certificate(name).base_name}.key")
