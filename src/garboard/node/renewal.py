"""`certs renew` on this machine: decided from what is on disk, carried out as a run under the lock.

With `--restart`, the static pods that read a renewed file only when they start are restarted afterwards.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from garboard.engine import Note, Plan, paths_written, with_preconditions
from garboard.errors import BadUsage, ClusterUnreachable, NotReady
from garboard.host import HostFolder
from garboard.host.facts import MachineFacts
from garboard.host.root import changed_root
from garboard.lazy import lazy_module
from garboard.manifests.etcd import PEER_PORT
from garboard.model.addresses import join_host_port
from garboard.model.go import join_path
from garboard.model.lifecycle import InitConfiguration
from garboard.model.paths import ADMIN_CONF, DEFAULT_CERTIFICATES_DIR
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.runs import can_journal
from garboard.node.static_pods import Swap, plan_under_lease
from garboard.node.transaction import RunOptions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, carry_out, plan_text
from garboard.phases.node.credentials import RENEWAL, RenewalSettings, plan_renewal
from garboard.phases.reloading import restarted_pods, uses_of
from garboard.phases.static_pods import ETCD, SwapSettings, member_url_of, swapped
from garboard.phases.upgrade.context import observe_this_node
from garboard.pki import KUBECONFIGS
from garboard.pki.credentials import observe_kubeconfig
from garboard.pki.expiration import ObservedNode
from garboard.pki.inputs import CERTIFICATE_VALIDITY, inputs_of
from garboard.pki.renewal import Renewable, decide_renewals, renewable, renewables
from garboard.pki.store import observe_pairs
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.node import change_record
else:
    change_record = lazy_module("garboard.node.change_record")

_ALL = "all"
_DONE = (
    "\nDone renewing certificates. You must restart the kube-apiserver, kube-controller-manager, kube-scheduler and "
    "etcd, so that they can use the new certificates."
)
_OTHERS = "What else uses renewed files reads them again by itself; copies of admin.conf are still the former ones."


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What shall be renewed: one certificate by its name, or `all`; `configuration` is None without a file."""

    name: str
    configuration: InitConfiguration | None
    cert_dir: str | None
    kubeconfig_dir: str
    restarts: bool = False  # what would not see the renewed files otherwise
    is_shown: bool = False  # the plan is printed instead of carried out


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is to be done with which settings, what there is to say of each certificate, and which pods restart."""

    plan: Plan
    settings: RunSettings
    messages: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


def observe_node(
    cert_dir: str, kubeconfig_dir: str, folder_at: Callable[[str], HostFolder] = HostFolder
) -> ObservedNode:
    """Read all certificates and kubeconfigs of this node."""
    folder = folder_at(kubeconfig_dir)
    kubeconfigs = {spec.file_name: observe_kubeconfig(folder, spec.file_name) for spec in KUBECONFIGS}
    return ObservedNode(observe_pairs(folder_at(cert_dir)), kubeconfigs)


def renew_certificates(renewal: Renewal, node: LocalNode) -> None:
    """Plan what was asked for, and print the plan or carry it out; nothing is written unless all can be renewed."""
    inputs = inputs_of(renewal.configuration) if renewal.configuration else None
    has_external_etcd = inputs is not None and inputs.has_external_etcd
    targets = renewables(has_external_etcd=has_external_etcd) if renewal.name == _ALL else (renewable(renewal.name),)
    settings = RenewalSettings(
        folder=_absolute(renewal.cert_dir or _certificates_dir(renewal.configuration)),
        kubeconfig_dir=_absolute(renewal.kubeconfig_dir),
        validity=inputs.certificate_validity if inputs else CERTIFICATE_VALIDITY,
        key_algorithm=inputs.key_algorithm if inputs else None,
        node_name=_node_name(renewal.configuration),
    )
    if renewal.restarts and not renewal.is_shown and not can_journal():
        raise BadUsage("only root can restart static pods", hint="run it as root, or leave --restart out")
    if renewal.is_shown:
        node.reporter.show(plan_text(_plan(targets, settings, node, restarts=renewal.restarts).plan, "text"))
        return
    options = RunOptions(command="certs renew", is_whole=False)
    with node.reserved(options.command, is_whole=options.is_whole):
        node.refuse_open_run()
        _refuse_while_changing(node)
        planned = _plan(targets, settings, node, restarts=renewal.restarts)
        # Without the notes: they are among the messages below, which belong to stdout as kubeadm's do.
        carry_out(replace(planned.plan, notes=()), node, planned.settings, options)
    for line in _messages(renewal, planned):
        node.reporter.show(f"{line}\n")


def _refuse_while_changing(node: LocalNode) -> None:
    """Refuse to renew in the middle of a change that this node takes part in, if its API server can be asked.

    A node that was never changed renews its certificates without any, as kubeadm does.
    """
    is_changed = can_journal() and any(each.header.command.startswith("change") for each in node.runs.all())
    if not is_changed or node.machine.read(ADMIN_CONF) is None:
        return
    cluster = NodeCluster(node.machine, ADMIN_CONF, "", is_patient=False)
    with suppress(ClusterUnreachable):
        change_record.refuse_while_changing(cluster.reader)


def _plan(targets: Sequence[Renewable], settings: RenewalSettings, node: LocalNode, *, restarts: bool) -> _Planned:
    """Plan from what is on disk now."""
    watched, machine = node.observed()
    observed = observe_node(settings.folder, settings.kubeconfig_dir, machine.folder)
    decisions = decide_renewals(targets, observed, settings.validity, datetime.now(UTC))
    planned = _Planned(plan_renewal(decisions, settings), RunSettings(node_name=settings.node_name))
    if restarts and planned.plan.steps:
        planned = _with_restarts(planned, settings, watched)
    plan = replace(with_preconditions(planned.plan, machine.digest), observed=machine.observed())
    return replace(planned, plan=plan, messages=tuple(each.message for each in decisions))


def _with_restarts(planned: _Planned, settings: RenewalSettings, node: LocalNode) -> _Planned:
    """Return the plan with the restart of those static pods that would go on with the former certificates."""
    this = observe_this_node(node.machine, MachineFacts().cri_sockets())
    if not this.manifests:
        raise NotReady("this node has no static pods to restart", hint="leave --restart out, or run it on its node")
    uses = uses_of(paths_written(planned.plan.steps), this.manifests)
    pods = restarted_pods(uses, this.manifests)
    restarted = tuple(pod.component for pod in swapped(pods))
    default_url = f"https://{join_host_port(this.endpoint.advertise_address, PEER_PORT)}"
    member_url = (member_url_of(this.manifests[ETCD]) or default_url) if ETCD in restarted else ""
    swap = Swap(
        manifests={},
        cause="",
        node_name=this.name,
        cri_socket=this.cri_socket,
        settings=SwapSettings(member_url=member_url),
    )
    restart = plan_under_lease(swap, pods, lambda _image: True)  # a runtime keeps the images of its containers
    steps = tuple(replace(step, node=this.name) for step in planned.plan.steps)
    notes = (Note(str(use), phase=RENEWAL) for use in uses if use.reloads and use.component not in restarted)
    run = RunSettings(
        kubeconfig=_administrator(settings.kubeconfig_dir, node),
        local_server=f"https://{this.endpoint.host_port}",
        cri_socket=this.cri_socket,
        certificates_dir=settings.folder if member_url else "",
        node_name=this.name,
    )
    plan = Plan((*steps, *restart.steps), (*planned.plan.notes, *notes, *restart.notes))
    return _Planned(plan, run, restarted=restarted)


def _administrator(folder: str, node: LocalNode) -> str:
    """Return the kubeconfig that the Lease of the control plane is acquired with; it may be renewed before."""
    path = join_path(folder, posixpath.basename(ADMIN_CONF))
    if node.machine.read(path) is None:
        hint = "garboard init phase kubeconfig admin makes one; or leave --restart out"
        raise NotReady(f"there is no {path}, and without it nodes cannot restart one after the other", hint=hint)
    return path


def _messages(renewal: Renewal, planned: _Planned) -> Iterator[str]:
    yield from planned.messages
    if renewal.restarts:
        yield f"\nRestarted: {', '.join(planned.restarted) or 'nothing'}. {_OTHERS}"
    elif renewal.name == _ALL:
        yield _DONE


def _certificates_dir(configuration: InitConfiguration | None) -> str:
    return configuration.cluster.certificates_dir if configuration else DEFAULT_CERTIFICATES_DIR


def _node_name(configuration: InitConfiguration | None) -> str:
    return configuration.node_registration.name if configuration else MachineFacts().hostname()


def _absolute(folder: str) -> str:
    """Return a folder as a journal keeps it: it is resumed or undone from any working directory."""
    if folder.startswith("/"):
        return folder
    return join_path("/" if changed_root() else str(Path.cwd()), folder)
