"""`certs renew` on this machine: decided from what is on disk, carried out as a run under the lock."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from garboard.engine import Plan, with_preconditions
from garboard.host import HostFolder
from garboard.host.facts import MachineFacts
from garboard.host.root import changed_root
from garboard.model.go import join_path
from garboard.model.lifecycle import InitConfiguration
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.node.transaction import RunOptions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, carry_out, plan_text
from garboard.phases.node.credentials import RenewalSettings, plan_renewal
from garboard.pki import KUBECONFIGS
from garboard.pki.credentials import observe_kubeconfig
from garboard.pki.expiration import ObservedNode
from garboard.pki.inputs import CERTIFICATE_VALIDITY, inputs_of
from garboard.pki.renewal import Renewable, decide_renewals, renewable, renewables
from garboard.pki.store import observe_pairs
from garboard.values import dataclass

_ALL = "all"
_DONE = (
    "\nDone renewing certificates. You must restart the kube-apiserver, kube-controller-manager, kube-scheduler and "
    "etcd, so that they can use the new certificates."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What shall be renewed: one certificate by its name, or `all`; `configuration` is None without a file."""

    name: str
    configuration: InitConfiguration | None
    cert_dir: str | None
    kubeconfig_dir: str
    is_shown: bool = False  # the plan is printed instead of carried out


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
    if renewal.is_shown:
        plan, _ = _plan(targets, settings, node)
        node.reporter.show(plan_text(plan, "text"))
        return
    options = RunOptions(command="certs renew", is_whole=False)
    with node.reserved(options.command, is_whole=options.is_whole):
        node.refuse_open_run()
        plan, messages = _plan(targets, settings, node)
        # Without the notes: they are among the messages below, which belong to stdout as kubeadm's do.
        carry_out(replace(plan, notes=()), node, RunSettings(node_name=settings.node_name), options)
    for line in _messages(renewal.name, messages):
        node.reporter.show(f"{line}\n")


def _plan(targets: Sequence[Renewable], settings: RenewalSettings, node: LocalNode) -> tuple[Plan, list[str]]:
    """Plan from what is on disk now; return the messages for the user as well."""
    _, machine = node.observed()
    observed = observe_node(settings.folder, settings.kubeconfig_dir, machine.folder)
    decisions = decide_renewals(targets, observed, settings.validity, datetime.now(UTC))
    plan = with_preconditions(plan_renewal(decisions, settings), machine.digest)
    return replace(plan, observed=machine.observed()), [each.message for each in decisions]


def _messages(name: str, messages: list[str]) -> Iterator[str]:
    yield from messages
    if name == _ALL:
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
