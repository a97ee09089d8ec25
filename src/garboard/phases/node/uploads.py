"""What nodes that join find in the cluster: its configuration, where it is, and the certificates that are shared."""

import base64
import hashlib
import hmac
import string
from collections.abc import Iterable, Iterator

from garboard.config import cluster_text
from garboard.documents import Json
from garboard.engine import FilePlaceholder, Note, PutObject, Step
from garboard.manifests import ClusterObject
from garboard.manifests.bootstrap_token import bootstrap_rbac, cluster_info_objects
from garboard.manifests.kube_proxy import control_plane_url
from garboard.manifests.kubelet import CONFIG_FILE, with_resolv_conf
from garboard.manifests.uploaded import (
    KUBEADM_CONFIG,
    as_uploaded,
    certificates_token,
    kubeadm_certs_rbac,
    kubeadm_certs_secret,
    kubeadm_config_objects,
    kubelet_config_objects,
)
from garboard.model.lifecycle import BootstrapToken
from garboard.phases.node.context import NodeContext
from garboard.phases.node.credentials import files_to_share
from garboard.phases.tokens import planned_token
from garboard.pki.issue import certificate_pem
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.transfer import parse_certificate_key

_CA_PLACEHOLDER = "<base64 of certificate ca>"
_LETTERS = string.digits + string.ascii_lowercase
_SHARING = "further control-plane nodes fetch the certificates"


def plan_kubeadm_config(context: NodeContext) -> Iterator[Step | Note]:
    cluster = context.cluster
    text = cluster_text(as_uploaded(cluster), cluster.facts)
    yield from _puts(kubeadm_config_objects(text), "nodes that join read the cluster's configuration")


def plan_kubelet_config(context: NodeContext) -> Iterator[Step | Note]:
    facts, kubelet = context.cluster.facts, context.components.kubelet
    configuration = kubelet.printed(facts)
    if facts.has_resolv_conf_leak and CONFIG_FILE in context.planned:
        configuration = with_resolv_conf(configuration, context.host)
    objects = kubelet_config_objects(configuration, is_user_supplied=kubelet.is_user_supplied)
    yield from _puts(objects, "kubelets of nodes that join read their configuration")


def plan_bootstrap_tokens(context: NodeContext, tokens: Iterable[BootstrapToken]) -> Iterator[Step | Note]:
    """Plan the bootstrap tokens, what nodes may do with them, and the public description of the cluster."""
    yield from (Step(planned_token(token), "bootstrapTokens asks for it") for token in tokens)
    yield from _puts(bootstrap_rbac(), "nodes join with bootstrap tokens")
    cluster, fillings = _public_cluster(context)
    yield from _puts(cluster_info_objects(cluster), "nodes that join look for the cluster here", fillings)


def _puts(objects: Iterable[ClusterObject], cause: str, fillings: tuple[FilePlaceholder, ...] = ()) -> Iterator[Step]:
    for each in objects:
        is_kubeadm_config = (each.kind, each.name) == ("ConfigMap", KUBEADM_CONFIG)
        action = PutObject.of(each.content, fillings=fillings, keeps_other_data=is_kubeadm_config)
        yield Step(action, cause)


def _public_cluster(context: NodeContext) -> tuple[dict[str, Json], tuple[FilePlaceholder, ...]]:
    """Return the cluster of the kubeconfig that is in use, or as it will be where that is yet to be made."""
    data = None if context.kubeconfig in context.planned else context.machine.read(context.kubeconfig)
    if data is not None:
        return read_kubeconfig(data, context.kubeconfig).flat_cluster(context.machine.read), ()
    found = context.credentials.pairs["ca"].certificate
    is_known = found is not None and not context.is_ca_planned("ca")
    ca = base64.b64encode(certificate_pem(found)).decode() if found and is_known else _CA_PLACEHOLDER
    server = control_plane_url(context.cluster, context.local_api_endpoint)
    fillings = () if is_known else (FilePlaceholder(_CA_PLACEHOLDER, context.certificate_path("ca.crt")),)
    return {"certificate-authority-data": ca, "server": server}, fillings


def share_certificates(context: NodeContext, certificate_key: str) -> Iterator[Step]:
    """Plan the Secret with every shared file as it will be by then, sealed with the key, and who may read it."""
    key = parse_certificate_key(certificate_key)
    owner = planned_token(certificates_token(_token_of(key)))
    yield Step(owner, _SHARING)
    fillings = tuple(
        FilePlaceholder(f"<sealed {name}>", context.shared_path(path), key, is_needed=False)
        for name, path in files_to_share(context.cluster).items()
    )
    secret = kubeadm_certs_secret({}, owner.name, "")
    secret.content["data"] = {each.placeholder.strip("<>").rpartition(" ")[2]: each.placeholder for each in fillings}
    yield Step(PutObject.of(secret.content, fillings=fillings), _SHARING)
    yield from (Step(PutObject.of(each.content), _SHARING) for each in kubeadm_certs_rbac())


def _token_of(key: bytes) -> str:
    """Return the token that owns the Secret, which is deleted with it: it lets nobody in, and is the same for a key."""
    drawn = hmac.digest(key, b"the token of kubeadm-certs", hashlib.sha256)
    letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in drawn)
    return f"{letters[:6]}.{letters[6:22]}"
