"""`garboard change restart`."""

import click

from garboard.cli.change.carrying import via_option, yes_option
from garboard.cli.console import ConsoleReporter
from garboard.cli.token.access import kubeconfig_option
from garboard.node.change_restart import RestartRequest, restart_here, restart_via
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.via import Via
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard change restart kube-apiserver --via 'ssh {node} sudo'")
@click.argument("component")
@yes_option
@via_option
@click.option("--dry-run", "is_shown", is_flag=True, help="Show what would be done, and change nothing.")
@click.option("--lease", default="", metavar="HOLDER:TOKEN", hidden=True)
@kubeconfig_option
def restart(component: str, yes: bool, via: str, is_shown: bool, lease: str, kubeconfig: str | None) -> int:
    """Restart COMPONENT of this node, or with --via on all nodes, one after the other and each well before the next.

    For files behind flags that a component reads only when it starts, such as an audit policy. COMPONENT is etcd (with
    the API server of its node), kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or kube-proxy. Exits
    with 12 while other nodes are left.
    """
    asked = RestartRequest(
        component=component,
        kubeconfig=kubeconfig,
        is_asked=not yes,
        is_shown=is_shown,
        lease=LeaseToken.parse(lease) if lease else None,
    )
    local = this_node(ConsoleReporter())
    return restart_via(asked, Via.parse(via), local) if via else restart_here(asked, local)
