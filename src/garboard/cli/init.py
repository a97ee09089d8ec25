"""`garboard init`: the first control-plane node, as a whole or phase by phase."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from garboard.cli.config.inputs import open_config, show_warnings
from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.commands import Asked, Workflow, WorkflowGroup
from garboard.cli.workflow.exam import NodeExam
from garboard.cli.workflow.hands import RunSettings
from garboard.cli.workflow.node import node_host, node_patches, read_options, with_node_name
from garboard.cli.workflow.running import carry_out, refuse_open_run, run_options, show_objects, show_plan
from garboard.config import (
    Loaded,
    Notes,
    ResolvedVersion,
    check_bind_address,
    check_mixed_flags,
    ignored_checks,
    init_from_flags,
)
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.model import DEFAULT_VERSION
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.phases import plan_workflow, select
from garboard.phases.flags import GivenFlags
from garboard.phases.init.context import ADMIN_CONF, InitContext
from garboard.phases.init.flags import INIT_FLAGS, PHASE_ONLY_FLAGS, init_from_values
from garboard.phases.init.observing import observe_init
from garboard.phases.init.skipping import with_disabled_addons
from garboard.phases.init.tree import INIT
from garboard.phases.workflow import Placed
from garboard.pki import KeyAlgorithm
from garboard.pki.inputs import inputs_of
from garboard.pki.keys import PooledKeys


def run_init(asked: Asked) -> None:
    """Plan what was asked for, and print the plan or carry it out."""
    flags = asked.flags
    check_mixed_flags(flags.given)
    loaded = load_init(flags)
    show_warnings(loaded.warnings)
    ignored = ignored_checks(
        flags.list("ignore-preflight-errors"), loaded.config.node_registration.ignore_preflight_errors
    )
    check_bind_address(loaded.config.local_api_endpoint.advertise_address)
    config, skip = with_disabled_addons(loaded.config, flags.list("skip-phases") or loaded.config.skip_phases)
    # What is selected is known before anything is looked at, so that a wrong name costs nothing.
    selected = select(INIT, only=asked.only, skip=() if asked.only else skip)
    machine = NodeMachine(service_manager())
    is_only_shown = any(map(flags.switch, ("print-manifest", "dry-run"))) or config.dry_run
    if not is_only_shown:
        refuse_open_run(machine)
    server = f"https://{config.local_api_endpoint.host_port}"
    cluster = NodeCluster(machine, flags.text("kubeconfig") or ADMIN_CONF, server)
    # Keys take as long as all the checks and the planning: they are made meanwhile.
    with PooledKeys(() if is_only_shown else _keys_ahead(config, selected, machine)) as keys:
        context = _observe(replace(loaded, config=config), flags, machine, None if is_only_shown else cluster)
        context = replace(
            context,
            kubeconfig=cluster.kubeconfig,
            shows_join_command=any(each.path == "show-join-command" for each in selected),
            ignored_checks=ignored,
            is_only_shown=is_only_shown,
        )
        plan = plan_workflow(selected, context)
        if flags.switch("print-manifest"):
            show_objects(plan)
        elif is_only_shown:
            show_plan(plan, asked.output)
        else:
            is_made = asked.only is None and isinstance(config.cluster.etcd, LocalEtcd)
            options = run_options("init", asked, "made" if is_made else "local")
            carry_out(plan, machine, _settings(config, cluster), options, cluster, keys)


def _observe(
    loaded: Loaded[InitConfiguration], flags: GivenFlags, machine: NodeMachine, cluster: NodeCluster | None
) -> InitContext:
    config = loaded.config
    context, warnings = observe_init(
        loaded,
        host=node_host(machine),
        machine=machine,
        patches=node_patches(
            config.patches_directory,
            name=config.node_registration.name,
            role="control-plane",
            is_strict=flags.switch("strict-patches"),
        ),
        kubeconfig_dir=flags.text("kubeconfig-dir") or "/etc/kubernetes",
        now=datetime.now(UTC),
        uploads_certs=flags.switch("upload-certs"),
        cluster=cluster,
    )
    show_warnings(warnings)
    return replace(
        context,
        certificate_key=config.certificate_key or os.urandom(32).hex(),
        prints_token=not flags.switch("skip-token-print"),
        prints_certificate_key=not flags.switch("skip-certificate-key-print"),
        exam=NodeExam(machine.manager),
    )


def _keys_ahead(
    config: InitConfiguration, selected: Sequence[Placed[InitContext]], machine: NodeMachine
) -> list[KeyAlgorithm]:
    """Return what keys a machine without certificates will need; one that has them may need none."""
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


def load_init(flags: GivenFlags) -> Loaded[InitConfiguration]:
    """Load the configuration from the file that was named, else from the other flags."""
    options, notes = read_options(flags), Notes()
    if path := flags.text("config"):
        loaded = open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).init()
    else:
        init, version = init_from_values(flags, notes)
        loaded = init_from_flags(init, version, MachineFacts(), options)
    config = with_node_name(loaded.config, flags)
    return replace(loaded, config=config, warnings=(*notes.warnings, *loaded.warnings))


init = WorkflowGroup[InitContext](
    Workflow("init", INIT, INIT_FLAGS, run_init),
    flags=[name for name in INIT_FLAGS if name not in PHASE_ONLY_FLAGS],
    summary="Set up the first control-plane node of a cluster.",
    epilog="Example: garboard init --config kubeadm.yaml --dry-run",
)
