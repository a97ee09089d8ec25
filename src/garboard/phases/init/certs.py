"""`init phase certs`: every certificate of the control plane, and the key of service accounts."""

from collections.abc import Callable, Iterator

from garboard.engine import Note, Step
from garboard.phases.deciding import steps_for
from garboard.phases.init.context import InitContext
from garboard.phases.issuing import CertificateRequest, ServiceAccountRequest
from garboard.pki import CertSpec
from garboard.pki.decide import decide_one_for_init, decide_service_account


def plan_certificate(spec: CertSpec) -> Callable[[InitContext], Iterator[Step | Note]]:
    """Return how one certificate is planned: kept, issued, skipped or refused, from what is on disk."""

    def plan(context: InitContext) -> Iterator[Step | Note]:
        inputs, folder = context.inputs, context.config.cluster.certificates_dir
        decision = decide_one_for_init(
            spec,
            context.found.pairs,
            inputs,
            context.now,
            is_ca_planned=bool(spec.ca and context.is_ca_planned(spec.ca)),
        )
        request = CertificateRequest(spec=spec, inputs=inputs, folder=folder)
        yield from steps_for(decision, request.action(), f"there is no {spec.base_name}.crt")

    return plan


def plan_service_account(context: InitContext) -> Iterator[Step | Note]:
    decision = decide_service_account(context.found.service_account, has_external_ca=context.found.is_external_ca)
    request = ServiceAccountRequest(inputs=context.inputs, folder=context.config.cluster.certificates_dir)
    yield from steps_for(decision, request.action(), "there is no sa.key")
