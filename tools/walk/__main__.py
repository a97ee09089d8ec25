"""Counts the modules that a command goes through: `python -m tools.walk`.

A module counts if a function of it ran, imports aside. The rooms counted are those of a workflow: the command line,
what runs it on the node, the phases and the engine. `init` is planned as a whole, and the phases that only write files
are carried out below a folder that is removed afterwards.
"""

import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

import garboard
from garboard.cli.main import run

ROOMS = ("cli", "node", "phases", "engine")
SOURCE = Path(garboard.__file__).parent
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: cp1, criSocket: unix:///run/none.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
"""
_LIVE = (
    "preflight,kubelet-start,wait-control-plane,upload-config,upload-certs,mark-control-plane,bootstrap-token,"
    "kubelet-finalize,addon,show-join-command"
)


def run_init() -> None:
    """Plan init as a whole, and carry out the phases that only write files below a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        config, root = Path(folder) / "kubeadm.yaml", Path(folder) / "root"
        root.mkdir()
        config.write_text(CONFIG)
        (root / "kubeadm.yaml").write_text(CONFIG)
        with (Path(folder) / "output").open("w") as output, redirect_stdout(output), redirect_stderr(output):
            run(["init", "--config", str(config), "--dry-run"])
            run(["init", "--rootfs", str(root), "--config", "/kubeadm.yaml", "--skip-phases", _LIVE])


def crossed() -> set[str]:
    """Return the modules in which a function ran during init; all of them were imported before."""
    run_init()
    found: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED:  # the bodies of modules and classes are not
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run_init()
    finally:
        sys.setprofile(None)
    below = (Path(name).relative_to(SOURCE).as_posix() for name in found if name.startswith(f"{SOURCE}/"))
    return {name for name in below if name.partition("/")[0] in ROOMS}


def main() -> None:
    found = crossed()
    rooms = Counter(name.partition("/")[0] for name in found)
    print(f"init: {len(found)} modules ({', '.join(f'{room} {rooms[room]}' for room in ROOMS if rooms[room])})")
    for name in sorted(found):
        print(f"  {name}")


if __name__ == "__main__":
    main()
