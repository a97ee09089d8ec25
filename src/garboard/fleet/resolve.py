"""Documents to provision requests: references followed, customizations in their order, contradictions refused.

The order of manifest patches is Hive's: those of a customizationRef first, those of the inventory entry last, so that
the specific ones win. installConfigPatches count only in an inventory entry.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from garboard.errors import BadUsage
from garboard.fleet.deployment_requests import deployment_request
from garboard.fleet.documents import ClusterDeployment, ClusterPool, FleetDocuments, ObjectKey, WrittenObject
from garboard.fleet.pool_requests import deployment_name, entries_of, pool_requests
from garboard.fleet.references import References
from garboard.fleet.requests import ProvisionRequest
from garboard.schema import suggest

NamedT = TypeVar("NamedT", ClusterDeployment, ClusterPool)


def resolve_all(documents: FleetDocuments) -> tuple[ProvisionRequest, ...]:
    """Return a request for each entry of each pool's inventory and for each deployment that is not installed.

    Customizations that none of them uses are checked as well.
    """
    references = References(documents)
    references.compile_all()
    found = [request for pool in documents.pools.values() for request in pool_requests(pool, references)]
    asked = [deployment_request(each, references) for each in documents.deployments.values()]
    references.refuse_problems()
    requests = (*found, *(each for each in asked if each is not None))
    _refuse_same_folder(requests)
    return requests


def resolve_pool(documents: FleetDocuments, name: str) -> tuple[ProvisionRequest, ...]:
    """Return a request for each entry of a pool's inventory; a pool without one has a single request."""
    references = References(documents)
    found = tuple(pool_requests(_named(documents.pools, name, "ClusterPool"), references))
    references.refuse_problems()
    return found


def resolve_deployment(documents: FleetDocuments, name: str) -> ProvisionRequest:
    """Return the request of a deployment: one that the files hold, or POOL-ENTRY for an entry of an inventory."""
    references = References(documents)
    if any(name in (key.name, str(key)) for key in documents.deployments):
        found = deployment_request(_named(documents.deployments, name, "ClusterDeployment"), references)
    else:
        pool, entry = _inventory_entry(documents, name)
        found = next(pool_requests(pool, references, only=entry), None)
    references.refuse_problems()
    if found is None:
        raise BadUsage(
            f"ClusterDeployment {name} is not to be provisioned: it is installed, or has a clusterInstallRef",
            hint="name another deployment",
        )
    return found


def _inventory_entry(documents: FleetDocuments, name: str) -> tuple[WrittenObject[ClusterPool], str | None]:
    """Return the pool and the entry that make a deployment of a name."""
    made = {
        deployment_name(pool, entry): (pool, entry)
        for pool in documents.pools.values()
        for entry in (entries_of(pool) or (None,))
    }
    if name not in made:
        known = [*(key.name for key in documents.deployments), *made]
        raise BadUsage(f"the files hold no ClusterDeployment {name!r}", hint=_hint(name, known, "deployments"))
    return made[name]


def _named(objects: Mapping[ObjectKey, WrittenObject[NamedT]], name: str, kind: str) -> WrittenObject[NamedT]:
    """Return the object of a name, or of NAMESPACE/NAME where several have it."""
    found = [each for key, each in objects.items() if name in (key.name, str(key))]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(str(each.key) for each in found)
        raise BadUsage(f"{len(found)} objects of kind {kind} are called {name}", hint=f"name one as {names}")
    raise BadUsage(f"the files hold no {kind} {name!r}", hint=_hint(name, [key.name for key in objects], f"{kind}s"))


def _hint(name: str, known: Sequence[str], what: str) -> str:
    near = suggest(name, known)
    if near:
        return f"did you mean {near!r}?"
    return f"the {what} are {', '.join(known[:10])}" if known else f"they hold no {what} at all"


def _refuse_same_folder(requests: Sequence[ProvisionRequest]) -> None:
    seen: dict[str, ProvisionRequest] = {}
    for request in requests:
        other = seen.setdefault(request.entry, request)
        if other is not request:
            raise BadUsage(
                f"both {other.name} and {request.name} would be written to the folder {request.entry}",
                hint="render one after the other, with --pool or --deployment",
            )
