"""`init` on this machine: where its configuration comes from, and what is observed before it is planned."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from garboard.config import (
    ConfigNotes,
    GivenFlags,
    Loaded,
    ResolvedVersion,
    check_bind_address,
    ignored_checks,
    init_from_flags,
    init_from_values,
)
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.model import DEFAULT_VERSION
from garboard.model.component import LocalEtcd
from garboard.model.go import join_path
from garboard.model.lifecycle import InitConfiguration
from garboard.model.paths import ADMIN_CONF, KUBERNETES_DIR
from garboard.node.configuration import node_host, open_config
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.observe import NodeInspector, node_patches, read_options, with_node_name
from garboard.node.reporter import who
from garboard.node.transaction import RunPolicy
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, Observed, Prepared, Workflow, WorkflowRequest
from garboard.phases.init import INIT, InitContext, InitOptions, observe_init, with_disabled_addons
from garboard.phases.workflow import Placed
from garboard.pki import KeyAlgorithm
from garboard.pki.inputs import inputs_of
from garboard.pki.keys import PooledKeys
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class InitInput:
    """The configuration as it was loaded, and the checks whose errors are only warnings."""

    loaded: Loaded[InitConfiguration]
    ignored_checks: frozenset[str]

    @property
    def config(self) -> InitConfiguration:
        return self.loaded.config


def load_init(flags: GivenFlags) -> Loaded[InitConfiguration]:
    """Load the configuration from the file that was named, else from the other flags."""
    options, notes = read_options(flags), ConfigNotes()
    if path := flags.text("config"):
        loaded = open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).init()
    else:
        init, version = init_from_values(flags, notes)
        loaded = init_from_flags(init, version, MachineFacts(), options)
    config = with_node_name(loaded.config, flags)
    return replace(loaded, config=config, warnings=(*notes.warnings, *loaded.warnings))


def _prepare(request: WorkflowRequest, node: LocalNode) -> Prepared[InitInput]:
    flags = request.flags
    loaded = load_init(flags)
    node.warn(loaded.warnings)
    ignored = ignored_checks(
        flags.list("ignore-preflight-errors"), loaded.config.node_registration.ignore_preflight_errors
    )
    check_bind_address(loaded.config.local_api_endpoint.advertise_address)
    config, skips = with_disabled_addons(loaded.config, flags.list("skip-phases") or loaded.config.skip_phases)
    return Prepared(
        config=InitInput(replace(loaded, config=config), ignored),
        skips=skips,
        is_shown=any(map(flags.switch, ("print-manifest", "dry-run"))) or config.dry_run,
    )


@contextmanager
def _observe(
    prepared: Prepared[InitInput], selected: Sequence[Placed[InitContext]], request: WorkflowRequest, node: LocalNode
) -> Iterator[Observed[InitContext]]:
    given, machine, flags = prepared.config, node.machine, request.flags
    server = f"https://{given.config.local_api_endpoint.host_port}"
    cluster = NodeCluster(machine, flags.text("kubeconfig") or ADMIN_CONF, server, report=node.reporter.report)
    # Keys take as long as all the checks and the planning: they are made meanwhile.
    with PooledKeys(() if prepared.is_shown else _keys_ahead(given.config, selected, machine)) as keys:
        context, warnings = observe_init(
            given.loaded,
            _options(flags, given.config, selected, machine),
            host=node_host(machine),
            machine=machine,
            patches=node_patches(given.config, flags, role="control-plane"),
            now=datetime.now(UTC),
            cluster=None if prepared.is_shown else cluster,
            inspector=NodeInspector(machine.manager),
            ignored_checks=given.ignored_checks,
        )
        node.warn(warnings)
        yield Observed(context=context, settings=_settings(given.config, cluster), cluster=cluster, keys=keys)


def _options(
    flags: GivenFlags, config: InitConfiguration, selected: Sequence[Placed[InitContext]], machine: NodeMachine
) -> InitOptions:
    return InitOptions(
        kubeconfig=flags.text("kubeconfig") or ADMIN_CONF,
        kubeconfig_dir=flags.text("kubeconfig-dir") or KUBERNETES_DIR,
        uploads_certs=flags.switch("upload-certs"),
        author=who(),
        has_cluster=isinstance(config.cluster.etcd, LocalEtcd) and _has_cluster(config.cluster.etcd, machine),
        certificate_key=config.certificate_key or os.urandom(32).hex(),
        shows_join_command=any(each.path == "show-join-command" for each in selected),
        prints_token=not flags.switch("skip-token-print"),
        prints_certificate_key=not flags.switch("skip-certificate-key-print"),
    )


def _keys_ahead(
    config: InitConfiguration, selected: Sequence[Placed[InitContext]], machine: NodeMachine
) -> list[KeyAlgorithm]:
    """Return the keys that a machine without certificates will need; one that has some may need none."""
    if machine.has_folder(config.cluster.certificates_dir):
        return []
    names = [each.path.split("/") for each in selected]
    has_etcd = isinstance(config.cluster.etcd, LocalEtcd)
    wanted = [name for name in names if name[0] in ("certs", "kubeconfig") and len(name) == 2]
    count = sum(1 for _, name in wanted if has_etcd or "etcd" not in name)
    return [inputs_of(config).key_algorithm] * count


def _settings(config: InitConfiguration, cluster: NodeCluster) -> RunSettings:
    return RunSettings(
        kubeconfig=cluster.kubeconfig,
        local_server=cluster.local_server,
        cri_socket=config.node_registration.cri_socket,
        endpoint=config.cluster.control_plane_endpoint,
    )


def _policy(given: InitInput, request: WorkflowRequest, node: LocalNode) -> RunPolicy:
    etcd = given.config.cluster.etcd
    makes_cluster = request.is_whole and isinstance(etcd, LocalEtcd) and not _has_cluster(etcd, node.machine)
    return RunPolicy(cluster="made" if makes_cluster else "local")


def _has_cluster(etcd: LocalEtcd, machine: NodeMachine) -> bool:
    """Say whether a cluster lives on this node already: then init changes its objects, and undo has to restore them."""
    return bool(machine.entries(join_path(etcd.data_dir, "member")))


INIT_WORKFLOW = Workflow(name="init", phases=INIT, prepare=_prepare, observe=_observe, policy=_policy)
