"""The plan that puts definitions and controller into a cluster; definitions that Hive itself installed are refused."""

from collections.abc import Iterable
from typing import ClassVar, Protocol

from garboard.documents import Json
from garboard.engine import AwaitGate, DeleteObject, Evidence, Gate, Plan, PutObject, Step
from garboard.engine.gate import Probe
from garboard.errors import NotReady
from garboard.fleet.crds import OWNER, OWNER_LABEL, custom_resource_definitions
from garboard.fleet.deploy.objects import ControllerDeployment, controller_objects
from garboard.retry import Pauses
from garboard.values import dataclass

_PHASE = "fleet/install"


class ForeignDefinitions(NotReady):
    """The cluster has definitions of these kinds that garboard did not install."""

    default_class = "foreign-definitions"


class DefinitionsView(Protocol):
    """Where the gate looks."""

    def definitions(self) -> dict[str, dict[str, Json]]:
        """Return the definitions of our kinds that the API server has, by name."""


@dataclass(frozen=True, slots=True)
class KindsServed(Gate):
    """All kinds can be used: their names are accepted and the API server serves them."""

    pauses: ClassVar[Pauses] = Pauses(first_s=0.1, longest_s=1.0, growth=1.5)

    names: tuple[str, ...]
    timeout_s: float = 60.0

    @property
    def name(self) -> str:
        return f"{len(self.names)} kinds of hive.openshift.io to be served"

    def describe(self) -> dict[str, Json]:
        return {"gate": "kinds-served", "names": [*self.names]}

    def probe(self, view: DefinitionsView, /) -> Probe:
        return lambda: _waiting(view.definitions(), self.names)

    def evidence(self, view: DefinitionsView, /) -> Evidence:
        return Evidence(next_command="kubectl describe crds")


def _waiting(found: dict[str, dict[str, Json]], names: Iterable[str]) -> str | None:
    """Say which kind is not served yet, and why, if the API server says so."""
    for name in names:
        conditions = _conditions(found.get(name, {}))
        refused = conditions.get("NamesAccepted", {})
        if refused.get("status") == "False":
            return f"{name}: {refused.get('message')}"
        if conditions.get("Established", {}).get("status") != "True":
            return f"{name} is not established"
    return None


def _conditions(definition: dict[str, Json]) -> dict[str, dict[str, Json]]:
    status = definition.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {str(each.get("type")): each for each in found}


def foreign_definitions(found: Iterable[dict[str, Json]]) -> tuple[str, ...]:
    """Return the names of definitions that do not carry our label: they are those of Hive itself."""
    names = []
    for each in found:
        metadata = each.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        labels = named.get("labels")
        if not isinstance(labels, dict) or labels.get(OWNER_LABEL) != OWNER:
            names.append(str(named.get("name")))
    return tuple(sorted(names))


def refuse_foreign_definitions(found: Iterable[dict[str, Json]]) -> None:
    """Raise if the cluster belongs to Hive itself: two of these would undo each other's work."""
    foreign = foreign_definitions(found)
    if not foreign:
        return
    more = f" is, and {len(foreign) - 1} more are," if len(foreign) > 1 else " is"
    raise ForeignDefinitions(
        f"this cluster is Hive's own: its CustomResourceDefinition {foreign[0]}{more} without the label"
        f" {OWNER_LABEL}={OWNER}",
        hint="nothing was changed; name a cluster without Hive with --kubeconfig",
    )


def plan_deployment(
    wanted: ControllerDeployment, found: Iterable[dict[str, Json]], deployments: Iterable[str] = ()
) -> Plan:
    """Return the plan; `found` are the definitions of our kinds that the cluster has, none of which may be foreign.

    Of our own `deployments` that there are in the namespace, those of another number of shards go once the others are
    there: two controllers of one namespace do each other no harm.
    """
    refuse_foreign_definitions(found)
    definitions = custom_resource_definitions()
    namespace, *others = controller_objects(wanted)
    names = tuple(PutObject.of(each).name for each in definitions)
    steps = (
        *(Step(PutObject.of(each), "the kinds of a fleet", phase=_PHASE) for each in definitions),
        Step(AwaitGate(gate=KindsServed(names)), "the controller watches them", phase=_PHASE),
        *(Step(PutObject.of(each), "the controller", phase=_PHASE) for each in (namespace, *others)),
        *(
            Step(_deletion(wanted, each), "there was another number of shards", phase=_PHASE)
            for each in wanted.left_over(deployments)
        ),
    )
    return Plan(steps)


def _deletion(wanted: ControllerDeployment, name: str) -> DeleteObject:
    return DeleteObject(api_version="apps/v1", kind="Deployment", name=name, namespace=wanted.namespace)
