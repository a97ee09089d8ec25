"""What a user sees of a fleet and takes from it: pools and claims as they are, a claim, its kubeconfig."""

import secrets
from collections.abc import Sequence

from garboard.documents import Json
from garboard.errors import BadUsage, NotReady
from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.conditions import condition, reason_of
from garboard.fleet.controllers.install_configs import secret_text
from garboard.fleet.controllers.marks import API_VERSION
from garboard.fleet.dashboard.rows import deployment_trouble, pool_troubles
from garboard.fleet.names import derived_name
from garboard.kube import KubeClient, ObjectRef
from garboard.node.fleet.control.serving import find_access
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class FleetView:
    """The objects of a fleet, of one namespace or of all."""

    pools: tuple[Stored, ...]
    claims: tuple[Stored, ...]
    deployments: tuple[Stored, ...]

    def as_json(self) -> dict[str, Json]:
        return {
            "pools": [_pool(each) for each in self.pools],
            "deployments": [_deployment(each) for each in self.deployments],
            "claims": [_claim(each) for each in self.claims],
        }

    def as_text(self) -> str:
        parts = []
        for title, rows in self.as_json().items():
            assert isinstance(rows, list)
            parts.append(_table(title, [each for each in rows if isinstance(each, dict)]))
        return "\n".join(parts)


def look(kubeconfig: str | None, namespace: str) -> FleetView:
    with KubeClient(find_access(kubeconfig)) as client:

        def of(kind: str, where: str = namespace) -> tuple[Stored, ...]:
            found = client.list_objects(kind, where, api_version=API_VERSION)
            return tuple(Stored({"kind": kind, **each}) for each in found)

        deployments = of("ClusterDeployment", "")
        at = ("spec", "clusterPoolRef", "namespace")
        shown = (each for each in deployments if not namespace or namespace in (each.namespace, each.text(*at)))
        return FleetView(of("ClusterPool"), of("ClusterClaim"), tuple(shown))


def _pool(each: Stored) -> dict[str, Json]:
    return {
        "name": f"{each.namespace}/{each.name}",
        "wanted": each.number("spec", "size"),
        "size": each.number("status", "size") or 0,
        "ready": each.number("status", "ready") or 0,
        "notes": "; ".join(f"{one.type}: {one.message}" for one in pool_troubles(each)),
    }


def _deployment(each: Stored) -> dict[str, Json]:
    return {
        "name": f"{each.namespace}/{each.name}",
        "pool": each.text("spec", "clusterPoolRef", "poolName"),
        "claim": each.text("spec", "clusterPoolRef", "claimName"),
        "state": "Deleting" if each.is_deleting else reason_of(each, "Provisioned") or "New",
        "infraID": each.text("spec", "clusterMetadata", "infraID"),
        "notes": deployment_trouble(each),
    }


def _claim(each: Stored) -> dict[str, Json]:
    pending = condition(each, "Pending")
    return {
        "name": f"{each.namespace}/{each.name}",
        "pool": each.text("spec", "clusterPoolName"),
        "state": pending.reason if pending is not None else "New",
        "cluster": each.text("spec", "namespace"),
        "lifetime": each.text("status", "lifetime"),
        "notes": pending.message if pending is not None and pending.status == "True" else "",
    }


def _table(title: str, rows: Sequence[dict[str, Json]]) -> str:
    if not rows:
        return f"{title.upper()}: none\n"
    names = list(rows[0])
    cells = [[name.upper() for name in names], *([_cell(each[name]) for name in names] for each in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(names))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join((f"{title.upper()}:", *lines)) + "\n"


def _cell(value: Json) -> str:
    return str(value) if value not in (None, "") else "-"


def claim_cluster(
    kubeconfig: str | None, namespace: str, pool: str, *, name: str, lifetime: str, subjects: Sequence[str]
) -> str:
    """Create a claim, and return its name."""
    chosen = name or derived_name(pool, secrets.token_hex(3))
    spec: dict[str, Json] = {"clusterPoolName": pool}
    if lifetime:
        spec["lifetime"] = lifetime
    if subjects:
        spec["subjects"] = [_subject(each, namespace) for each in subjects]
    with KubeClient(find_access(kubeconfig)) as client:
        if client.find("ClusterPool", namespace, pool, api_version=API_VERSION) is None:
            raise BadUsage(f"there is no ClusterPool {namespace}/{pool}", hint="garboard fleet status lists the pools")
        ref = ObjectRef("ClusterClaim", namespace, chosen, API_VERSION)
        metadata: dict[str, Json] = {"name": chosen, "namespace": namespace}
        client.create(ref, {"apiVersion": API_VERSION, "kind": ref.kind, "metadata": metadata, "spec": spec})
    return chosen


def _subject(text: str, namespace: str) -> dict[str, Json]:
    """Return the subject that is written as user:NAME, group:NAME or serviceaccount:NAME."""
    kind, _, name = text.partition(":")
    kinds = {"user": "User", "group": "Group", "serviceaccount": "ServiceAccount"}
    if kind not in kinds or not name:
        raise BadUsage(f"{text!r} is no subject", hint="write user:alice, group:developers or serviceaccount:builder")
    if kind == "serviceaccount":
        return {"kind": kinds[kind], "name": name, "namespace": namespace}
    return {"kind": kinds[kind], "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def claimed_kubeconfig(
    kubeconfig: str | None, namespace: str, claim: str, *, timeout_s: float, clock: Clock = CLOCK
) -> str:
    """Return the kubeconfig of the cluster that a claim has; wait until it has one."""
    with KubeClient(find_access(kubeconfig)) as client:

        def pending() -> str | None:
            found = client.find("ClusterClaim", namespace, claim, api_version=API_VERSION)
            if found is None:
                raise BadUsage(f"there is no ClusterClaim {namespace}/{claim}", hint="garboard fleet status lists them")
            said = condition(Stored(found), "Pending")
            if said is not None and said.status == "False":
                return None
            return said.message if said is not None else "no controller has looked at it yet"

        waits = wait_until(pending, timeout_s=timeout_s, pauses=Pauses.every(1.0), clock=clock)
        if waits is not None:
            hint = "wait longer with --timeout, or look at the pool: garboard fleet status"
            raise NotReady(f"claim {namespace}/{claim} has no cluster: {waits}", hint=hint, error_class="unclaimed")
        where = Stored(client.require("ClusterClaim", namespace, claim, api_version=API_VERSION)).text(
            "spec", "namespace"
        )
        cluster = Stored(client.require("ClusterDeployment", where, where, api_version=API_VERSION))
        secret = cluster.text("spec", "clusterMetadata", "adminKubeconfigSecretRef", "name")
        text = secret_text(Stored(client.require("Secret", where, secret)), "kubeconfig")
    if text is None:
        raise NotReady(f"Secret {where}/{secret} has no kubeconfig", hint="it was changed: look at the cluster")
    return text
