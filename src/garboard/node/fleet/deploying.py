"""Putting the fleet's definitions and controller into a cluster, by server-side apply, from any machine."""

from collections.abc import Callable

from garboard.documents import Json
from garboard.engine import DeleteObject, Executor, Gate, PatchObject, Plan, PutObject
from garboard.errors import GarboardError
from garboard.fleet.crds import OWNER, OWNER_LABEL, custom_resource_definitions
from garboard.fleet.deploy import ControllerDeployment, plan_deployment, refuse_foreign_definitions
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient, ObjectConflict, PatchFormat
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.objects import ref_of
from garboard.node.tokens import AdminKubeconfig
from garboard.retry import wait_until

FIELD_MANAGER = "garboard"
_CRD = "CustomResourceDefinition", "apiextensions.k8s.io/v1"


class AppliedObjects:
    """Applies objects in a cluster as one field manager; what others have set in them is not taken over.

    Definitions are, for the controller depends on them; whether they are ours is looked at again just before.
    """

    def __init__(self, cluster: KubeClient, on_done: Callable[[PutObject | DeleteObject], None]) -> None:
        self._cluster = cluster
        self._on_done = on_done

    def put(self, action: PutObject) -> None:
        try:
            self._apply(action)
        except ObjectConflict as error:
            raise GarboardError(
                error.message,
                hint="another manager set these fields: have it give them up (kubectl get --show-managed-fields tells"
                " which), then run the command again",
                error_class=error.error_class,
            ) from error
        self._on_done(action)

    def _apply(self, action: PutObject) -> None:
        """Apply an object; definitions that carry our label are ours, whoever applied them before (`fleet crds`)."""
        is_definition = action.kind == _CRD[0]
        if is_definition:
            found = self._cluster.find(action.kind, "", action.name, api_version=action.api_version)
            refuse_foreign_definitions([found] if found else [])
        self._cluster.patch(
            ref_of(action), action.content, PatchFormat.APPLY, manager=FIELD_MANAGER, forces=is_definition
        )

    def patch(self, action: PatchObject) -> None:
        raise AssertionError("the plan applies whole objects")

    def delete(self, action: DeleteObject) -> None:
        self._cluster.delete(ref_of(action))
        self._on_done(action)

    # GateWaiter, and where its gate looks.

    def definitions(self) -> dict[str, dict[str, Json]]:
        return find_definitions(self._cluster)

    def wait(self, gate: Gate) -> None:
        found = wait_until(gate.probe(self), timeout_s=gate.timeout_s, pauses=gate.pauses)
        if found is not None:
            raise gate.failure(found, gate.evidence(self))

    def is_open(self, gate: Gate) -> bool:
        return gate.probe(self)() is None


def find_definitions(cluster: KubeClient) -> dict[str, dict[str, Json]]:
    """Return the definitions of our kinds that a cluster has, whoever installed them."""
    kind, api_version = _CRD
    names = [PutObject.of(each).name for each in custom_resource_definitions()]
    found = {name: cluster.find(kind, "", name, api_version=api_version) for name in names}
    return {name: each for name, each in found.items() if each is not None}


def plan_for(admin: AdminKubeconfig, wanted: ControllerDeployment) -> Plan:
    """Return the plan for a cluster; one that is Hive's own is refused."""
    with admin.connect() as cluster:
        definitions = find_definitions(cluster).values()
        return plan_deployment(wanted, definitions, find_deployments(cluster, wanted.namespace))


def find_deployments(cluster: KubeClient, namespace: str) -> tuple[str, ...]:
    """Return the names of the Deployments in a namespace that carry our label."""
    found = cluster.list_objects("Deployment", namespace, labels=f"{OWNER_LABEL}={OWNER}")
    return tuple(PutObject.of({"apiVersion": "apps/v1", "kind": "Deployment", **each}).name for each in found)


def deploy(admin: AdminKubeconfig, plan: Plan, on_done: Callable[[PutObject | DeleteObject], None]) -> None:
    """Carry the plan out: without lock and journal, for applying it again goes on where it stopped."""
    with admin.connect() as cluster:
        applied = AppliedObjects(cluster, on_done)
        interpreters = interpreters_over(files=NodeMachine(None), objects=applied, waiter=applied)
        Executor(interpreters).execute(plan)
