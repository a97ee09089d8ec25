"""The static pods of this node replaced under its lock, as a run that is resumed or undone like any other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from garboard.engine import Plan, Step, with_preconditions
from garboard.errors import NotReady
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR, manifest_path
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.observe import NodeInspector
from garboard.node.transaction import RunOptions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, carry_out
from garboard.phases.control_plane_lease import UNIT, acquire_lease, release_lease
from garboard.phases.static_pods import ORDER, ReplacedPod, SwapSettings, plan_pulls, plan_swap
from garboard.values import dataclass

PHASE = "static-pods"
# The API server that renews the Lease is among what is replaced, and may be the only one.
_LEASE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """New manifests by component, and why; components without one keep theirs.

    The run acquires the Lease of the control plane, unless it is given the `lease` that a coordinator holds for it.
    """

    manifests: Mapping[str, bytes]
    cause: str
    node_name: str
    cri_socket: str
    certificates_dir: str = DEFAULT_CERTIFICATES_DIR  # where etcd's clients find their certificates
    settings: SwapSettings = SwapSettings()
    lease: LeaseToken | None = None


def swap_static_pods(swap: Swap, node: LocalNode, options: RunOptions) -> None:
    """Plan from the manifests that are there, and carry that out."""
    with node.reserved(options.command, is_whole=options.is_whole):
        node.refuse_open_run()
        watched, machine = node.observed()
        inspector = NodeInspector(machine.manager)
        plan = plan_under_lease(swap, _pods(swap, watched), lambda image: inspector.has_image(swap.cri_socket, image))
        # A connection to etcd is made when one is needed, which is only where this node has a member.
        certificates_dir = swap.certificates_dir if swap.settings.member_url else ""
        run = RunSettings(cri_socket=swap.cri_socket, certificates_dir=certificates_dir, node_name=swap.node_name)
        expecting = replace(with_preconditions(plan, machine.digest), observed=machine.observed())
        carry_out(expecting, node, run.under(swap.lease), options)


def plan_under_lease(swap: Swap, pods: Iterable[ReplacedPod], has_image: Callable[[str], bool]) -> Plan:
    """Plan the swap under the Lease of the control plane; nothing if no manifest changes.

    Images are pulled before: that may take long, and disturbs nobody.
    """
    known = tuple(pods)
    steps = plan_swap(known, swap.node_name, swap.cause, swap.settings)
    if not steps:
        return Plan()
    wanted = acquire_lease(swap.node_name, payload=f"{UNIT}:{swap.node_name}", duration_s=_LEASE_S)
    before = Step(wanted, "one node at a time changes its control plane")
    after = Step(release_lease(swap.node_name), "the next node may follow")
    whole = (*plan_pulls(known, has_image), before, *steps, after)
    return Plan(tuple(replace(step, phase=step.phase or PHASE, node=swap.node_name) for step in whole))


def _pods(swap: Swap, node: LocalNode) -> list[ReplacedPod]:
    found = {component: node.machine.read(manifest_path(component)) for component in ORDER}
    missing = [component for component in swap.manifests if found.get(component) is None]
    if missing:
        raise NotReady(f"this node has no static pod {', '.join(missing)}", hint="ls /etc/kubernetes/manifests")
    return [
        ReplacedPod(component=component, former=former, manifest=swap.manifests.get(component, former))
        for component, former in found.items()
        if former is not None
    ]
