"""The addons that every cluster has: CoreDNS and kube-proxy.

When CoreDNS is put again, a running cluster keeps its replicas, and a Corefile that its owner has changed. A Corefile
that the new CoreDNS could not use is migrated, as far as kubeadm does that.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from garboard.documents import Json
from garboard.engine import Note, PutObject, Step
from garboard.errors import InvalidValue, NotReady
from garboard.manifests import ClusterObject
from garboard.manifests.coredns import DEFAULT_REPLICAS, coredns_objects, is_own_corefile
from garboard.manifests.corefile_migration import is_default, migrate, must_migrate
from garboard.manifests.kube_proxy import kube_proxy_objects
from garboard.manifests.objects import KUBE_SYSTEM, config_map, new_object
from garboard.model.minors import MinorFacts
from garboard.phases.node.context import ClusterView, NodeContext
from garboard.phases.patching import PatchRun

_KEPT_METADATA = ("name", "namespace", "labels", "annotations")
_NAME, _COREFILE, _BACKUP = "coredns", "Corefile", "Corefile-backup"


def plan_coredns(context: NodeContext) -> Iterator[Step | Note]:
    cluster = context.cluster
    found = observe_dns(context.running_cluster)
    update = decide_dns(found, cluster.facts)
    yield from (update.note,) if update.note else ()
    yield from _plan_addon(
        context,
        lambda patches: update.applied_to(coredns_objects(cluster, replicas=found.replicas, patcher=patches)),
    )


def plan_kube_proxy(context: NodeContext) -> Iterator[Step | Note]:
    cluster, proxy = context.cluster, context.components.kube_proxy

    def render(patches: PatchRun) -> tuple[ClusterObject, ...]:
        return kube_proxy_objects(
            cluster,
            context.local_api_endpoint,
            proxy.printed(cluster.facts),
            is_user_supplied=proxy.is_user_supplied,
            environment=context.host.environment,
            patcher=patches,
        )

    yield from _plan_addon(context, render)


def _plan_addon(context: NodeContext, render: Callable[[PatchRun], tuple[ClusterObject, ...]]) -> Iterator[Step | Note]:
    patches = context.patches.begin(context.cluster.release)
    objects = render(patches)
    yield from patches.notes()
    yield from (Step(PutObject.of(each.content), "every cluster has this addon") for each in objects)


@dataclass(frozen=True, slots=True)
class ObservedDns:
    """CoreDNS as found; by default there is none."""

    deployment: dict[str, Json] = field(default_factory=dict)
    corefile: str = ""
    has_corefile: bool = False

    @property
    def replicas(self) -> int:
        replicas = _mapping(self.deployment.get("spec")).get("replicas")
        return replicas if isinstance(replicas, int) else DEFAULT_REPLICAS

    @property
    def tag(self) -> str:
        """The tag of the image that runs, by which kubeadm knows the release; nothing if there is none."""
        pod = _mapping(_mapping(_mapping(self.deployment.get("spec")).get("template")).get("spec"))
        containers = pod.get("containers")
        first = _mapping(containers[0]) if isinstance(containers, list) and containers else {}
        _, colon, tag = str(first.get("image", "")).rpartition(":")
        return tag if colon else ""


@dataclass(frozen=True, slots=True)
class DnsUpdate:
    """What becomes of the CoreDNS that was found."""

    keeps_corefile: bool = False
    keeps_deployment: bool = False
    first: tuple[ClusterObject, ...] = ()  # to be put before the others
    note: Note | None = None

    def applied_to(self, objects: Iterable[ClusterObject]) -> tuple[ClusterObject, ...]:
        """Return the objects to put: those of the addon without what is kept, behind those that come first."""
        kept = {kind for kind, is_kept in _kinds(self) if is_kept}
        return (*self.first, *(each for each in objects if each.kind not in kept))


def _kinds(update: DnsUpdate) -> Iterator[tuple[str, bool]]:
    yield "ConfigMap", update.keeps_corefile
    yield "Deployment", update.keeps_deployment


def observe_dns(cluster: ClusterView | None) -> ObservedDns:
    """Look at the CoreDNS of a cluster; without a cluster nothing is there."""
    if cluster is None:
        return ObservedDns()
    corefile = _corefile(cluster)
    return ObservedDns(_deployment(cluster), corefile or "", corefile is not None)


def decide_dns(found: ObservedDns, facts: MinorFacts) -> DnsUpdate:
    """Decide about what was found, by kubeadm's rules; a release of CoreDNS that is not known is refused.

    kubeadm gives the tag to the migration as it is, which knows releases only without a `v`.
    """
    running, target = found.tag.lstrip("v"), facts.coredns_tag.lstrip("v")
    is_needed = found.has_corefile and running not in ("", target) and _is_needed(found.corefile, running, target)
    if not found.corefile or is_default(found.corefile) or is_own_corefile(found.corefile):
        return DnsUpdate()
    if not is_needed:
        text = "the Corefile in ConfigMap coredns is not the one that is made here, and is kept"
        return DnsUpdate(keeps_corefile=True, note=Note(text))
    try:
        migrated = migrate(found.corefile, found=found.tag, target=target)
    except InvalidValue as error:
        text = (
            f"the CoreDNS Configuration was not migrated: unable to migrate CoreDNS ConfigMap: {error.message}. "
            "The existing CoreDNS Corefile configuration has been retained."
        )
        return DnsUpdate(keeps_corefile=True, keeps_deployment=True, note=Note(text, is_warning=True))
    return _migration(found, migrated)


def _is_needed(corefile: str, running: str, target: str) -> bool:
    try:
        return must_migrate(corefile, found=running, target=target)
    except InvalidValue as error:
        raise NotReady(
            f"unable to get list of changes to the configuration: {error.message}",
            hint=f"run a release that is known, {target} or older, under its own tag, or leave out addon/coredns",
        ) from error


def _migration(found: ObservedDns, migrated: str) -> DnsUpdate:
    """Put the new Corefile beside the old one, which the pods that run go on reading."""
    corefiles = config_map(_NAME, KUBE_SYSTEM, {_COREFILE: migrated, _BACKUP: found.corefile})
    note = Note("Migrating CoreDNS Corefile; the one that was there is kept as Corefile-backup")
    return DnsUpdate(keeps_corefile=True, first=(corefiles, _reading_backup(found.deployment)), note=note)


def _reading_backup(deployment: dict[str, Json]) -> ClusterObject:
    """Return a Deployment as it was found, with the old Corefile where its pods look for theirs."""
    metadata, spec = _mapping(deployment.get("metadata")), _mapping(deployment.get("spec"))
    template = _mapping(spec.get("template"))
    pod = _mapping(template.get("spec"))
    volumes = pod.get("volumes")
    others = (
        [each for each in volumes if _mapping(each).get("name") != "config-volume"] if isinstance(volumes, list) else []
    )
    config: Json = {"name": _NAME, "items": [{"key": _BACKUP, "path": _COREFILE}], "defaultMode": 420}
    volume: Json = {"name": "config-volume", "configMap": config}
    kept = {name: value for name, value in metadata.items() if name in _KEPT_METADATA}
    content: dict[str, Json] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": kept,
        "spec": {**spec, "template": {**template, "spec": {**pod, "volumes": [volume, *others]}}},
    }
    return new_object(content, {})


def _deployment(cluster: ClusterView) -> dict[str, Json]:
    found = cluster.labelled("Deployment", KUBE_SYSTEM, "k8s-app=kube-dns")
    if len(found) > 1:
        raise NotReady(
            f"there are {len(found)} Deployments with the label k8s-app=kube-dns in {KUBE_SYSTEM}",
            hint="keep one of them, or leave out addon/coredns",
        )
    return found[0] if found else {}


def _corefile(cluster: ClusterView) -> str | None:
    found = cluster.find("ConfigMap", KUBE_SYSTEM, _NAME)
    if found is None:
        return None
    text = _mapping(found.get("data")).get(_COREFILE)
    if not isinstance(text, str):
        raise NotReady(
            f"ConfigMap {KUBE_SYSTEM}/coredns has no Corefile", hint="write one, or delete it to have a new one made"
        )
    return text


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
