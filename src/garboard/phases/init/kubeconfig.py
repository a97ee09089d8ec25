"""`init phase kubeconfig`: the kubeconfigs of a control-plane node."""

from collections.abc import Callable, Iterator

from garboard.engine import Note, Step
from garboard.phases.deciding import steps_for
from garboard.phases.init.context import InitContext
from garboard.phases.issuing import KubeconfigRequest
from garboard.pki import KubeconfigSpec
from garboard.pki.credentials import decide_kubeconfig
from garboard.pki.decide import Refuse, signer_problem


def plan_kubeconfig(spec: KubeconfigSpec) -> Callable[[InitContext], Iterator[Step | Note]]:
    """Return how one kubeconfig is planned; with an external CA, whose files were checked before, nothing is."""

    def plan(context: InitContext) -> Iterator[Step | Note]:
        if context.found.is_external_ca:
            yield Note(f"External CA mode: Using user provided {spec.file_name}")
            return
        request = KubeconfigRequest(
            spec=spec,
            inputs=context.inputs,
            folder=context.config.cluster.certificates_dir,
            kubeconfig_dir=context.kubeconfig_dir,
        )
        ca = context.found.pairs["ca"]
        is_ca_planned = context.is_ca_planned("ca")
        if not is_ca_planned and (problem := signer_problem(ca)):
            reason = f"couldn't create a kubeconfig; the CA files couldn't be loaded: {problem}"
            yield from steps_for(Refuse(spec.file_name, reason), request.action(), "")
        # A file that is there cannot trust an authority that is still to be made.
        trusted = ca.chain if isinstance(ca.chain, tuple) and not is_ca_planned else ()
        found = context.found.kubeconfigs[spec.file_name]
        decision = decide_kubeconfig(spec, found, context.inputs, trusted)
        yield from steps_for(decision, request.action(), f"there is no {spec.file_name}")

    return plan
