"""`garboard change agent`: this node follows changes of its cluster by itself."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.output import output_option, write_data
from garboard.node.change_agent import EVERY_S, agent_status, install_agent, uninstall_agent
from garboard.node.reporter import OutputFormat
from garboard.node.workflow import this_node


@click.group(epilog="Example: garboard change agent install")
def agent() -> None:
    """Have this node follow changes of its cluster by itself, by a timer of systemd that runs `change node --yes`.

    Whoever writes a revision is then root on every such node. So only kubeadm:cluster-admins and system:masters may
    write revisions, by a ValidatingAdmissionPolicy, and without that policy no agent acts.
    """


@agent.command(
    short_help="Enable the agent of this node, and put the policy in place.",
    epilog="Example: garboard change agent install --every 30",
)
@click.option(
    "--every", "every_s", type=click.IntRange(min=5), default=EVERY_S, show_default=True, metavar="SECONDS",
    help="How often the node asks for a target.",
)  # fmt: skip
def install(every_s: int) -> None:
    """Write a service and a timer to /etc/systemd/system, and enable the timer.

    On a control plane the policy is put into the cluster first, and is in force when the command ends. A worker only
    looks at it: install the agent on a control plane before. Revisions from before the policy are not acted on.
    """
    node = this_node(ConsoleReporter())
    install_agent(node, every_s=every_s)
    node.reporter.report(f"[agent] this node asks every {every_s} s what it has to change")


@agent.command(
    short_help="Disable the agent of this node, and remove its files.",
    epilog="Example: garboard change agent uninstall",
)
@click.option("--policy", is_flag=True, help="Remove the policy from the cluster, too: the agents of all nodes stop.")
def uninstall(policy: bool) -> None:
    """Remove the service and the timer; the policy stays for the other nodes."""
    node = this_node(ConsoleReporter())
    found = uninstall_agent(node, removes_policy=policy)
    node.reporter.report("[agent] it is removed" if found else "[agent] there was none")


@agent.command(
    short_help="Say whether this node follows changes by itself.",
    epilog="Example: garboard change agent status -o json",
)
@output_option
def status(output: OutputFormat) -> None:
    """Say whether the timer is enabled, whether the policy is in force, and what the node has reported last."""
    found = agent_status(this_node(ConsoleReporter()))
    does = "follows changes by itself" if found.acts else "does not follow changes by itself"
    timer = "enabled" if found.is_enabled else "installed, and not enabled" if found.is_installed else "not installed"
    policy = found.policy_problem or "in force"
    text = f"{found.node} {does}\n  timer   {timer}\n  policy  {policy}\n  report  {found.report or 'none'}\n"
    write_data(found.document(), output, text=text)
