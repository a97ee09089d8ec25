"""`garboard fleet install`."""

import click

from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import dry_run_option, kubeconfig_option
from garboard.engine import DeleteObject, PutObject
from garboard.engine.show import plan_as_json, plan_as_text
from garboard.fleet.deploy import ControllerDeployment
from garboard.node.fleet.deploying import deploy, plan_for
from garboard.node.reporter import OutputFormat
from garboard.node.tokens import find_kubeconfig

_WANTED = ControllerDeployment()


@click.command(epilog="Example: garboard fleet install --kubeconfig admin.conf --dry-run")
@click.option("--namespace", default=_WANTED.namespace, show_default=True, help="Where the controller runs.")
@click.option("--image", default=_WANTED.image, show_default=True, help="Image with garboard in it (`garboard image`).")
@click.option(
    "--replicas", type=click.IntRange(1), default=_WANTED.replicas, show_default=True, help="One leads, others wait."
)
@click.option("--dashboard", is_flag=True, help="Serve the dashboard in the cluster, too (`fleet dashboard --help`).")
@click.option(
    "--shards",
    type=click.IntRange(1, 99),
    default=_WANTED.shards,
    show_default=True,
    help="Divide the namespaces, by their hash, among so many controllers, each with its replicas.",
)
@kubeconfig_option
@dry_run_option
@output_option
def install(
    namespace: str, image: str, replicas: int, shards: int, dashboard: bool, kubeconfig: str | None, dry_run: bool,
    output: OutputFormat,
) -> None:  # fmt: skip
    """Put Hive's kinds into a cluster, with the controller that acts on them, its rights and its namespace.

    It can be run again, with a newer garboard or another number of shards. A cluster that has these kinds from Hive
    itself is refused, and nothing in it is changed.
    """
    admin = find_kubeconfig(kubeconfig)
    wanted = ControllerDeployment(
        namespace=namespace, image=image, replicas=replicas, shards=shards, has_dashboard=dashboard
    )
    plan = plan_for(admin, wanted)
    if dry_run:
        write_data(plan_as_json(plan), output, text=plan_as_text(plan))
        return

    def show(action: PutObject | DeleteObject) -> None:
        place = f"{action.namespace}/" if action.namespace else ""
        done = "applied" if isinstance(action, PutObject) else "deleted"
        click.echo(f"{action.kind} {place}{action.name} {done}", err=output != "text")

    deploy(admin, plan, show)
    if output != "text":
        write_data(plan_as_json(plan), output, text="")
