"""`garboard tunnel manifests`, with what its tests have in common."""

from pathlib import Path

from garboard.cli.main import run

REVERSE = ["--bind-address", "10.255.0.1", "--local-port", "7443"]


def write_manifests(folder: Path, *more: str) -> int:
    return run(["tunnel", "manifests", "-o", str(folder), "--server-host", "k.test", *more])
