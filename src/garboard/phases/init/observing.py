"""Looking at a machine before init plans anything: its certificates, keys and kubeconfigs."""

from dataclasses import replace
from datetime import datetime

from garboard.config import Loaded
from garboard.errors import NotReady
from garboard.manifests import NodeHost
from garboard.model.lifecycle import InitConfiguration
from garboard.phases.init.context import ADMIN_CONF, ClusterView, InitContext, MachineView, ObservedCredentials
from garboard.phases.patching import NodePatches
from garboard.pki import KUBECONFIGS, PkiInputs
from garboard.pki.credentials import decide_with_external_ca, observe_kubeconfig
from garboard.pki.decide import warnings_of
from garboard.pki.external import external_authorities
from garboard.pki.files import Folder
from garboard.pki.store import observe_pairs, observe_service_account
from garboard.pki.tree import refuse_problems


def observe_credentials(certificates: Folder, kubeconfigs: Folder, now: datetime) -> ObservedCredentials:
    """Read what a control plane has, or may have been given, in its two folders."""
    pairs = observe_pairs(certificates)
    return ObservedCredentials(
        pairs=pairs,
        service_account=observe_service_account(certificates),
        kubeconfigs={spec.file_name: observe_kubeconfig(kubeconfigs, spec.file_name) for spec in KUBECONFIGS},
        external=external_authorities(pairs, now),
    )


def observe_init(
    loaded: Loaded[InitConfiguration],
    *,
    host: NodeHost,
    machine: MachineView,
    patches: NodePatches,
    kubeconfig_dir: str,
    now: datetime,
    uploads_certs: bool = False,
    kubeconfig: str = ADMIN_CONF,
    cluster: ClusterView | None = None,
) -> tuple[InitContext, tuple[str, ...]]:
    """Look at the machine and refuse what no phase of init could use; also return warnings about what was found."""
    config = loaded.config
    found = observe_credentials(machine.folder(config.cluster.certificates_dir), machine.folder(kubeconfig_dir), now)
    context = InitContext(
        config=config,
        components=loaded.components,
        host=replace(host, is_external_ca=found.is_external_ca),
        machine=machine,
        found=found,
        patches=patches,
        kubeconfig_dir=kubeconfig_dir,
        now=now,
        uploads_certs=uploads_certs,
        kubeconfig=kubeconfig,
        cluster=cluster,
    )
    return context, _check_external(found, context.inputs)


def _check_external(found: ObservedCredentials, inputs: PkiInputs) -> tuple[str, ...]:
    """Refuse an external CA that is not complete, as kubeadm does before every phase; its etcd CA is not looked at."""
    problems = [each for each in found.external if each.problem and each.name != "etcd-ca"]
    if problems:
        told = "; ".join(f"invalid or incomplete external CA {each.name}: {each.problem}" for each in problems)
        raise NotReady(told, hint="bring what it has signed, or its key", error_class="unusable-certificates")
    if not found.is_external_ca:
        return ()
    chain = found.pairs["ca"].chain
    assert isinstance(chain, tuple)
    decisions = decide_with_external_ca(found.kubeconfigs, inputs, chain)
    refuse_problems(decisions)
    return warnings_of(decisions)
