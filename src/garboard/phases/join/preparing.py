"""`join phase control-plane-prepare`: all that the control plane of a node is made of."""

from collections.abc import Collection, Iterator

from garboard.engine import Note, Step, WriteFile
from garboard.manifests.static_pods import CONTROL_PLANE
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd
from garboard.phases.deciding import steps_for
from garboard.phases.init.certs import plan_service_account
from garboard.phases.init.kubeconfig import plan_kubeconfig
from garboard.phases.init.static_pods import plan_component
from garboard.phases.issuing import CertificateRequest
from garboard.phases.join.context import JoinContext, shared_path
from garboard.pki import KUBECONFIGS, KeyAlgorithm, certificate, expected_certificates
from garboard.pki.decide import decide_for_join
from garboard.pki.files import SECRET_MODE

# A joining node gets no super-admin.conf, and its kubelet makes kubelet.conf itself.
_KUBECONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")


def new_keys(cluster: ClusterConfiguration, phases: Collection[str]) -> list[KeyAlgorithm]:
    """Return what keys these of the phases below will need on a machine that has none."""
    specs = expected_certificates(has_external_etcd=isinstance(cluster.etcd, ExternalEtcd))
    certificates = sum(spec.ca is not None for spec in specs) if "certs" in phases else 0
    kubeconfigs = len(_KUBECONFIGS) if "kubeconfig" in phases else 0
    return [KeyAlgorithm.parse(cluster.key_algorithm)] * (certificates + kubeconfigs)


def plan_download_certs(context: JoinContext) -> Iterator[Step | Note]:
    """Plan the files that control planes share; they came encrypted with the certificate key."""
    if context.config.control_plane is None or not context.config.control_plane.certificate_key:
        yield Note("Skipping certs download: no certificate key was given")
        return
    folder = context.joined.configuration.certificates_dir
    for file in context.joined.shared:
        path = shared_path(file.name, folder)
        found = context.node.machine.read(path)
        if found == file.data:
            yield Note(f"{path} is as it should be")
            continue
        is_secret = file.mode == SECRET_MODE
        action = WriteFile(path=path, content=file.data, mode=file.mode, is_secret=is_secret)
        yield Step(action, "there is no such file" if found is None else "it is not the one that control planes share")


def plan_certs(context: JoinContext) -> Iterator[Step | Note]:
    """Plan this node's own certificates, signed by what is shared."""
    node, inputs = context.node, context.node.inputs
    folder = context.joined.configuration.certificates_dir
    for decision in decide_for_join(node.found.pairs, inputs, node.now):
        spec = certificate(decision.name)
        request = CertificateRequest(spec=spec, inputs=inputs, folder=folder)
        yield from steps_for(decision, request.action(), f"there is no {spec.base_name}.crt")
    yield from plan_service_account(node)


def plan_kubeconfigs(context: JoinContext) -> Iterator[Step | Note]:
    for spec in KUBECONFIGS:
        if spec.file_name in _KUBECONFIGS:
            yield from plan_kubeconfig(spec)(context.node)


def plan_control_plane(context: JoinContext) -> Iterator[Step | Note]:
    for name in CONTROL_PLANE:
        yield from plan_component(name)(context.node)
