"""The folder of `--diagnostics`: what tells why a run failed, written where its user asked for it."""

import os
from pathlib import Path

from garboard import __version__
from garboard.cli.workflow.telling import tell
from garboard.cli.workflow.world import NodeWorld
from garboard.engine import Plan
from garboard.errors import GarboardError
from garboard.host import make_folder, write_file
from garboard.phases.diagnostics import bundle


def keep_diagnostics(folder: str, error: GarboardError, plan: Plan, world: NodeWorld) -> None:
    """Write the bundle, for its owner alone; a failure to do so is told, and does not hide the one it is about."""
    system = os.uname()
    notes = (f"garboard: {__version__}", f"kernel: {system.release} {system.machine}", f"host: {system.nodename}")
    try:
        make_folder(folder, mode=0o700)
        for name, text in bundle(error, plan, world, world.machine, notes):
            path = Path(folder) / name
            make_folder(path.parent, mode=0o700)
            write_file(path, text.encode("utf-8", "replace"), mode=0o600)
    except GarboardError as failure:
        tell(f"[diagnostics] warning: {failure.message}")
        return
    tell(f"[diagnostics] what tells why is in {folder}")
