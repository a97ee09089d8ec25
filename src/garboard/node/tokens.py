"""Bootstrap tokens from any machine: the administrator's kubeconfig, and plans carried out without lock or journal."""

import os
from collections.abc import Callable
from pathlib import Path

from garboard.engine import DeleteObject, Executor, PatchObject, Plan, PutObject
from garboard.errors import GarboardError
from garboard.host.files import read_if_there
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient, ObjectExists, read_access
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.model.paths import ADMIN_CONF
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.objects import ref_of
from garboard.phases.tokens import SELECTOR, StoredToken, stored_tokens, token_id_in
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class AdminKubeconfig:
    """The file that leads to the cluster."""

    path: str
    data: bytes

    def read(self, path: str) -> bytes | None:
        return read_if_there(path)

    def connect(self) -> KubeClient:
        return KubeClient(read_access(self.data, self.path, self.read))


def find_kubeconfig(given: str | None) -> AdminKubeconfig:
    """Return the kubeconfig that was named, else the first that is there."""
    candidates = [given] if given else usual_places(os.environ)
    for path in candidates:
        data = read_if_there(path)
        if data is not None:
            return AdminKubeconfig(path, data)
    raise GarboardError(
        f"there is no kubeconfig {' or '.join(candidates)}",
        hint="name the kubeconfig of an administrator with --kubeconfig, such as admin.conf of a control-plane node",
        error_class="no-kubeconfig",
    )


def usual_places(environment: "os._Environ[str] | dict[str, str]") -> list[str]:
    """Return where kubeadm looks: KUBECONFIG replaces the file in the home folder, admin.conf comes last."""
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = environment.get("HOME")
    return [*(named or ([str(Path(home) / ".kube/config")] if home else [])), ADMIN_CONF]


def create_tokens(plan: Plan, admin: AdminKubeconfig) -> None:
    """Put the tokens into the cluster: without lock and journal, for this runs on any machine and as any user."""
    with admin.connect() as cluster:
        interpreters = interpreters_over(files=NodeMachine(None), objects=TokenSecrets(cluster))
        Executor(interpreters).execute(plan)


def read_tokens(admin: AdminKubeconfig) -> tuple[tuple[StoredToken, ...], tuple[str, ...]]:
    """Return the tokens of the cluster, and warnings about Secrets that only look like tokens."""
    with admin.connect() as cluster:
        return stored_tokens(cluster.selected("Secret", KUBE_SYSTEM, SELECTOR))


def delete_tokens(plan: Plan, admin: AdminKubeconfig, on_deleted: Callable[[str], None]) -> None:
    """Delete the tokens of the plan; `on_deleted` gets the id of each one that is gone."""
    with admin.connect() as cluster:
        interpreters = interpreters_over(files=NodeMachine(None), objects=TokenSecrets(cluster, on_deleted))
        Executor(interpreters).execute(plan)


def find_tokens(plan: Plan, admin: AdminKubeconfig, on_found: Callable[[str], None]) -> None:
    """Look up the tokens that the plan deletes, and change nothing; `on_found` gets the id of each one."""
    with admin.connect() as cluster:
        secrets = TokenSecrets(cluster)
        for step in plan.steps:
            assert isinstance(step.action, DeleteObject)
            secrets.require(step.action)
            on_found(token_id_in(step.action.name))


class TokenSecrets:
    """Puts Secrets of tokens into a cluster and deletes them.

    As with kubeadm, a token that is made must not be there already, and one that is deleted must be there.
    """

    def __init__(self, cluster: KubeClient, on_deleted: Callable[[str], None] = lambda _token_id: None) -> None:
        self.cluster = cluster
        self.on_deleted = on_deleted

    def put(self, action: PutObject) -> None:
        try:
            self.cluster.create(ref_of(action), action.content)
        except ObjectExists as error:
            token_id = token_id_in(action.name)
            raise GarboardError(
                f'a token with id "{token_id}" already exists',
                hint=f"delete it first: garboard token delete {token_id}",
                error_class=error.error_class,
            ) from error

    def patch(self, action: PatchObject) -> None:
        raise AssertionError("tokens are made and deleted, never changed")

    def delete(self, action: DeleteObject) -> None:
        self.require(action)
        self.cluster.delete(ref_of(action))
        self.on_deleted(token_id_in(action.name))

    def require(self, action: DeleteObject) -> None:
        """Raise if the token is not there."""
        self.cluster.require(action.kind, action.namespace, action.name)
