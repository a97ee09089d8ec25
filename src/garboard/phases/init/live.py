"""Phases of init that need the control plane itself: waiting, marking the node, rotation, sharing certificates."""

from collections.abc import Iterator

from garboard.engine import ControlService, Note, Step, Tell
from garboard.manifests.arguments import last_arg
from garboard.manifests.kubelet import CONFIG_FILE, PATCH_TARGET, client_certificate_path
from garboard.phases.control_plane import mark_control_plane, wait_for_control_plane, wait_for_kubelet
from garboard.phases.init.context import InitContext
from garboard.phases.init.kubelet import KUBELET
from garboard.phases.issuing import RotationRequest
from garboard.phases.patch_record import record_on_control_plane
from garboard.phases.sharing import share_certificates


def plan_wait_control_plane(context: InitContext) -> Iterator[Step | Note]:
    timeouts = context.config.timeouts
    yield from wait_for_kubelet(timeouts)
    yield from wait_for_control_plane(timeouts)


def plan_mark_control_plane(context: InitContext) -> Iterator[Step | Note]:
    config = context.config
    yield from mark_control_plane(context.node_name, config.node_registration.taints or (), config.timeouts)
    yield from record_on_control_plane(context.node_name, context.patches)


def plan_upload_certs(context: InitContext) -> Iterator[Step | Note]:
    """Plan to share the certificates, if that was asked for; the key is shown here unless the join command shows it."""
    if not context.uploads_certs:
        yield Note("Skipping phase. Please see --upload-certs")
        return
    yield from share_certificates(context.config.cluster, context.certificate_key)
    if context.prints_certificate_key and not context.shows_join_command:
        text = f"The certificates are sealed with this key, which is shown only once:\n{context.certificate_key}\n"
        yield Step(Tell(about="the certificate key", text=text), "nodes need it to open the certificates")


def plan_rotation(context: InitContext) -> Iterator[Step | Note]:
    """Plan kubelet.conf with the certificate that the kubelet renews by itself, and a restart to take it up."""
    pem = client_certificate_path(context.config.node_registration.kubelet_extra_args)
    if not _rotates(context, pem):
        yield Note("The kubelet does not rotate its client certificate: kubelet.conf stays as it is")
        return
    request = RotationRequest(path=context.kubeconfig_path("kubelet.conf"), node_name=context.node_name, pem=pem)
    if request.path not in context.planned and request.is_done(context.machine.read):
        yield Note(f"{request.path} names {pem} already")
        return
    yield Step(request.action(), "the kubelet renews its certificate by itself")
    if context.machine.has_service_manager():
        restart = ControlService(service=KUBELET, verb="restart", is_needed=False)
        yield Step(restart, "it reads kubelet.conf when it starts")


def _rotates(context: InitContext, pem: str) -> bool:
    """Say whether the kubelet stores a certificate that it renews: by its settings, if they are still to be written."""
    if CONFIG_FILE not in context.planned:
        return context.machine.read(pem) is not None
    flag = last_arg(context.config.node_registration.kubelet_extra_args, "rotate-certificates")
    if flag is not None:
        return flag[1].value.lower() in ("true", "1", "t")
    cluster = context.config.cluster
    document = context.components.kubelet.printed(cluster.facts)
    patched = context.patches.begin(cluster.release)(PATCH_TARGET, document)
    return isinstance(patched, dict) and patched.get("rotateCertificates") is True
