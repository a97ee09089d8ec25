"""Which capability a test belongs to, by its path, and how many minutes of `make test` each capability may take."""

from pathlib import PurePosixPath

# The budget of `make test` on two cores with everything built; docs/testing.md has the sum.
BUDGET_MINUTES = {
    "patches": 4.5,
    "lifecycle": 10.0,
    "engine": 8.5,
    "lab": 3.0,
    "tunnel": 7.5,
    "upgrade": 8.0,
    "change": 12.0,
    "fleet": 9.0,
    "shared": 0.5,
}
CAPABILITIES = tuple(BUDGET_MINUTES)

# The longest path that leads to a test decides; what is not below any of them is shared by all.
_OWNERS = {
    "change": "change",
    "cli/certs": "lifecycle",
    "cli/change": "change",
    "cli/config": "lifecycle",
    "cli/fleet": "fleet",
    "cli/lab": "lab",
    "cli/patch": "patches",
    "cli/test_init.py": "lifecycle",
    "cli/test_reset.py": "lifecycle",
    "cli/test_rootfs.py": "lifecycle",
    "cli/test_workflow_commands.py": "lifecycle",
    "cli/token": "lifecycle",
    "cli/test_upgrade.py": "upgrade",
    "cli/test_upgrade_preview.py": "upgrade",
    "cli/tunnel": "tunnel",
    "config": "lifecycle",
    "cri": "lifecycle",
    "documents": "patches",
    "drift": "upgrade",
    "engine": "engine",
    "etcd": "lifecycle",
    "fleet": "fleet",
    "host/test_locks.py": "engine",
    "host/test_runs.py": "engine",
    "host/test_work_folder.py": "fleet",
    "kube": "lifecycle",
    "kube/aio": "fleet",
    "kube/test_lease_holding.py": "engine",
    "lab": "lab",
    "lab/test_certificates.py": "upgrade",
    "lab/test_kubelet_upgrade.py": "upgrade",
    "lab/test_change.py": "change",
    "lab/test_change_apply.py": "change",
    "lab/test_change_confirm.py": "change",
    "lab/test_change_cut_short.py": "change",
    "lab/test_concurrent_joins.py": "lifecycle",
    "lab/test_fleet.py": "fleet",
    "lab/test_fleet_pool.py": "fleet",
    "lab/test_garboard_cluster.py": "lifecycle",
    "lab/test_init.py": "lifecycle",
    "lab/test_init_errors.py": "lifecycle",
    "lab/test_join.py": "lifecycle",
    "lab/test_join_via_tunnel.py": "tunnel",
    "lab/test_mixed.py": "lifecycle",
    "lab/test_phases.py": "lifecycle",
    "lab/test_reset.py": "lifecycle",
    "lab/test_runs.py": "engine",
    "lab/test_static_pods.py": "engine",
    "lab/test_tunnel.py": "tunnel",
    "lab/test_tunnel_reverse.py": "tunnel",
    "lab/test_two_clusters.py": "lifecycle",
    "lab/test_upgrade.py": "upgrade",
    "lab/test_upgrade_drift.py": "upgrade",
    "lab/test_upgrade_kills.py": "upgrade",
    "lab/test_upgrade_mixed.py": "upgrade",
    "lab/test_units.py": "engine",
    "lab/test_via.py": "engine",
    "manifests": "lifecycle",
    "node": "lifecycle",
    "node/fleet": "fleet",
    "node/interpreters/test_leases.py": "engine",
    "node/test_change_agent.py": "change",
    "node/test_change_apply.py": "change",
    "node/test_change_apply_run.py": "change",
    "node/test_change_arming.py": "change",
    "node/test_change_cluster.py": "change",
    "node/test_change_guard.py": "change",
    "node/test_change_observe.py": "change",
    "node/test_change_record.py": "change",
    "node/test_change_take_back.py": "change",
    "node/test_change_watch.py": "change",
    "node/test_coordination.py": "engine",
    "node/test_coordinator.py": "engine",
    "node/test_coordinator_record.py": "engine",
    "node/test_kubelet_observe.py": "change",
    "node/test_last_good.py": "engine",
    "node/test_static_pods.py": "engine",
    "node/test_step_hooks.py": "engine",
    "node/test_transaction.py": "engine",
    "node/test_unit_rollback.py": "engine",
    "node/test_upgrade_cluster.py": "upgrade",
    "node/test_upgrade_drift.py": "upgrade",
    "node/test_upgrade_preview.py": "upgrade",
    "node/via": "engine",
    "parity": "lifecycle",
    "parity/test_upgrade_files.py": "upgrade",
    "patches": "patches",
    "phases": "lifecycle",
    "phases/gates/test_static_pods.py": "engine",
    "phases/test_static_pods.py": "engine",
    "phases/upgrade": "upgrade",
    "pki": "lifecycle",
    "reliability": "engine",
    "rpc": "tunnel",
    "rules": "patches",
    "schema": "patches",
    "tunnel": "tunnel",
}


def capability_of(test: str) -> str:
    """Return the capability of a test, given by its path or its pytest name below the root of the checkout."""
    path = PurePosixPath(test.partition("::")[0]).relative_to("tests")
    for place in (path, *path.parents):
        if str(place) in _OWNERS:
            return _OWNERS[str(place)]
    return "shared"


def owned_paths() -> tuple[str, ...]:
    """Return the paths that have a capability of their own."""
    return tuple(f"tests/{path}" for path in _OWNERS)
