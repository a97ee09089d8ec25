"""What the patch commands render from a kubeadm configuration instead of reading it from a manifest."""

from dataclasses import dataclass, replace
from pathlib import Path

import click
from click.core import ParameterSource

from garboard.cli.config.inputs import show_warnings
from garboard.cli.patch.inputs import Original, read_patches
from garboard.config import FixedFacts, Loaded, ResolvedVersion, init_from_flags, resolve_version
from garboard.config.reading import ReadOptions
from garboard.documents import Json, write_yaml
from garboard.errors import BadUsage
from garboard.manifests import NodeHost
from garboard.model import KubernetesVersion
from garboard.model.lifecycle import InitConfiguration
from garboard.node.configuration import open_config, this_host
from garboard.patches import NodeFacts, PatchSet, SourceText, apply_patches, copy_of
from garboard.phases.rendering import NodeRendering, RenderedTarget
from garboard.schema import load_schema


@dataclass(frozen=True)
class ConfiguredNode:
    """A node as a configuration file describes it: what is rendered for it, and which layers of a tree apply."""

    file: str
    loaded: Loaded[InitConfiguration]
    rendering: NodeRendering
    facts: NodeFacts

    def patches(self, directory: str | None) -> PatchSet:
        """Read the patches of this node: of the given directory, else of the one that the configuration names."""
        chosen = directory or self.loaded.config.patches_directory
        if not chosen:
            return PatchSet()
        return read_patches(chosen, self.rendering.schema, self.facts, is_node_known=True)

    def original(self, rendered: RenderedTarget) -> Original:
        """Return a rendered target as a document to be patched: as it would be without the user's patches."""
        plain = apply_patches(copy_of(rendered.document), (), rendered.subject(self.rendering.schema)).document
        return Original(SourceText(f"{rendered.target.name} (from {self.file})", write_yaml(plain)), plain)


def configured_node(
    file: str, version: ResolvedVersion, node: str | None = None, role: str | None = None, *, is_here: bool = True
) -> ConfiguredNode:
    """Read a configuration file and the machine; `node` may be another one than the file's.

    Unless the node `is_here`, no container runtime is looked for on this machine. Warnings about the file are shown.
    """
    loaded = open_config(Path(file), ReadOptions(detects_cri=is_here), version).init()
    show_warnings(loaded.warnings)
    config = loaded.config
    _refuse_other_version(config.cluster.release, file)
    if node:
        config = replace(config, node_registration=replace(config.node_registration, name=node))
        loaded = replace(loaded, config=config)
    facts = NodeFacts(config.node_registration.name, role or "control-plane")
    host = this_host()
    rendering = NodeRendering(loaded, host, load_schema(config.cluster.release), facts.role or "control-plane")
    return ConfiguredNode(file, loaded, rendering, facts)


def _refuse_other_version(release: KubernetesVersion, file: str) -> None:
    """Refuse a --kubernetes-version of another minor than the file is for: the file would win without a word."""
    context = click.get_current_context(silent=True)
    for name in ("version", "kubernetes_version"):
        if context is None or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        given = resolve_version(str(context.params[name])).release
        if given.as_minor != release.as_minor:
            raise BadUsage(
                f"{file} is for Kubernetes {release.as_minor}, and --kubernetes-version for {given.as_minor}",
                hint="leave the option out, or change kubernetesVersion in the file",
            )


def default_documents(version: KubernetesVersion) -> tuple[Json, ...]:
    """Return every target as kubeadm of a version renders it by default, on a machine of no particular kind."""
    facts = FixedFacts()
    loaded = init_from_flags(InitConfiguration(), configured_version(version), facts, ReadOptions(detects_cri=False))
    rendering = NodeRendering(loaded, NodeHost(hostname=facts.hostname()), load_schema(version))
    return tuple(
        apply_patches(each.document, (), each.subject(rendering.schema)).document for each in rendering.everything()
    )


def configured_version(version: KubernetesVersion) -> ResolvedVersion:
    """Return the version that counts where the configuration names none."""
    return resolve_version(str(version))
