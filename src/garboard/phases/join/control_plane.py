"""What only a control-plane node plans. Rendering and issuing are loaded once it does: a worker joins without them."""

from collections.abc import Iterator

from garboard.engine import Note, Step
from garboard.phases.join.context import JoinContext


def plan_download_certs(context: JoinContext) -> Iterator[Step | Note]:
    from garboard.phases.join import preparing

    return preparing.plan_download_certs(context)


def plan_certs(context: JoinContext) -> Iterator[Step | Note]:
    from garboard.phases.join import preparing

    return preparing.plan_certs(context)


def plan_kubeconfigs(context: JoinContext) -> Iterator[Step | Note]:
    from garboard.phases.join import preparing

    return preparing.plan_kubeconfigs(context)


def plan_control_plane(context: JoinContext) -> Iterator[Step | Note]:
    from garboard.phases.join import preparing

    return preparing.plan_control_plane(context)


def plan_check_etcd(context: JoinContext) -> Iterator[Step | Note]:
    from garboard.phases.join import etcd

    return etcd.plan_check_etcd(context)


def plan_etcd_join(context: JoinContext) -> Iterator[Step | Note]:
    from garboard.phases.join import etcd

    return etcd.plan_etcd_join(context)
