"""What a journal keeps of phases: every kind of request and gate that a plan of theirs can hold."""

from garboard.engine import Adapter, PlanCodec, Registered
from garboard.phases.issuing import CertificateRequest, KubeconfigRequest, RotationRequest, ServiceAccountRequest
from garboard.phases.waiting import gates
from garboard.pki import CertSpec, KubeconfigSpec, PkiInputs, certificate
from garboard.pki.kubeconfig_spec import KUBECONFIGS
from garboard.pki.names import Endpoint
from garboard.pki.spec import KeyAlgorithm

_KUBECONFIGS = {spec.name: spec for spec in KUBECONFIGS}

# A new request or gate has its line here, and so has every type of its fields that is not a plain value.
KEPT: tuple[Registered, ...] = (
    CertificateRequest,
    ServiceAccountRequest,
    KubeconfigRequest,
    RotationRequest,
    gates.KubeletHealthy,
    gates.ComponentHealthy,
    gates.ApiServerReady,
    gates.NodeRegistered,
    gates.KubeletBootstrapped,
    gates.EtcdHealthy,
    PkiInputs,
    Endpoint,
    KeyAlgorithm,
    # These hold functions, and are known by their names.
    Adapter(CertSpec, lambda spec: spec.name, certificate),
    Adapter(KubeconfigSpec, lambda spec: spec.name, _KUBECONFIGS.__getitem__),
)


def plan_codec() -> PlanCodec:
    """Return what writes and reads the plans of every workflow."""
    return PlanCodec(KEPT)
