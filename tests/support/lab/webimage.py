"""An image with busybox in it: a web server, a client and a resolver for tests of the pod network."""

import shutil
from pathlib import Path

from garboard.host import Machine
from garboard.lab.binaries.download import machine_architecture
from garboard.lab.images import ImageDefinition, write_archive
from garboard.lab.imageset import add_programs

NAME = "example.com/garboard/web:v1"


def write_web_image(path: Path) -> None:
    """Write the image as an archive for `lab load`."""
    busybox = shutil.which("busybox")
    assert busybox, "make lab installs it"
    files: dict[str, Path] = {}
    links: dict[str, str] = {}
    add_programs(files, links, [Path(busybox)], Machine())
    image = ImageDefinition(NAME, files, ("busybox",), links, folders=("tmp", "www"))
    with path.open("wb") as handle:
        write_archive(image, handle, Machine(), architecture=machine_architecture())


def pod(name: str, node: str, *command: str) -> str:
    """Write a pod on a given node; it tolerates whatever the node is tainted with."""
    arguments = "".join(f"\n        - {part!r}" for part in command)
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 0
  tolerations: [{{operator: Exists}}]
  containers:
    - name: main
      image: {NAME}
      imagePullPolicy: Never
      command: ["busybox"]
      args:{arguments}
"""


def service(name: str) -> str:
    """Write a Service for the pod of the same name."""
    return f"""\
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
  selector: {{app: {name}}}
  ports: [{{port: 80, targetPort: 8080}}]
"""
