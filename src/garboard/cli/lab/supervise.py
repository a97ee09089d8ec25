"""The supervisor of a lab as a process: `python -m garboard.cli.lab.supervise`. `lab up` starts it; people do not."""

import argparse
import asyncio
import socket
import sys
from pathlib import Path

from garboard.cli.lab.wiring import labs
from garboard.host import services
from garboard.lab.layout import LabFiles
from garboard.lab.supervisor import Setting, Supervisor


def main() -> None:
    """Run a supervisor until a request or a signal ends it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--forward", type=int, required=True, help="the listening socket on the machine's loopback")
    arguments = parser.parse_args()
    lab = labs(home=arguments.home)
    setting = Setting(
        files=LabFiles(arguments.home, arguments.name),
        groups=lab.groups(arguments.name),
        root=lab.root_plan(),
        node_command=(sys.executable, "-I", "-m", "garboard.host.pivot"),
        first_process=str(lab.binaries.locate("pause")),
    )
    forward = socket.socket(fileno=arguments.forward)
    forward.setblocking(False)

    async def run() -> None:
        await Supervisor(setting, services, lab.machine).run(forward)

    asyncio.run(run())


if __name__ == "__main__":
    main()
