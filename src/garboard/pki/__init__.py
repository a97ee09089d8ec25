"""Every certificate, key and kubeconfig credential of a control plane, as kubeadm makes them.

`spec` lists the certificates and `inputs` what they depend on, `issue` makes them, `store` reads existing ones and
`decide` whether these are kept; `credentials` does the same for kubeconfigs. `expiration` says when certificates
expire, and `renewal` which are issued again. Files are read through the caller's `Folder`.
"""

# Only what imports no cryptography: a command's help must not pay for it. The rest is imported from its module.
from garboard.pki.inputs import KeyAlgorithm, PkiInputs
from garboard.pki.names import AltNames, ControlPlaneEndpoint
from garboard.pki.spec import (
    CERTIFICATES,
    KUBECONFIGS,
    CertRequest,
    CertSpec,
    KubeconfigSpec,
    ServerChoice,
    certificate,
    expected_certificates,
)

__all__ = [
    "CERTIFICATES",
    "KUBECONFIGS",
    "AltNames",
    "CertRequest",
    "CertSpec",
    "ControlPlaneEndpoint",
    "KeyAlgorithm",
    "KubeconfigSpec",
    "PkiInputs",
    "ServerChoice",
    "certificate",
    "expected_certificates",
]
