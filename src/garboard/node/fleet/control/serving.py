"""The controller as a program: its way to the API server, leadership, health and metrics, until it is told to end."""

import asyncio
import logging
import os
import socket
import sys
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Literal, TypeAlias

from garboard.fleet.controllers import ObjectId
from garboard.host.files import read_if_there
from garboard.host.processes import find_program
from garboard.kube import Access, in_cluster_access, read_access
from garboard.kube.aio import AioKubeClient, LeaderElection
from garboard.kube.leases import LeaseClaim
from garboard.node.fleet.control.controller import FleetController, Shard, refuse_other_controllers
from garboard.node.fleet.control.jobs import JobTemplate
from garboard.node.fleet.control.local_runs import LocalRuns, NoRuns
from garboard.node.tokens import find_kubeconfig
from garboard.tunnel.metrics import Gauge, Metrics, Total
from garboard.tunnel.web import OK, Page, serve_pages
from garboard.values import dataclass

log = logging.getLogger("garboard.fleet")

Provisioner: TypeAlias = Literal["job", "local"]
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """How a controller is to run."""

    kubeconfig: str | None = None
    provisioner: Provisioner = "local"
    work: Path = Path("/var/lib/garboard/fleet")
    installer: str = "openshift-install"
    image: str = ""
    namespace: str = ""
    shard: Shard = Shard()
    leads: bool = False
    lease_namespace: str = "kube-system"
    metrics: tuple[str, int] | None = None


def find_access(kubeconfig: str | None) -> Access:
    """Return the way to the API server: a kubeconfig that was named, the account of a pod, or the usual kubeconfig."""
    if kubeconfig is None and os.environ.get(_IN_CLUSTER):
        return in_cluster_access(os.environ, read_if_there)
    admin = find_kubeconfig(kubeconfig)
    return read_access(admin.data, admin.path, admin.read)


async def run_controller(options: ControllerOptions, stopping: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Run until told to stop; raise if the Lease is lost or the API server cannot be used."""
    async with AsyncExitStack() as ends:
        api = await ends.enter_async_context(AioKubeClient(lambda: find_access(options.kubeconfig)))
        await refuse_other_controllers(api)
        controller = FleetController(
            api,
            runs=lambda ended: _runs(options, ended),
            make_jobs=JobTemplate(options.image) if options.provisioner == "job" else None,
            namespace=options.namespace,
            shard=options.shard,
        )
        leading = _election(api, options)
        if options.metrics is not None:
            host, port = options.metrics
            metrics = _metrics(controller, leading)
            pages = {
                "/healthz": lambda _: OK,
                "/readyz": lambda _: OK if controller.is_synced or leading is not None else _NOT_YET,
                "/metrics": lambda _: Page(HTTPStatus.OK, metrics.text() + controller.pool_metrics().text()),
            }
            bound = await ends.enter_async_context(serve_pages(host, port, pages))
            ready(f"{host}:{bound}")
        work = asyncio.create_task(leading.lead(controller.run) if leading is not None else controller.run())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not work.done():
            work.cancel()
            await asyncio.wait((work,))
        if not work.cancelled() and (failure := work.exception()) is not None:
            raise _first(failure)


_NOT_YET = Page(HTTPStatus.SERVICE_UNAVAILABLE, "the objects have not been listed yet")


def _first(failure: BaseException) -> BaseException:
    """Return what a group of tasks has failed with first."""
    return _first(failure.exceptions[0]) if isinstance(failure, BaseExceptionGroup) else failure


def _runs(options: ControllerOptions, ended: Callable[[ObjectId, float], None]) -> LocalRuns | NoRuns:
    if options.provisioner == "job":
        return NoRuns()
    own = find_program("garboard") or Path(sys.argv[0])
    command = [str(own), "fleet", "attempt", "--installer", options.installer]
    if options.kubeconfig is not None:
        command += ["--kubeconfig", options.kubeconfig]
    return LocalRuns(options.work, command, ended)


def _election(api: AioKubeClient, options: ControllerOptions) -> LeaderElection | None:
    if not options.leads:
        return None
    shard = options.shard
    name = "garboard-fleet" if shard.of == 1 else f"garboard-fleet-{shard.number}-of-{shard.of}"
    holder = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    return LeaderElection(api, LeaseClaim(name=name, namespace=options.lease_namespace, holder=holder))


def _metrics(controller: FleetController, leading: LeaderElection | None) -> Metrics:
    cache = controller.cache

    def objects() -> dict[str, float]:
        kinds = ("ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterProvision", "ClusterDeprovision")
        return {kind: float(len(cache.all(kind))) for kind in kinds}

    return Metrics(
        "garboard_fleet_",
        {
            "objects": ("Objects that are watched.", Gauge(objects, "kind")),
            "queue_length": ("Keys that wait for a worker.", Gauge(lambda: float(len(controller.queue)))),
            "decisions_total": ("Decisions that were made.", Total(lambda: controller.decisions)),
            "failures_total": ("Decisions that could not be carried out.", Total(lambda: controller.failures)),
            "leader": (
                "Whether this process leads.", Gauge(lambda: float(leading is None or leading.is_leader)),
            ),
        },
    )  # fmt: skip
