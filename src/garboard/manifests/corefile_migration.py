"""Migrating the Corefile of an older CoreDNS to a newer one: what has to change, and the new text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from garboard.errors import InvalidValue
from garboard.manifests.corefile import Corefile, Option, Plugin, ServerBlock, corefile_text, matches, read_corefile
from garboard.manifests.corefile_versions import (
    CHANGES,
    DEFAULTS,
    MOVES_TRANSFERS,
    NEW_OPTIONS,
    NEW_PLUGINS,
    SPLITS_STUB_DOMAINS,
    VERSIONS,
    Action,
    Change,
    Severity,
)

_STUB_DOMAIN_PLUGINS = (Plugin("loop"), Plugin("errors"), Plugin("cache", ("30",)))


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in a Corefile that a release treats in another way than the one before."""

    plugin: str
    option: str
    severity: Severity
    version: str

    def __str__(self) -> str:
        what = f'Option "{self.option}" in plugin "{self.plugin}"' if self.option else f'Plugin "{self.plugin}"'
        change = "added as a default" if self.severity == "newdefault" else self.severity
        return f"{what} is {change} in {self.version}."


def is_default(text: str) -> bool:
    """Return whether a Corefile is one that Kubernetes 1.11 to 1.20 came with, or has no server block."""
    corefile = read_corefile(text)
    return any(matches(corefile, read_corefile(default)) for default in DEFAULTS)


def notices(text: str, *, found: str, target: str) -> tuple[Notice, ...]:
    """Return what changes for a Corefile between two releases; both must be known, and in their order."""
    corefile = read_corefile(text)
    return tuple(
        each
        for version in _releases_between(found, target)
        for server in corefile
        for each in _server_notices(server, version)
    )


def must_migrate(text: str, *, found: str, target: str) -> bool:
    """Return whether CoreDNS would not start with the Corefile, or would lack a new default."""
    return any(each.severity in ("removed", "newdefault") for each in notices(text, found=found, target=target))


def migrate(text: str, *, found: str, target: str) -> str:
    """Return the Corefile for a newer release; what is merely deprecated stays as it is."""
    corefile = read_corefile(text)
    for version in _releases_between(found, target):
        if version == MOVES_TRANSFERS:
            corefile = tuple(map(_with_transfers_as_plugin, corefile))
        corefile = tuple(_migrated_server(server, version) for server in corefile)
        if version in SPLITS_STUB_DOMAINS:
            corefile = _with_stub_domains_apart(corefile)
    return corefile_text(corefile)


def _releases_between(found: str, target: str) -> tuple[str, ...]:
    """Return the releases after the one that runs, up to the target."""
    if found not in VERSIONS:
        raise InvalidValue(f"start version '{found}' not supported")
    if target not in VERSIONS or VERSIONS.index(target) < VERSIONS.index(found):
        raise InvalidValue(f"cannot migrate up to '{target}' from '{found}'")
    return VERSIONS[VERSIONS.index(found) + 1 : VERSIONS.index(target) + 1]


def _changes(version: str, plugin: str, option: str | None = None) -> Iterator[Change]:
    """Yield what holds in a release for a plugin itself (option ""), for one option, or for all (None)."""
    for change in CHANGES:
        if change.plugin == plugin and option in (None, change.option) and change.holds_in(version):
            yield change


def _new_defaults(version: str, plugin: str) -> Iterator[str]:
    """Yield the options that a release adds to a plugin."""
    return (each.option for each in _changes(version, plugin) if each.option and each.severity == "newdefault")


def _new_plugins(version: str, server: ServerBlock) -> Iterator[str]:
    """Yield the plugins that a release adds to servers, and that this one has not got."""
    for change in CHANGES:
        is_new = not change.option and change.severity == "newdefault" and change.holds_in(version)
        if is_new and not server.has(change.plugin):
            yield change.plugin


def _server_notices(server: ServerBlock, version: str) -> Iterator[Notice]:
    for plugin in server.plugins:
        own = [each for each in _changes(version, plugin.name, "") if each.severity != "newdefault"]
        if own:
            yield from (Notice(plugin.name, "", each.severity, version) for each in own)
            continue
        names = [option.name for option in plugin.options]
        for name in names:
            known = (each for each in _changes(version, plugin.name, name) if each.severity != "newdefault")
            yield from (Notice(plugin.name, name, each.severity, version) for each in known)
        for name in _new_defaults(version, plugin.name):
            if name not in names:
                yield Notice(plugin.name, name, "newdefault", version)
    yield from (Notice(name, "", "newdefault", version) for name in _new_plugins(version, server))


def _migrated_server(server: ServerBlock, version: str) -> ServerBlock:
    plugins = [_migrated_plugin(plugin, version) for plugin in server.plugins]
    for name in _new_plugins(version, server):
        if any(each.name in NEW_PLUGINS[name] for each in plugins):
            plugins.append(Plugin(name))
    return ServerBlock(server.zones, tuple(plugins))


def _migrated_plugin(plugin: Plugin, version: str) -> Plugin:
    own = next(_changes(version, plugin.name, ""), None)
    if own is not None and own.severity == "deprecated":
        return plugin
    if own is not None and own.action == "to-forward":
        return Plugin("forward", plugin.args, tuple(_forward_options(plugin.options)))
    options = [each for option in plugin.options for each in _migrated_option(plugin.name, option, version)]
    names = {option.name for option in plugin.options}
    added = (name for name in _new_defaults(version, plugin.name) if name not in names)
    options += [Option(name, (NEW_OPTIONS[plugin.name, name],)) for name in added]
    return replace(plugin, options=tuple(options))


def _migrated_option(plugin: str, option: Option, version: str) -> tuple[Option, ...]:
    change = next(_changes(version, plugin, option.name), None)
    if change is None or change.severity == "deprecated":
        return (option,)
    return _acted_on(option, change.action)


def _acted_on(option: Option, action: Action) -> tuple[Option, ...]:
    if action == "drop" or (action == "drop-https-google" and option.args[:1] == ("https_google",)):
        return ()
    return (Option(option.name, option.args[:1]),) if action == "first-argument" else (option,)


def _forward_options(options: tuple[Option, ...]) -> Iterator[Option]:
    """Yield what is left of the options of proxy in forward, which has other ones."""
    for option in options:
        is_least_conn = option.name == "policy" and option.args == ("least_conn",)
        if is_least_conn or (option.name == "protocol" and len(option.args) >= 2 and option.args[0] == "force_tcp"):
            yield Option("force_tcp")
        elif option.name not in ("fail_timeout", "max_fails", "health_check", "spray", "protocol"):
            yield option


def _with_transfers_as_plugin(server: ServerBlock) -> ServerBlock:
    """Return the server with what kubernetes said of zone transfers in a plugin of its own."""
    zone = ""
    targets: tuple[str, ...] = ()
    for plugin in server.plugins:
        if plugin.name == "kubernetes":
            zone = plugin.args[0] if plugin.args else ""
            targets = next((each.args for each in reversed(plugin.options) if each.name == "transfer"), targets)
    if len(targets) < 2:
        return server
    transfer = Plugin("transfer", (zone,), (Option("to", targets[1:]),))
    return replace(server, plugins=(*server.plugins, transfer))


def _with_stub_domains_apart(corefile: Corefile) -> Corefile:
    """Return the Corefile with a server for every zone that is forwarded elsewhere than the rest."""
    servers: list[ServerBlock] = []
    apart: list[ServerBlock] = []
    for server in corefile:
        kept, moved = _stub_domains(server)
        servers.append(replace(server, plugins=kept))
        for plugin in moved:
            forward = replace(plugin, args=(".", *plugin.args[1:]))
            apart.append(ServerBlock(plugin.args[:1], (forward, *_STUB_DOMAIN_PLUGINS)))
    return (*servers, *apart)


def _stub_domains(server: ServerBlock) -> tuple[tuple[Plugin, ...], list[Plugin]]:
    """Return the plugins that stay and those that move; the one behind a plugin that moves stays for this time.

    The library removes from the list that it walks, so it steps over one; the next release that splits finds it.
    """
    kept: list[Plugin] = []
    moved: list[Plugin] = []
    plugins = iter(server.plugins)
    for plugin in plugins:
        if not _is_stub_domain(plugin, server):
            kept.append(plugin)
            continue
        moved.append(plugin)
        kept += [stepped_over for stepped_over in (next(plugins, None),) if stepped_over is not None]
    return tuple(kept), moved


def _is_stub_domain(plugin: Plugin, server: ServerBlock) -> bool:
    if plugin.name != "forward":
        return False
    if not plugin.args:
        raise InvalidValue("found invalid forward plugin declaration")
    if plugin.args[0] == ".":
        return False
    if len(server.zones) != 1:
        raise InvalidValue("unhandled migration of multi-domain/port server block")
    if server.zones[0] not in (".", ".:53"):
        raise InvalidValue("unhandled migration of non-default domain/port server block")
    return True
