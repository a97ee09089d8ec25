"""Components of a node as they are compared: rendered, patched, and on disk."""

from collections.abc import Callable
from dataclasses import replace

from garboard.config import FixedFacts, ResolvedVersion, init_from_flags, resolve_version
from garboard.config.reading import ReadOptions
from garboard.documents import Json, write_yaml
from garboard.drift import DeclaredDocument, DriftSubject, FoundDocument, patched_from, rendered_from
from garboard.manifests import NodeHost
from garboard.model import KubernetesVersion
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import InitConfiguration
from garboard.model.minors import MINORS, facts_of
from garboard.model.paths import manifest_path
from garboard.patches import Patch, PatchSubject, PatchType, SourceText, copy_of, find_target
from garboard.phases.rendering import NodeRendering, RenderedTarget
from garboard.schema import load_schema

VERSIONS = tuple(facts_of(KubernetesVersion(each.major, each.minor)).reference for each in MINORS)
NEWEST = VERSIONS[-1]
STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def rendering(version: KubernetesVersion = NEWEST, cluster: ClusterConfiguration | None = None) -> NodeRendering:
    facts = FixedFacts()
    given = InitConfiguration(cluster=cluster) if cluster else InitConfiguration()
    loaded = init_from_flags(given, _resolved(version), facts, ReadOptions(detects_cri=False))
    return NodeRendering(loaded, NodeHost(hostname=facts.hostname()), load_schema(version))


def _resolved(version: KubernetesVersion) -> ResolvedVersion:
    return resolve_version(str(version))


def rendered_target(component: str, version: KubernetesVersion = NEWEST) -> RenderedTarget:
    return rendering(version).one(find_target(component, version))


def subject(
    component: str,
    change: Callable[[Json], Json] = lambda document: document,
    *,
    version: KubernetesVersion = NEWEST,
    patches: tuple[Patch, ...] = (),
    others: tuple[tuple[Patch, ...], ...] = (),
    text: Callable[[str], str] = lambda text: text,
    rendered: DeclaredDocument | None = None,
) -> DriftSubject:
    """Return a component whose file is what is declared, patches included, with a change made to it by hand."""
    schema, target = load_schema(version), find_target(component, version)
    if rendered is None:
        found = rendered_target(component, version)
        rendered = rendered_from(found.document, found.decided_by, str(version.as_minor))
    of = PatchSubject.of_target(target, schema)
    sets = [*others, *((patches,) if patches else ())]
    patched = tuple(patched_from(rendered, each, of) for each in sets)
    declared = patched[-1] if patched else rendered
    path = manifest_path(component)
    data = text(write_yaml(change(copy_of(declared.document)))).encode()
    return DriftSubject(
        component=component,
        where=path,
        shape=target.shape(schema),
        rendered=rendered,
        patched=patched,
        on_disk=FoundDocument.of_file(path, data),
    )


def running(of: DriftSubject, change: Callable[[Json], Json] = lambda document: document) -> DriftSubject:
    """Return the component with what runs: what is on disk, with a change."""
    assert of.on_disk is not None
    document = change(copy_of(of.on_disk.document))
    return replace(of, running=FoundDocument(document, f"Pod kube-system/{of.component}"))


def patch(text: str, type_: PatchType = PatchType.STRATEGIC, name: str = "patch.yaml") -> Patch:
    return Patch.from_yaml(SourceText(name, text), type_)
