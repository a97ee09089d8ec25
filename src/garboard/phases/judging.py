"""What the components refuse, or should not start with, in what a configuration renders; each at its field."""

from collections.abc import Iterator
from dataclasses import replace

from garboard.config.component_rules import ConfigFinding
from garboard.config.sources import ConfigDocument
from garboard.manifests import ConfigField
from garboard.model.component import ApiServer, ControlPlaneComponent, LocalEtcd
from garboard.patches.results import judge
from garboard.phases.rendering import NodeRendering, RenderedTarget
from garboard.rules import RuleKind

_SECTIONS = {
    "kube-apiserver": ("apiServer",),
    "kube-controller-manager": ("controllerManager",),
    "kube-scheduler": ("scheduler",),
    "etcd": ("etcd", "local"),
}

# What the configuration is the place for: a new cluster may have an issuer of its own.
_DECIDED_HERE = ("critical-flag-changed",)


def rendered_findings(rendering: NodeRendering, documents: tuple[ConfigDocument, ...]) -> Iterator[ConfigFinding]:
    """Yield what is wrong with the results of a configuration; dangers are warnings, they are what its owner wrote."""
    by_kind = {document.gvk.kind: document for document in documents}
    plain = {each.target.name: each.document for each in _without_extras(rendering).everything()}
    for rendered in rendering.everything():
        for found in judge(plain[rendered.target.name], rendered.document, rendered.target, rendering.schema):
            if found.code in _DECIDED_HERE:
                continue
            field = _field(rendered, found.path)
            document = by_kind.get(field.kind) if field else None
            if field is not None and document is not None:
                is_warning = found.rule.kind is RuleKind.DANGER
                yield ConfigFinding.of_result(document, found, field.path, is_warning=is_warning)


def _without_extras(rendering: NodeRendering) -> NodeRendering:
    """Return what is rendered without the arguments, volumes and variables that the configuration adds."""
    cluster = rendering.loaded.config.cluster
    etcd = cluster.etcd
    plain = replace(
        cluster,
        api_server=ApiServer(cert_sans=cluster.api_server.cert_sans),
        controller_manager=ControlPlaneComponent(),
        scheduler=ControlPlaneComponent(),
        etcd=replace(etcd, extra_args=(), extra_envs=()) if isinstance(etcd, LocalEtcd) else etcd,
    )
    config = replace(rendering.loaded.config, cluster=plain)
    return replace(rendering, loaded=replace(rendering.loaded, config=config))


def _field(rendered: RenderedTarget, path: tuple[str | int, ...]) -> ConfigField | None:
    """Return what decides a field of a result; the arguments of the component, if nothing does so alone."""
    source = rendered.decided_by(path)
    if isinstance(source, ConfigField):
        return source
    section = _SECTIONS.get(rendered.target.name)
    return ConfigField("ClusterConfiguration", (*section, "extraArgs")) if section else None
