"""Corefiles as CoreDNS's own migration library reads and writes them: servers, their plugins, and options of these."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

Matched = TypeVar("Matched")
_INDENT = "    "
_ANY, _ANY_MORE = "*", "***"  # in a default: any one word, and any words from here on


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    args: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.name, *map(_quoted, self.args)))


@dataclass(frozen=True, slots=True)
class Plugin:
    name: str
    args: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        head = " ".join((self.name, *map(_quoted, self.args)))
        inner = "\n".join(f"{_INDENT * 2}{option}" for option in self.options)
        return f"{head} {{\n{inner}\n{_INDENT}}}" if inner else head


@dataclass(frozen=True, slots=True)
class ServerBlock:
    zones: tuple[str, ...]
    plugins: tuple[Plugin, ...] = ()

    def __str__(self) -> str:
        head = " ".join(map(_quoted, self.zones))
        inner = "\n".join(f"{_INDENT}{plugin}" for plugin in self.plugins)
        return f"{head} {{\n{inner}\n}}\n" if inner else head

    def has(self, plugin: str) -> bool:
        return any(each.name == plugin for each in self.plugins)


Corefile = tuple[ServerBlock, ...]


def corefile_text(corefile: Corefile) -> str:
    return "\n".join(map(str, corefile))


def read_corefile(text: str) -> Corefile:
    """Read a Corefile; any text can be read, and what is nested deeper than options is skipped."""
    servers: list[ServerBlock] = []
    plugins: list[Plugin] = []
    options: list[Option] = []
    depth = 0
    for name, *args in _statements(text):
        if name == "{" or name == "}":
            depth += 1 if name == "{" else -1
        elif depth == 0:
            servers, plugins, options = _closed(servers, plugins, options), [], []
            servers.append(ServerBlock((name, *args)))
        elif depth == 1:
            plugins, options = _ended(plugins, options), []
            plugins.append(Plugin(name, tuple(args)))
        elif depth == 2:
            options.append(Option(name, tuple(args)))
    return tuple(_closed(servers, plugins, options))


def _ended(plugins: list[Plugin], options: list[Option]) -> list[Plugin]:
    """Give the options read so far to the last plugin."""
    if not plugins:
        return plugins
    *before, last = plugins
    return [*before, Plugin(last.name, last.args, (*last.options, *options))]


def _closed(servers: list[ServerBlock], plugins: list[Plugin], options: list[Option]) -> list[ServerBlock]:
    """Give the plugins read so far to the last server."""
    if not servers:
        return servers
    *before, last = servers
    return [*before, ServerBlock(last.zones, tuple(_ended(plugins, options)))]


def _statements(text: str) -> Iterator[list[str]]:
    """Yield the words of each statement: a line, or what stands before or behind a brace on it."""
    statement: list[str] = []
    ends_on = 0
    for line, word in _words(text):
        if statement and (word == "{" or line != ends_on or statement == ["{"] or statement == ["}"]):
            yield statement
            statement = []
        statement.append(word)
        ends_on = line + word.count("\n")
    if statement:
        yield statement


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Yield words with the line that they begin on; in quotes a word may hold blanks and escaped quotes."""
    line, at, text = 1, 0, text.removeprefix("\ufeff").replace("\r", "")
    while at < len(text):
        letter = text[at]
        if letter == "\n" or letter.isspace():
            line += letter == "\n"
            at += 1
        elif letter == "#":
            at = _end_of_line(text, at)
        elif letter == '"':
            word, at = _quoted_word(text, at + 1)
            yield line, word
            line += word.count("\n")
        else:
            word, at = _plain_word(text, at)
            yield line, word


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _plain_word(text: str, at: int) -> tuple[str, int]:
    """Read up to a blank; a hash within the word hides what follows up to that blank, and not the rest of the line."""
    start = at
    while at < len(text) and not text[at].isspace():
        at += 1
    return text[start:at].partition("#")[0], at


def _quoted_word(text: str, at: int) -> tuple[str, int]:
    letters: list[str] = []
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            letters.append('"' if text[at] == '"' else f"\\{text[at]}")
        else:
            letters.append(text[at])
        at += 1
    return "".join(letters), at + 1


def _quoted(word: str) -> str:
    if len(word.split()) <= 1:
        return word
    escaped = word.replace('"', '\\"')
    return f'"{escaped}"'


def matches(corefile: Corefile, default: Corefile) -> bool:
    """Return whether a Corefile equals a default, in which some words stand for any."""
    return len(corefile) == len(default) and all(
        (found := _like(server.zones, [(each.zones, each) for each in default])) is not None
        and _same_plugins(server.plugins, found.plugins)
        for server in corefile
    )


def _same_plugins(plugins: Sequence[Plugin], defaults: Sequence[Plugin]) -> bool:
    return len(plugins) == len(defaults) and all(
        (found := _like(plugin.args, [(each.args, each) for each in defaults if each.name == plugin.name])) is not None
        and _same_options(plugin.options, found.options)
        for plugin in plugins
    )


def _same_options(options: Sequence[Option], defaults: Sequence[Option]) -> bool:
    return len(options) == len(defaults) and all(
        _like(option.args, [(each.args, each) for each in defaults if each.name == option.name]) is not None
        for option in options
    )


def _like(words: Sequence[str], candidates: Iterable[tuple[Sequence[str], Matched]]) -> Matched | None:
    """Return the first candidate whose pattern the words match."""
    return next((found for pattern, found in candidates if _fits(words, pattern)), None)


def _fits(words: Sequence[str], pattern: Sequence[str]) -> bool:
    for index, expected in enumerate(pattern):
        if expected == _ANY_MORE:
            return True
        if expected != _ANY and (index >= len(words) or words[index] != expected):
            return False
    return len(words) == len(pattern)
