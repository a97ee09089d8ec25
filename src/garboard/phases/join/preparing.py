"""`join phase preflight` and `control-plane-prepare`: is the node fit, and all that its control plane is made of."""

from collections.abc import Iterator

from garboard.engine import Note, Step, WriteFile
from garboard.errors import NotReady
from garboard.manifests.static_pods import CONTROL_PLANE
from garboard.model.component import LocalEtcd
from garboard.phases.deciding import steps_for
from garboard.phases.init.certs import plan_service_account
from garboard.phases.init.kubeconfig import plan_kubeconfig
from garboard.phases.init.preflight import notes_of, verdict_of
from garboard.phases.init.static_pods import plan_component
from garboard.phases.issuing import CertificateRequest
from garboard.phases.join.context import JoinContext, shared_path
from garboard.phases.preflight import Check, control_plane_checks, join_checks, plan_images
from garboard.pki import KUBECONFIGS, certificate
from garboard.pki.decide import decide_for_join
from garboard.pki.store import SECRET_MODE

# A joining node gets no super-admin.conf, and its kubelet makes kubelet.conf itself.
_KUBECONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")
_SHARED_PAIRS = ("ca", "front-proxy-ca", "etcd/ca")


def plan_preflight(context: JoinContext) -> Iterator[Step | Note]:
    """Refuse a machine or a cluster that is not ready, and plan to pull images; say which cluster it is."""
    cluster, node = context.joined, context.node
    yield Note(f"joining the cluster at {context.found.server}, Kubernetes {cluster.configuration.kubernetes_version}")
    yield from (Note(text, is_warning=True) for text in (*context.found.warnings, *cluster.warnings))
    if node.exam is not None:
        verdict = verdict_of(_checks(context), node.exam, node.ignored_checks)
        if not node.is_only_shown:
            verdict.refuse()
        yield from notes_of(verdict)
    if context.config.control_plane is not None:
        _refuse_unshared(context)
        if node.exam is not None:
            yield from plan_images(
                cluster.configuration, context.config.node_registration, node.exam, node.ignored_checks
            )


def _checks(context: JoinContext) -> Iterator[Check]:
    config, cluster = context.config, context.joined.configuration
    yield from join_checks(config, cluster.facts)
    if config.control_plane is not None:
        yield from control_plane_checks(
            cluster,
            config.control_plane.local_api_endpoint,
            config.node_registration,
            is_joining=True,
            downloads_certs=bool(config.control_plane.certificate_key),
        )


def _refuse_unshared(context: JoinContext) -> None:
    """Refuse a control plane in a cluster without a shared endpoint, or without what control planes have in common."""
    problems = []
    if not context.joined.configuration.control_plane_endpoint:
        problems.append(
            "unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint "
            "address"
        )
    problems += [f"{name} is missing" for name in _missing_shared(context)]
    if problems:
        raise NotReady(
            "the conditions for another control plane are not met: " + "; ".join(problems),
            hint="give --certificate-key, or copy the shared certificates here; the endpoint is chosen at init",
        )


def _missing_shared(context: JoinContext) -> Iterator[str]:
    found, is_local = context.node.found, isinstance(context.joined.configuration.etcd, LocalEtcd)
    for name in _SHARED_PAIRS if is_local else _SHARED_PAIRS[:2]:
        if found.pairs[name].certificate is None:
            yield context.node.certificate_path(f"{name}.crt")
    if found.service_account.private is None:
        yield context.node.certificate_path("sa.key")


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
