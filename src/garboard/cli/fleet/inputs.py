"""What the fleet commands share: options, reading documents and manifests, and rendering what was asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import click

from garboard.cli.patch.inputs import manifest_files
from garboard.errors import BadUsage
from garboard.fleet import (
    FleetDocuments,
    Irregular,
    ManifestSource,
    ProvisionRequest,
    Rules,
    Scrubber,
    TreeEntry,
    load_documents,
    resolve_all,
    resolve_deployment,
    resolve_pool,
)
from garboard.fleet.render import OneTree, Renderer
from garboard.fleet.secret_values import known_secrets
from garboard.host import SYMBOLIC_LINK, read_file, read_tree
from garboard.model import DEFAULT_VERSION
from garboard.schema import load_schema

Command = TypeVar("Command", bound=Callable[..., object])


def fleet_options(command: Command) -> Command:
    """Add the options that say which clusters are meant."""
    options = (
        click.option(
            "-f",
            "--filename",
            "files",
            multiple=True,
            required=True,
            metavar="FILE",
            help="Hive's documents: files with one or more documents, folders, or - for stdin.",
        ),
        click.option("--pool", metavar="POOL", help="Only the clusters of this ClusterPool: NAME or NAMESPACE/NAME."),
        click.option(
            "--deployment",
            metavar="NAME",
            help="Only this ClusterDeployment; an entry of an inventory is POOL-ENTRY.",
        ),
        click.option("--manifests", metavar="DIR", help="The files of an installer after `create manifests`."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class FleetSelection:
    """The options of a fleet command, as given."""

    files: tuple[str, ...]
    pool: str | None
    deployment: str | None
    manifests: str | None

    def __post_init__(self) -> None:
        if self.pool is not None and self.deployment is not None:
            raise BadUsage("--pool and --deployment exclude each other", hint="a deployment of a pool is POOL-ENTRY")

    @cached_property
    def documents(self) -> FleetDocuments:
        return load_documents([(file, read_file(file)) for path in self.files for file in manifest_files(path)])

    @cached_property
    def requests(self) -> tuple[ProvisionRequest, ...]:
        """What the documents ask for; nothing to do is refused."""
        if self.deployment is not None:
            return (resolve_deployment(self.documents, self.deployment),)
        found = resolve_pool(self.documents, self.pool) if self.pool else resolve_all(self.documents)
        if not found:
            raise BadUsage(
                "the files ask for no cluster", hint="name files with a ClusterPool or a ClusterDeployment with -f"
            )
        return found

    @cached_property
    def scrub(self) -> Scrubber:
        return Scrubber(known_secrets(self.documents))

    @cached_property
    def source(self) -> ManifestSource | None:
        return OneTree(read_manifests(self.manifests)) if self.manifests is not None else None

    def renderer(self) -> Renderer:
        return Renderer(self.source, Rules(lambda: load_schema(DEFAULT_VERSION), self.scrub))


def read_manifests(folder: str) -> Mapping[str, TreeEntry]:
    """Return what is in a folder; links in it are not followed."""
    return {
        name: Irregular(content, is_link=content == SYMBOLIC_LINK) if isinstance(content, str) else content
        for name, content in read_tree(folder).items()
    }
