"""The certificates, keys and kubeconfigs of a control-plane node: as found, planned from that, and renewed."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from garboard.engine import Issue, Note, Plan, Step
from garboard.errors import NotReady
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd
from garboard.phases.issuing import CertificateRequest, KubeconfigRequest, RenewalRequest, ServiceAccountRequest
from garboard.phases.node.context import NodeContext, ObservedCredentials
from garboard.pki import KUBECONFIGS, CertSpec, KeyAlgorithm, KubeconfigSpec, certificate, expected_certificates
from garboard.pki.credentials import decide_kubeconfig, decide_with_external_ca, observe_kubeconfig
from garboard.pki.decide import (
    Decision,
    Generate,
    Keep,
    Refuse,
    Skip,
    decide_for_join,
    decide_one_for_init,
    decide_service_account,
    external_authorities,
    refuse_problems,
    signer_problem,
    warnings_of,
)
from garboard.pki.files import Folder
from garboard.pki.renewal import Renew, RenewalDecision
from garboard.pki.store import observe_pairs, observe_service_account
from garboard.pki.transfer import ExternalEtcdFiles, shared_files
from garboard.values import dataclass

# A joining node gets no super-admin.conf, and its kubelet makes kubelet.conf itself.
_JOINING_KUBECONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")
RENEWAL = "certs/renew"


def observe_credentials(certificates: Folder, kubeconfigs: Folder, now: datetime) -> ObservedCredentials:
    """Read what a control plane has, or may have been given, in its two folders."""
    pairs = observe_pairs(certificates)
    return ObservedCredentials(
        pairs=pairs,
        service_account=observe_service_account(certificates),
        kubeconfigs={spec.file_name: observe_kubeconfig(kubeconfigs, spec.file_name) for spec in KUBECONFIGS},
        external=external_authorities(pairs, now),
    )


def check_external_ca(context: NodeContext) -> tuple[str, ...]:
    """Refuse an external CA that is not complete, and return warnings about one that is.

    kubeadm does so before every phase of init, and does not look at the CA of etcd.
    """
    found = context.credentials
    problems = [each for each in found.external if each.problem and each.name != "etcd-ca"]
    if problems:
        told = "; ".join(f"invalid or incomplete external CA {each.name}: {each.problem}" for each in problems)
        raise NotReady(told, hint="bring what it has signed, or its key", error_class="unusable-certificates")
    if not found.is_external_ca:
        return ()
    chain = found.pairs["ca"].chain
    assert isinstance(chain, tuple)
    decisions = decide_with_external_ca(found.kubeconfigs, context.inputs, chain)
    refuse_problems(decisions)
    return warnings_of(decisions)


def plan_certificate(spec: CertSpec) -> Callable[[NodeContext], Iterator[Step | Note]]:
    """Return how one certificate is planned: kept, issued, skipped or refused, from what is on disk."""

    def plan(context: NodeContext) -> Iterator[Step | Note]:
        decision = decide_one_for_init(
            spec,
            context.credentials.pairs,
            context.inputs,
            context.now,
            is_ca_planned=bool(spec.ca and context.is_ca_planned(spec.ca)),
        )
        yield from steps_for(decision, _request(context, spec).action(), f"there is no {spec.base_name}.crt")

    return plan


def steps_for(decision: Decision, action: Issue, cause: str) -> Iterator[Step | Note]:
    """Yield the action if it was decided for, and what there is to say; a refusal is raised."""
    match decision:
        case Refuse():
            refuse_problems([decision])
        case Skip():
            yield Note(decision.message)
        case Keep():
            yield Note(decision.message)
            yield from (Note(text, is_warning=True) for text in decision.warnings)
        case Generate():
            yield from (Note(text, is_warning=True) for text in decision.warnings)
            yield Step(action, cause)


def plan_joining_certificates(context: NodeContext) -> Iterator[Step | Note]:
    """Plan the certificates of a node's own, signed by the authorities that control planes share."""
    for decision in decide_for_join(context.credentials.pairs, context.inputs, context.now):
        spec = certificate(decision.name)
        yield from steps_for(decision, _request(context, spec).action(), f"there is no {spec.base_name}.crt")
    yield from plan_service_account(context)


def _request(context: NodeContext, spec: CertSpec) -> CertificateRequest:
    return CertificateRequest(spec=spec, inputs=context.inputs, folder=context.cluster.certificates_dir)


def plan_service_account(context: NodeContext) -> Iterator[Step | Note]:
    """Plan the key that signs the tokens of service accounts."""
    found = context.credentials
    decision = decide_service_account(found.service_account, has_external_ca=found.is_external_ca)
    request = ServiceAccountRequest(inputs=context.inputs, folder=context.cluster.certificates_dir)
    yield from steps_for(decision, request.action(), "there is no sa.key")


def plan_kubeconfig(spec: KubeconfigSpec) -> Callable[[NodeContext], Iterator[Step | Note]]:
    """Return how one kubeconfig is planned; with an external CA, whose files were checked before, nothing is."""

    def plan(context: NodeContext) -> Iterator[Step | Note]:
        found = context.credentials
        if found.is_external_ca:
            yield Note(f"External CA mode: Using user provided {spec.file_name}")
            return
        request = KubeconfigRequest(
            spec=spec,
            inputs=context.inputs,
            folder=context.cluster.certificates_dir,
            kubeconfig_dir=context.kubeconfig_dir,
        )
        ca, is_ca_planned = found.pairs["ca"], context.is_ca_planned("ca")
        if not is_ca_planned and (problem := signer_problem(ca)):
            reason = f"couldn't create a kubeconfig; the CA files couldn't be loaded: {problem}"
            yield from steps_for(Refuse(spec.file_name, reason), request.action(), "")
        # A file that is there cannot trust an authority that is still to be made.
        trusted = ca.chain if isinstance(ca.chain, tuple) and not is_ca_planned else ()
        decision = decide_kubeconfig(spec, found.kubeconfigs[spec.file_name], context.inputs, trusted)
        yield from steps_for(decision, request.action(), f"there is no {spec.file_name}")

    return plan


def plan_joining_kubeconfigs(context: NodeContext) -> Iterator[Step | Note]:
    """Plan the kubeconfigs of a control plane that joins."""
    for spec in KUBECONFIGS:
        if spec.file_name in _JOINING_KUBECONFIGS:
            yield from plan_kubeconfig(spec)(context)


def joining_keys(cluster: ClusterConfiguration, phases: Collection[str]) -> list[KeyAlgorithm]:
    """Return the keys that `certs` and `kubeconfig`, where `phases` has them, need on a joining node without any."""
    specs = expected_certificates(has_external_etcd=isinstance(cluster.etcd, ExternalEtcd))
    certificates = sum(spec.ca is not None for spec in specs) if "certs" in phases else 0
    kubeconfigs = len(_JOINING_KUBECONFIGS) if "kubeconfig" in phases else 0
    return [KeyAlgorithm.parse(cluster.key_algorithm)] * (certificates + kubeconfigs)


def files_to_share(cluster: ClusterConfiguration) -> Mapping[str, str]:
    """Return the files that control planes share, by their keys in the Secret: paths, or names of certificates."""
    etcd = cluster.etcd
    external = (
        ExternalEtcdFiles(etcd.ca_file, etcd.cert_file, etcd.key_file) if isinstance(etcd, ExternalEtcd) else None
    )
    return shared_files(external)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalSettings:
    """How certificates are renewed; without `key_algorithm` each keeps the one that it has."""

    folder: str
    kubeconfig_dir: str
    validity: timedelta
    key_algorithm: KeyAlgorithm | None = None
    node_name: str = ""

    def request(self, decision: Renew) -> RenewalRequest:
        return RenewalRequest(
            spec=decision.target.spec,
            ca=decision.target.ca,
            content=decision.content,
            validity=self.validity,
            key_algorithm=self.key_algorithm or decision.found_algorithm,
            folder=self.folder,
            kubeconfig_dir=self.kubeconfig_dir,
        )


def plan_renewal(decisions: Iterable[RenewalDecision], settings: RenewalSettings) -> Plan:
    """Return the plan that renews what was decided to be; the notes say what is not, and why."""
    steps: list[Step] = []
    notes: list[Note] = []
    for each in decisions:
        if isinstance(each, Renew):
            action = settings.request(each).action()
            steps.append(Step(action, "its renewal was asked for", phase=RENEWAL, node=settings.node_name))
        else:
            notes.append(Note(each.message, phase=RENEWAL))
    return Plan(tuple(steps), tuple(notes))
