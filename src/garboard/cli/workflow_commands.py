"""Click commands from phases: one for each that is not hidden, with kubeadm's names, aliases and flags."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Generic

import click

from garboard.cli.completing import complete_dangers, complete_phases
from garboard.cli.console import ConsoleReporter
from garboard.cli.flags import choice, number, string_slice, switch, text, with_truths
from garboard.cli.lazy import SuggestingGroup, kept_example
from garboard.config.flags import FlagValue, GivenFlags
from garboard.node.reporter import OutputFormat, Reporter
from garboard.node.workflow import Workflow, WorkflowRequest, run_workflow
from garboard.phases.workflow import ContextT, Phase, tree_text
from garboard.values import dataclass

OUTPUT = click.Option(
    ["-o", "--output", "output"], type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True,
    help="How to print a plan.",
)  # fmt: skip


def by_name(*options: click.Option) -> Mapping[str, click.Option]:
    return {flag_name(option): option for option in options}


def flag_name(option: click.Parameter) -> str:
    """Return the name that kubeadm has for a flag, without dashes."""
    assert option.name is not None
    return option.name.replace("_", "-")


# How garboard reads a file and prints a plan; kubeadm has none of these, and every phase has all of them.
OWN_FLAGS = by_name(
    switch("strict-config", "Refuse unknown fields and repeated keys in the configuration file."),
    switch("strict-patches", "Refuse patches that strict mode objects to; otherwise it warns."),
    string_slice(
        "accept", "Dangers of patches that --strict-patches lets pass.", metavar="CODES", complete=complete_dangers
    ),
    choice("timings", "At the end, say on stderr how long each phase took.", ("text", "json")),
)
# A single phase that fails is undone without being asked.
WORKFLOW_FLAGS = by_name(
    switch("undo-on-failure", "If a step fails, take back everything that this run has done."),
    text("diagnostics", "If a step fails, keep in this folder what tells why; no secrets.", metavar="DIR"),
)

CONFIG = text("config", "A kubeadm configuration file.", metavar="FILE")
DRY_RUN = switch("dry-run", "Print the plan and change nothing.")
SHARED_FLAGS = by_name(
    CONFIG,
    DRY_RUN,
    text("apiserver-advertise-address", "The address of this node's API server.", metavar="IP"),
    number("apiserver-bind-port", "The port of this node's API server.", 6443),
    text("certificate-key", "The key with which shared certificates are encrypted, 64 hexadecimal digits."),
    text("cri-socket", "The socket of the container runtime.  [default: the one that is there]", metavar="PATH"),
    string_slice("ignore-preflight-errors", "Checks whose errors are only warnings; all for all.", metavar="CHECKS"),
    text("node-name", "The name of the node.  [default: the host name]"),
    text("patches", "A directory of patches, named target[suffix][+patchtype].{yaml|json}.", metavar="DIR"),
    string_slice("skip-phases", "Phases to leave out.", metavar="PHASES", complete=complete_phases),
)


@dataclass(frozen=True, slots=True)
class WorkflowFlags(Generic[ContextT]):
    """A workflow with its flags, as a command shows them."""

    workflow: Workflow[Any, ContextT]
    flags: Mapping[str, click.Option]
    phase_only_flags: Mapping[str, click.Option] = field(default_factory=dict)
    own_flags: Sequence[str] = tuple(OWN_FLAGS)
    more_flags: Mapping[str, click.Option] = field(default_factory=dict)  # of this workflow alone, unknown to kubeadm
    is_undoable: bool = True
    undoes_failures: bool = False  # without being asked
    runs: Callable[[Workflow[Any, ContextT], WorkflowRequest, Reporter], None] = run_workflow

    @property
    def name(self) -> str:
        return self.workflow.name

    @property
    def phases(self) -> Sequence[Phase[ContextT]]:
        return self.workflow.phases

    def run(self, request: WorkflowRequest) -> None:
        self.runs(self.workflow, request, ConsoleReporter())

    def options_of(self, phase: Phase[ContextT]) -> list[click.Parameter]:
        known = {**self.flags, **self.phase_only_flags}
        return self._with_own([known[name] for name in phase.flags])

    def options(self) -> list[click.Parameter]:
        """Return the options of the whole workflow."""
        more = WORKFLOW_FLAGS if self.is_undoable else {}
        chosen = (more[name] for name in more if not (self.undoes_failures and name == "undo-on-failure"))
        return [*self._with_own(self.flags.values()), *chosen]

    def _with_own(self, options: Iterable[click.Option]) -> list[click.Parameter]:
        own = (*(OWN_FLAGS[name] for name in self.own_flags), *self.more_flags.values())
        return [*options, *own, OUTPUT]


class PhaseGroup(SuggestingGroup, Generic[ContextT]):
    """Sub-commands for phases, made when they are asked for."""

    def __init__(self, workflow: WorkflowFlags[ContextT], phase: Phase[ContextT] | None = None, path: str = "") -> None:
        children = phase.children if phase else tuple(workflow.phases)
        self.workflow = workflow
        self.shown = {child.name: child for child in children if not child.is_hidden}
        self.prefix = f"{path}/" if path else ""
        example = _example(workflow, next(iter(self.shown.values())), f"{self.prefix}{next(iter(self.shown))}")
        summary = phase.summary if phase else f"Run a single phase of {workflow.name}"
        super().__init__(
            name=phase.name if phase else "phase",
            help=f"{summary}.",
            epilog=example,
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.shown)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        phase = self.shown.get(cmd_name) or next(
            (each for each in self.shown.values() if cmd_name in each.aliases), None
        )
        if phase is None:
            return None
        path = f"{self.prefix}{phase.name}"
        return PhaseGroup(self.workflow, phase, path) if phase.children else _phase_command(self.workflow, phase, path)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Phases"):
            formatter.write_dl([(name, phase.summary) for name, phase in self.shown.items()])


class _PhaseCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_truths(self.params, args))


def _phase_command(workflow: WorkflowFlags[ContextT], phase: Phase[ContextT], path: str) -> click.Command:
    params = workflow.options_of(phase)
    if phase.takes:
        params.append(_argument(phase.takes))
    return _PhaseCommand(
        phase.name,
        callback=lambda **_values: workflow.run(asked(only=path)),
        params=params,
        help=f"{phase.details or phase.summary}.",
        epilog=_example(workflow, phase, path),
    )


def _example(workflow: WorkflowFlags[ContextT], phase: Phase[ContextT], path: str) -> str:
    """Return a command that runs a phase, or the first one below it."""
    while phase.children:
        phase = next(child for child in phase.children if not child.is_hidden)
        path += f"/{phase.name}"
    flags = " --config kubeadm.yaml" if "config" in phase.flags else ""
    flags += " --dry-run" if flags and "dry-run" in phase.flags else ""
    return kept_example(f"Example: garboard {workflow.name} phase {path.replace('/', ' ')}{flags}")


class WorkflowGroup(click.Group, Generic[ContextT]):
    """The workflow as a whole, and below it `phase` for its parts."""

    def __init__(self, workflow: WorkflowFlags[ContextT], *, summary: str, epilog: str, takes: str = "") -> None:
        super().__init__(
            name=workflow.name.rpartition(" ")[2],  # `apply`, below the group of `upgrade`
            params=workflow.options(),
            callback=self._run,
            help=f"{summary}\n\nThe phases, in their order:\n\n\b\n{tree_text(workflow.phases)}",
            epilog="\n\n".join(map(kept_example, epilog.splitlines())),
            invoke_without_command=True,
            subcommand_metavar=f"[{takes.upper()}] | phase NAME…" if takes else "[phase NAME…]",
        )
        self.workflow = workflow
        self.takes = takes
        self.add_command(PhaseGroup(workflow))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read an argument of the workflow's own, which click would take for a sub-command."""
        args = with_truths(self.params, args)
        if not self.takes or "phase" in args:
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        words = click.Command.parse_args(self, ctx, args)
        if len(words) > 1:
            raise click.UsageError(f"accepts at most 1 argument, received {len(words)}", ctx)
        ctx.obj = words[0] if words else None
        ctx.args = []
        return []

    def _run(self, **_values: object) -> None:
        if click.get_current_context().invoked_subcommand is None:
            self.workflow.run(asked())


def asked(only: str | None = None) -> WorkflowRequest:
    """Return what the running command was asked for."""
    context = click.get_current_context()
    written = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)
    values: dict[str, FlagValue] = {}
    given = set()
    argument = context.obj if isinstance(context.obj, str) else None
    for param in context.command.params:
        assert param.name is not None
        value = context.params.get(param.name)
        if isinstance(param, click.Argument):
            argument = value
            continue
        name = flag_name(param)
        values[name] = value
        if context.get_parameter_source(param.name) in written:
            given.add(name)
    output: OutputFormat = context.params["output"]
    return WorkflowRequest(GivenFlags(values, frozenset(given)), argument, output, only)


def _argument(name: str) -> click.Argument:
    return click.Argument([name.replace("-", "_")], required=False, metavar=f"[{name.upper()}]")
