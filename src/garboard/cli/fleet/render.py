"""`garboard fleet render`."""

import hashlib
import json
import sys
from pathlib import Path

import click

from garboard.cli.fleet.inputs import FleetSelection, fleet_options
from garboard.cli.output import write_data
from garboard.documents import Json
from garboard.errors import BadUsage
from garboard.fleet import CustomizationFailed, ProvisionRequest
from garboard.fleet.install_config import FILE_NAME
from garboard.fleet.render import FleetRendering, RenderedCluster, files_of
from garboard.fleet.showing import Shown
from garboard.host import make_folder, write_tree
from garboard.node.reporter import OutputFormat

RECORD = "fleet-render.json"


@click.command(
    epilog="Example: garboard fleet render -f fleet/ --pool edge --manifests manifests/ -o rendered/",
)
@fleet_options
@click.option("-o", "--output-dir", metavar="DIR", help="Write a folder for each cluster there, all or nothing.")
@click.option(
    "--check", is_flag=True, help="Write nothing, also with -o; the exit status tells whether anything would fail."
)
@click.option("--show-secrets", is_flag=True, help="Write secrets too, which are replaced by REDACTED otherwise.")
@click.option(
    "--output",
    type=click.Choice(["text", "json", "yaml"], case_sensitive=False),
    default="text",
    show_default=True,
    help="How to print the summary.",
)
def render(output_dir: str | None, check: bool, show_secrets: bool, output: OutputFormat, **options: str) -> None:
    """Render install configs and manifests as installers would be given them, offline.

    The patches of all customizations are applied to what `create manifests` has written (--manifests). Each entry of a
    pool's inventory, and each ClusterDeployment, gets a folder with install-config.yaml and the manifests under their
    names. Everything that would fail is told, and then nothing is written.
    """
    if not check and output_dir is None:
        raise BadUsage("one of -o and --check is needed", hint="--check renders and writes nothing, also with -o")
    selection = FleetSelection(**options)  # type: ignore[arg-type]
    rendering = selection.renderer().render(_requests(selection, output))
    _warn(selection, rendering)
    if output_dir is not None and not check and not rendering.failed:
        files = _files(rendering, None if show_secrets else Shown(selection.scrub))
        files[RECORD] = (json.dumps(_summary(rendering), indent=2, ensure_ascii=False) + "\n").encode()
        make_folder(Path(output_dir).parent)
        write_tree(output_dir, files, marker=RECORD)
    if output != "text":
        write_data(_summary(rendering), output, text="")
    elif not rendering.failed:
        sys.stdout.write(_summary_text(rendering))
    rendering.refuse_failures()


def _requests(selection: FleetSelection, output: OutputFormat) -> tuple[ProvisionRequest, ...]:
    """Return what is to be rendered; customizations that no cluster could take are told as records, too."""
    try:
        return selection.requests
    except CustomizationFailed as error:
        if output != "text":
            failures: list[Json] = [each.as_json for each in error.failures]
            write_data({"clusters": [], "failed": [{"deployment": None, "failures": failures}]}, output, text="")
        raise


def _warn(selection: FleetSelection, rendering: FleetRendering) -> None:
    warnings = [*rendering.warnings]
    if any(each.tree is None and each.request.customizations for each in rendering.clusters):
        warnings.append("no manifests to patch: installerManifestPatches were only read; name them with --manifests")
    for each in (f"ignored {text}" for text in selection.documents.ignored):
        sys.stderr.write(f"[fleet] {each}\n")
    for text in warnings:
        sys.stderr.write(f"warning: {selection.scrub(text)}\n")


def _files(rendering: FleetRendering, shown: Shown | None) -> dict[str, bytes]:
    """Return the files of all clusters by their paths below the folder."""
    return {
        f"{cluster.request.entry}/{name}": data
        for cluster in rendering.clusters
        for name, data in (_plain_files(cluster) if shown is None else shown.files(cluster)).items()
    }


def _plain_files(cluster: RenderedCluster) -> dict[str, bytes]:
    return {FILE_NAME: cluster.install_config.data, **files_of(cluster)}


def _summary(rendering: FleetRendering) -> Json:
    clusters: list[Json] = [_cluster_summary(each) for each in rendering.clusters]
    failures: list[Json] = [
        {"deployment": each.request.name, "failures": [failure.as_json for failure in each.failures]}
        for each in rendering.failed
    ]
    return {"clusters": clusters, "failed": failures}


def _cluster_summary(cluster: RenderedCluster) -> Json:
    request, config = cluster.request, cluster.install_config
    patched: dict[str, Json] = {}
    if cluster.tree is not None:
        for name in cluster.tree.patched_names:
            content = cluster.tree.content(name)
            patched[name] = f"sha256:{hashlib.sha256(content).hexdigest()}" if isinstance(content, bytes) else None
    return {
        "deployment": request.name,
        "folder": request.entry,
        "clusterName": config.cluster_name,
        "baseDomain": config.base_domain,
        "customizations": [each.name for each in request.customizations],
        "patched": patched,
    }


def _summary_text(rendering: FleetRendering) -> str:
    lines = [
        f"{each.request.entry}: {each.install_config.cluster_name}.{each.install_config.base_domain}, "
        f"{len(each.tree.patched_names) if each.tree else 0} manifests patched\n"
        for each in rendering.clusters
    ]
    return "".join(lines)
