"""What init keeps in the cluster: its configuration, what lets nodes join, and the addons."""

import base64
from collections.abc import Callable, Iterable, Iterator

from garboard.config import cluster_text
from garboard.documents import Json
from garboard.engine import Filling, Note, Step
from garboard.manifests import ClusterObject
from garboard.manifests.bootstrap_token import bootstrap_rbac, cluster_info_objects
from garboard.manifests.coredns import coredns_objects
from garboard.manifests.kube_proxy import control_plane_url, kube_proxy_objects
from garboard.manifests.kubelet import CONFIG_FILE, with_resolv_conf
from garboard.manifests.uploaded import KUBEADM_CONFIG, as_uploaded, kubeadm_config_objects, kubelet_config_objects
from garboard.phases.init.context import InitContext
from garboard.phases.init.dns import decide_dns, observe_dns
from garboard.phases.patching import PatchRun
from garboard.phases.putting import put
from garboard.phases.tokens import planned_token
from garboard.pki.issue import certificate_pem
from garboard.pki.kubeconfig import read_kubeconfig

_CA_PLACEHOLDER = "<base64 of certificate ca>"


def _puts(objects: Iterable[ClusterObject], cause: str, fillings: tuple[Filling, ...] = ()) -> Iterator[Step]:
    for each in objects:
        is_kubeadm_config = (each.kind, each.name) == ("ConfigMap", KUBEADM_CONFIG)
        yield Step(put(each, fillings=fillings, keeps_other_data=is_kubeadm_config), cause)


def plan_kubeadm_config(context: InitContext) -> Iterator[Step | Note]:
    cluster = context.config.cluster
    text = cluster_text(as_uploaded(cluster), cluster.facts)
    yield from _puts(kubeadm_config_objects(text), "nodes that join read the cluster's configuration")


def plan_kubelet_config(context: InitContext) -> Iterator[Step | Note]:
    facts, kubelet = context.config.cluster.facts, context.components.kubelet
    configuration = kubelet.printed(facts)
    if facts.has_resolv_conf_leak and CONFIG_FILE in context.planned:
        configuration = with_resolv_conf(configuration, context.host)
    objects = kubelet_config_objects(configuration, is_user_supplied=kubelet.is_user_supplied)
    yield from _puts(objects, "kubelets of nodes that join read their configuration")


def plan_bootstrap_token(context: InitContext) -> Iterator[Step | Note]:
    config = context.config
    yield from (Step(planned_token(token), "bootstrapTokens asks for it") for token in config.bootstrap_tokens)
    yield from _puts(bootstrap_rbac(), "nodes join with bootstrap tokens")
    cluster, fillings = _public_cluster(context)
    yield from _puts(cluster_info_objects(cluster), "nodes that join look for the cluster here", fillings)


def _public_cluster(context: InitContext) -> tuple[dict[str, Json], tuple[Filling, ...]]:
    """Return the cluster of the kubeconfig that is in use, or as it will be where that is yet to be made."""
    data = None if context.kubeconfig in context.planned else context.machine.read(context.kubeconfig)
    if data is not None:
        return read_kubeconfig(data, context.kubeconfig).flat_cluster(context.machine.read), ()
    config, found = context.config, context.found.pairs["ca"].certificate
    is_known = found is not None and not context.is_ca_planned("ca")
    ca = base64.b64encode(certificate_pem(found)).decode() if found and is_known else _CA_PLACEHOLDER
    server = control_plane_url(config.cluster, config.local_api_endpoint)
    fillings = () if is_known else (Filling(_CA_PLACEHOLDER, context.certificate_path("ca.crt")),)
    return {"certificate-authority-data": ca, "server": server}, fillings


def plan_coredns(context: InitContext) -> Iterator[Step | Note]:
    cluster = context.config.cluster
    found = observe_dns(context.running_cluster)
    update = decide_dns(found, cluster.facts)
    yield from (update.note,) if update.note else ()
    yield from _plan_addon(
        context,
        lambda patches: update.applied_to(coredns_objects(cluster, replicas=found.replicas, patcher=patches)),
    )


def plan_kube_proxy(context: InitContext) -> Iterator[Step | Note]:
    cluster, proxy = context.config.cluster, context.components.kube_proxy

    def render(patches: PatchRun) -> tuple[ClusterObject, ...]:
        return kube_proxy_objects(
            cluster,
            context.config.local_api_endpoint,
            proxy.printed(cluster.facts),
            is_user_supplied=proxy.is_user_supplied,
            environment=context.host.environment,
            patcher=patches,
        )

    yield from _plan_addon(context, render)


def _plan_addon(context: InitContext, render: Callable[[PatchRun], tuple[ClusterObject, ...]]) -> Iterator[Step | Note]:
    patches = context.patches.begin(context.config.cluster.release)
    objects = render(patches)
    yield from patches.notes()
    yield from _puts(objects, "every cluster has this addon")
