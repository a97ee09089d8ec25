"""kubeadm's global flags, which may stand anywhere on the line of a node's commands: `--rootfs`, `-v`, `--vmodule`."""

from collections.abc import Sequence

import click

from garboard.values import dataclass

# The commands that kubeadm has as well, and those that look at a node's runs and files; others have flags of their own
# by these names.
_KUBEADM_COMMANDS = ("init", "join", "reset", "upgrade", "token", "certs", "config", "kubeconfig", "version")
_RUN_COMMANDS = ("status", "resume", "undo", "runs", "patch")
_NAMES = {"--rootfs": "rootfs", "--v": "v", "-v": "v", "--vmodule": "vmodule"}
TRACES_FROM = 5  # kubeadm shows where an error comes from with -v=5 and higher


@dataclass(frozen=True, slots=True)
class GlobalFlags:
    """The values of kubeadm's global flags."""

    rootfs: str = ""
    verbosity: int = 0


def take_global_flags(arguments: Sequence[str]) -> tuple[GlobalFlags, list[str]]:
    """Return the global flags on the line of a command that takes them, and the arguments without them."""
    if not _takes_global_flags(arguments):
        return GlobalFlags(), list(arguments)
    found: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, value = _split(word)
        if name is None:
            rest.append(word)
            continue
        if value is None:
            value = next(words, None)
        if value is None:
            raise click.UsageError(f"flag needs an argument: {word}")
        found[name] = value
    return GlobalFlags(found.get("rootfs", ""), _verbosity(found.get("v", "0"))), rest


def _takes_global_flags(arguments: Sequence[str]) -> bool:
    """Whether the first word that is neither a flag nor the value of a global flag names such a command."""
    words = iter(arguments)
    for word in words:
        name, value = _split(word)
        if name is not None and value is None:
            next(words, None)
        elif name is None and not word.startswith("-"):
            return word in (*_KUBEADM_COMMANDS, *_RUN_COMMANDS)
    return False


def _split(word: str) -> tuple[str | None, str | None]:
    """Return the global flag that a word names, if any, and the value behind its `=`, if any."""
    flag, equals, value = word.partition("=")
    if flag in _NAMES:
        return _NAMES[flag], value if equals else None
    if word.startswith("-v") and word[2:].isdigit():
        return "v", word[2:]
    return None, None


def _verbosity(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(f'invalid argument "{text}" for "-v, --v" flag: it is no number') from None
