"""Certificates for further control-plane nodes: sealed in the Secret kubeadm-certs, for two hours."""

import hashlib
import hmac
import string
from collections.abc import Iterator

from garboard.engine import Filling, Step
from garboard.manifests.uploaded import certificates_token, kubeadm_certs_rbac, kubeadm_certs_secret
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd
from garboard.model.go_paths import join_path
from garboard.phases.putting import put
from garboard.phases.tokens import planned_token
from garboard.pki.transfer import ExternalEtcdFiles, parse_certificate_key, shared_files

_LETTERS = string.digits + string.ascii_lowercase
_CAUSE = "further control-plane nodes fetch the certificates"


def share_certificates(cluster: ClusterConfiguration, certificate_key: str) -> Iterator[Step]:
    """Plan the Secret with every shared file as it will be by then, sealed with the key, and who may read it."""
    key = parse_certificate_key(certificate_key)
    owner = planned_token(certificates_token(_token_of(key)))
    yield Step(owner, _CAUSE)
    fillings = tuple(_fillings(cluster, key))
    secret = kubeadm_certs_secret({}, owner.name, "")
    secret.content["data"] = {each.placeholder.strip("<>").rpartition(" ")[2]: each.placeholder for each in fillings}
    yield Step(put(secret, fillings=fillings), _CAUSE)
    yield from (Step(put(each), _CAUSE) for each in kubeadm_certs_rbac())


def _fillings(cluster: ClusterConfiguration, key: bytes) -> Iterator[Filling]:
    etcd = cluster.etcd
    external = (
        ExternalEtcdFiles(etcd.ca_file, etcd.cert_file, etcd.key_file) if isinstance(etcd, ExternalEtcd) else None
    )
    for name, path in shared_files(external).items():
        full = path if path.startswith("/") else join_path(cluster.certificates_dir, path)
        yield Filling(f"<sealed {name}>", full, key, is_needed=False)


def _token_of(key: bytes) -> str:
    """Return the token that ends the Secret, which nobody can use: the same for the same key."""
    drawn = hmac.digest(key, b"the token of kubeadm-certs", hashlib.sha256)
    letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in drawn)
    return f"{letters[:6]}.{letters[6:22]}"
