"""`join phase preflight`: is the node fit for what it shall become, and is the cluster?"""

from collections.abc import Iterator

from garboard.engine import Note, Step
from garboard.errors import NotReady
from garboard.model.component import LocalEtcd
from garboard.phases.init.preflight import notes_of, verdict_of
from garboard.phases.join.context import JoinContext
from garboard.phases.preflight import Check, control_plane_checks, join_checks, plan_images

_SHARED_PAIRS = ("ca", "front-proxy-ca", "etcd/ca")


def plan_preflight(context: JoinContext) -> Iterator[Step | Note]:
    """Refuse a machine or a cluster that is not ready, and plan to pull images; say which cluster it is."""
    cluster, node = context.joined, context.node
    yield Note(f"joining the cluster at {context.found.server}, Kubernetes {cluster.configuration.kubernetes_version}")
    yield from (Note(text, is_warning=True) for text in (*context.found.warnings, *cluster.warnings))
    if node.exam is not None:
        verdict = verdict_of(_checks(context), node.exam, node.ignored_checks)
        if not node.is_only_shown:
            verdict.refuse()
        yield from notes_of(verdict)
    if context.config.control_plane is not None:
        _refuse_unshared(context)
        if node.exam is not None:
            yield from plan_images(
                cluster.configuration, context.config.node_registration, node.exam, node.ignored_checks
            )


def _checks(context: JoinContext) -> Iterator[Check]:
    config, cluster = context.config, context.joined.configuration
    yield from join_checks(config, cluster.facts)
    if config.control_plane is not None:
        yield from control_plane_checks(
            cluster,
            config.control_plane.local_api_endpoint,
            config.node_registration,
            is_joining=True,
            downloads_certs=bool(config.control_plane.certificate_key),
        )


def _refuse_unshared(context: JoinContext) -> None:
    """Refuse a control plane in a cluster without a shared endpoint, or without what control planes have in common."""
    problems = []
    if not context.joined.configuration.control_plane_endpoint:
        problems.append(
            "unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint "
            "address"
        )
    problems += [f"{name} is missing" for name in _missing_shared(context)]
    if problems:
        raise NotReady(
            "the conditions for another control plane are not met: " + "; ".join(problems),
            hint="give --certificate-key, or copy the shared certificates here; the endpoint is chosen at init",
        )


def _missing_shared(context: JoinContext) -> Iterator[str]:
    found, is_local = context.node.found, isinstance(context.joined.configuration.etcd, LocalEtcd)
    for name in _SHARED_PAIRS if is_local else _SHARED_PAIRS[:2]:
        if found.pairs[name].certificate is None:
            yield context.node.certificate_path(f"{name}.crt")
    if found.service_account.private is None:
        yield context.node.certificate_path("sa.key")
