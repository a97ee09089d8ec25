"""Click commands from phases: one for each that is not hidden, with kubeadm's names, aliases and flags."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic

import click

from garboard.cli.lazy import SuggestingGroup, kept_example
from garboard.cli.output import OutputFormat
from garboard.phases.flags import OWN_FLAGS, WORKFLOW_FLAGS, Flag, FlagValue, GivenFlags
from garboard.phases.workflow import ContextT, Phase, tree_text
from garboard.values import dataclass

OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for: the flags, the argument, and how to print a plan."""

    flags: GivenFlags
    argument: str | None = None
    output: OutputFormat = "text"
    only: str | None = None  # the one phase to run


@dataclass(frozen=True, slots=True)
class Workflow(Generic[ContextT]):
    """A tree with its flags, and what runs it."""

    name: str
    phases: Sequence[Phase[ContextT]]
    flags: Mapping[str, Flag]
    run: Callable[[Asked], None]
    own_flags: Sequence[str] = tuple(OWN_FLAGS)
    is_undoable: bool = True

    def options(self, names: Iterable[str]) -> list[click.Parameter]:
        options: list[click.Parameter] = [_option(self.flags[name]) for name in names]
        options += [_option(OWN_FLAGS[name]) for name in self.own_flags]
        output = click.Choice(["text", "json", "yaml"])
        options.append(
            click.Option(
                ["-o", "--output", OUTPUT], type=output, default="text", show_default=True, help="How to print a plan."
            )
        )
        return options


class PhaseGroup(SuggestingGroup, Generic[ContextT]):
    """Sub-commands for phases, made when they are asked for."""

    def __init__(self, workflow: Workflow[ContextT], phase: Phase[ContextT] | None = None, path: str = "") -> None:
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


def _phase_command(workflow: Workflow[ContextT], phase: Phase[ContextT], path: str) -> click.Command:
    params = workflow.options(phase.flags)
    if phase.takes:
        params.append(_argument(phase.takes))
    return click.Command(
        phase.name,
        callback=lambda **_values: workflow.run(asked(only=path)),
        params=params,
        help=f"{phase.details or phase.summary}.",
        epilog=_example(workflow, phase, path),
    )


def _example(workflow: Workflow[ContextT], phase: Phase[ContextT], path: str) -> str:
    """Return a command that runs a phase, or the first one below it."""
    while phase.children:
        phase = next(child for child in phase.children if not child.is_hidden)
        path += f"/{phase.name}"
    config = " --config kubeadm.yaml --dry-run" if "config" in phase.flags else ""
    return kept_example(f"Example: garboard {workflow.name} phase {path.replace('/', ' ')}{config}")


class WorkflowGroup(click.Group, Generic[ContextT]):
    """The workflow as a whole, and below it `phase` for its parts."""

    def __init__(
        self, workflow: Workflow[ContextT], *, flags: Iterable[str], summary: str, epilog: str, takes: str = ""
    ) -> None:
        super().__init__(
            name=workflow.name,
            params=[*workflow.options(flags), *map(_option, WORKFLOW_FLAGS.values() if workflow.is_undoable else ())],
            callback=self._run,
            help=f"{summary}\n\nThe phases, in their order:\n\n\b\n{tree_text(workflow.phases)}",
            epilog=kept_example(epilog),
            invoke_without_command=True,
            subcommand_metavar=f"[{takes.upper()}] | phase NAME…" if takes else "[phase NAME…]",
        )
        self.workflow = workflow
        self.takes = takes
        self.add_command(PhaseGroup(workflow))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read an argument of the workflow's own, which click would take for a sub-command."""
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


def asked(only: str | None = None) -> Asked:
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
        name = param.name.replace("_", "-")
        values[name] = value
        if context.get_parameter_source(param.name) in written:
            given.add(name)
    output: OutputFormat = context.params[OUTPUT]
    return Asked(GivenFlags(values, frozenset(given)), argument, output, only)


class GoInteger(click.ParamType[int]):
    """An integer of 32 bits as Go's flags read it, also 0x1bb, 0b11 and the octal 010; its range is checked later."""

    name = "integer"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        octal = re.fullmatch(r"([+-]?)0_?([0-7][0-7_]*)", text)
        try:
            number = int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)
        except ValueError:
            self.fail(f"{text!r} is not a valid integer", param, ctx)
        if not -(1 << 31) <= number < 1 << 31:
            self.fail(f"{text!r} is out of range", param, ctx)
        return number


def _argument(name: str) -> click.Argument:
    return click.Argument([name.replace("-", "_")], required=False, metavar=f"[{name.upper()}]")


def _option(flag: Flag) -> click.Option:
    short = [f"-{flag.letter}"] if flag.letter else []
    declarations = [*short, f"--{flag.name}", flag.name.replace("-", "_")]
    shared = {"help": flag.help, "hidden": flag.is_hidden}
    if flag.kind == "switch":
        return click.Option(declarations, is_flag=True, **shared)  # type: ignore[arg-type]
    if flag.choices:
        return click.Option(declarations, type=click.Choice(flag.choices), **shared)  # type: ignore[arg-type]
    if flag.kind == "number":
        return click.Option(declarations, type=GoInteger(), default=flag.default, show_default=True, **shared)  # type: ignore[arg-type]
    if flag.kind in ("list", "map"):
        return click.Option(declarations, multiple=True, metavar=flag.metavar or "LIST", **shared)  # type: ignore[arg-type]
    return click.Option(
        declarations,
        default=flag.default,
        show_default=flag.default is not None,
        metavar=flag.metavar,
        **shared,  # type: ignore[arg-type]
    )
