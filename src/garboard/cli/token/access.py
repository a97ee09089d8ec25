"""The cluster whose tokens are meant: the one of --kubeconfig, else of the first kubeconfig in the usual places."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from garboard.errors import NotReady

if TYPE_CHECKING:
    from garboard.kube import KubeClient

ADMIN_CONF = "/etc/kubernetes/admin.conf"
Command = TypeVar("Command", bound=Callable[..., object])

dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")


def kubeconfig_option(command: Command) -> Command:
    """Add `--kubeconfig`, which says which cluster is meant."""
    option = click.option(
        "--kubeconfig", metavar="FILE",
        help=f"An administrator's kubeconfig.  [default: KUBECONFIG, ~/.kube/config or {ADMIN_CONF}]",
    )  # fmt: skip
    return option(command)


@dataclass(frozen=True, slots=True)
class AdminKubeconfig:
    """The file that leads to the cluster."""

    path: str
    data: bytes

    def read(self, path: str) -> bytes | None:
        from garboard.host.files import read_if_there

        return read_if_there(path)

    def connect(self) -> "KubeClient":
        from garboard.kube import KubeClient, read_access

        return KubeClient(read_access(self.data, self.path, self.read))


def find_kubeconfig(given: str | None) -> AdminKubeconfig:
    """Return the kubeconfig that was named, else the first that is there."""
    from garboard.host.files import read_if_there

    candidates = [given] if given else usual_places(os.environ)
    for path in candidates:
        data = read_if_there(path)
        if data is not None:
            return AdminKubeconfig(path, data)
    raise NotReady(
        f"there is no kubeconfig {' or '.join(candidates)}",
        hint="name the kubeconfig of an administrator with --kubeconfig, such as admin.conf of a control-plane node",
        error_class="bad-kubeconfig",
    )


def usual_places(environment: "os._Environ[str] | dict[str, str]") -> list[str]:
    """Return where kubeadm looks: KUBECONFIG replaces the file in the home folder, admin.conf comes last."""
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = environment.get("HOME")
    return [*(named or ([str(Path(home) / ".kube/config")] if home else [])), ADMIN_CONF]
