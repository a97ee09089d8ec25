"""Every certificate, key and kubeconfig credential of a control plane, as kubeadm makes them.

`spec` says what there is, `issue` makes it, `store` and `decide` look at what is there already, `credentials` does the
same for kubeconfigs, `expiration` and `renewal` keep it all alive. Files and the machine are left to a `Folder`.
"""

# Only what imports no cryptography: a command's help must not pay for it. The rest is imported from its module.
from garboard.pki.kubeconfig_spec import KUBECONFIGS, KubeconfigSpec, Server
from garboard.pki.names import AltNames, Endpoint
from garboard.pki.spec import (
    CERTIFICATES,
    CertRequest,
    CertSpec,
    KeyAlgorithm,
    PkiInputs,
    certificate,
    expected_certificates,
)

__all__ = [
    "CERTIFICATES",
    "KUBECONFIGS",
    "AltNames",
    "CertRequest",
    "CertSpec",
    "Endpoint",
    "KeyAlgorithm",
    "KubeconfigSpec",
    "PkiInputs",
    "Server",
    "certificate",
    "expected_certificates",
]
