"""`garboard lab binaries`: find, download or build the programs that a lab runs."""

from pathlib import Path

import click

from garboard.cli.lab.wiring import report
from garboard.cli.output import output_option, write_data
from garboard.documents import Json
from garboard.host import Machine
from garboard.lab.binaries import CLUSTER_PROGRAMS, Binaries, BinarySource, Found, Wanted, default_cache
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS
from garboard.node.reporter import OutputFormat


@click.group(epilog="Example: garboard lab binaries get --kubernetes-version v1.36.4")
def binaries() -> None:
    """Find or make the programs that a lab runs."""


@binaries.command(
    short_help="Find or make programs and print where they are.",
    epilog="Example: garboard lab binaries get kubeadm kubectl --kubernetes-version v1.36.4",
)
@click.argument("programs", nargs=-1, metavar="[PROGRAM[@VERSION]]...")
@click.option(
    "--kubernetes-version", "releases", metavar="VERSION", multiple=True, default=(str(DEFAULT_VERSION),),
    show_default=True, help="The release they belong to, or all; of several, what they share is built once.",
)  # fmt: skip
@click.option(
    "--from", "given", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with programs of yours, looked at first: PROGRAM, VERSION/PROGRAM or PROGRAM/VERSION/PROGRAM.",
)  # fmt: skip
@click.option(
    "--source", type=click.Choice([each.value for each in BinarySource]), default=BinarySource.AUTO.value,
    show_default=True,
    help="Where missing ones come from; auto downloads releases and builds from source where it cannot.",
)  # fmt: skip
@click.option(
    "--build-cache", type=click.Path(path_type=Path, file_okay=False),
    help="Use this Go build cache, and keep it. By default a private one, deleted after the build (it grows to 10 GB).",
)  # fmt: skip
@click.option("--keep-build-cache", is_flag=True, help="Keep the private build cache for the next build.")
@output_option
def get(
    programs: tuple[str, ...], releases: tuple[str, ...], given: Path | None, source: str, build_cache: Path | None,
    keep_build_cache: bool, output: OutputFormat,
) -> None:  # fmt: skip
    """Make sure that each PROGRAM is on this machine and print where.

    `cluster` stands for all that a cluster needs, and is what you get without any PROGRAM.
    """
    store = Binaries(
        Machine(), given=given.absolute() if given else None, source=BinarySource(source), report=report,
        build_cache=build_cache.absolute() if build_cache else None, keep_build_cache=keep_build_cache,
    )  # fmt: skip
    names = [name for each in programs or ("cluster",) for name in (CLUSTER_PROGRAMS if each == "cluster" else (each,))]
    found = store.get(_wanted(store, name, release) for release in _releases(releases) for name in names)
    write_data([_as_json(each) for each in found], output, text=_as_text(found))


@binaries.command(
    "list", short_help="Show the programs and versions that are known.",
    epilog="Example: garboard lab binaries list --output json",
)  # fmt: skip
@output_option
def list_(output: OutputFormat) -> None:
    """Show every program and version that the lab knows, and where those on this machine are."""
    store = Binaries(Machine(), cache=default_cache())
    rows: list[tuple[Wanted, Found | None]] = []
    for program in store.pins.programs.values():
        for version in store.pins.versions(program):
            wanted = Wanted(program, version)
            rows.append((wanted, store.find(wanted)))
    data: list[Json] = [
        {"program": wanted.program.name, "version": wanted.version, "path": str(found.path) if found else None}
        for wanted, found in rows
    ]
    lines = (f"{w.program.name:26}{w.version:10}{found.path if found else '-'}\n" for w, found in rows)
    write_data(data, output, text="".join(lines))


def _releases(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the releases that were asked for; `all` are those that garboard supports, the newest first."""
    return tuple(str(version) for version in reversed(SUPPORTED_VERSIONS)) if "all" in given else given


def _wanted(store: Binaries, text: str, kubernetes: str) -> Wanted:
    program, _, version = text.partition("@")
    return store.pins.wanted(program, version or None, kubernetes=kubernetes)


def _as_json(found: Found) -> Json:
    return {
        "program": found.wanted.program.name,
        "version": found.wanted.version,
        "path": str(found.path),
        "origin": found.origin,
    }


def _as_text(found: tuple[Found, ...]) -> str:
    return "".join(f"{each.wanted.program.name:26}{each.wanted.version:10}{each.path}\n" for each in found)
