"""TunnelConfiguration: garboard's own document beside JoinConfiguration, for a node that joins through a tunnel.

kubeadm ignores it with a warning. All of its fields are texts; one that is unknown is refused, not warned about.
"""

from collections.abc import Callable, Iterable, Iterator

from garboard.config.problems import Problem
from garboard.config.sources import ConfigDocument, GroupVersionKind
from garboard.documents import Json
from garboard.errors import InvalidValue
from garboard.model.addresses import parse_host_port
from garboard.model.go import go_quote
from garboard.model.lifecycle import JoinConfiguration
from garboard.model.tunnel import AGENT_FORMS, JoinTunnel, parse_bind_address, parse_servers

TUNNEL_KIND = GroupVersionKind("tunnel.garboard.dev", "v1alpha1", "TunnelConfiguration")
# The fields of the document by those of the value.
_FIELDS = {
    "server": "server",
    "credentials_dir": "credentials",
    "bind_address": "bindAddress",
    "agent_form": "as",
    "api_server": "apiServer",
    "image": "image",
}


def tunnel_document(documents: Iterable[ConfigDocument]) -> ConfigDocument | None:
    """Return the document about the tunnel, if there is one."""
    return next((each for each in documents if each.gvk == TUNNEL_KIND), None)


def tunnel_from_document(document: ConfigDocument) -> tuple[JoinTunnel, tuple[Problem, ...]]:
    """Return what the document says, as far as it can be read, and what cannot be."""
    given = {name: value for name, value in document.tree.items() if name not in ("apiVersion", "kind")}
    texts = {name: given[key] for name, key in _FIELDS.items() if given.get(key) not in (None, "")}
    readable = {name: value for name, value in texts.items() if isinstance(value, str)}
    tunnel = JoinTunnel(**{"server": "", "credentials_dir": "", **readable})  # type: ignore[arg-type]
    return tunnel, tuple(_unreadable(given))


def _unreadable(given: dict[str, Json]) -> Iterator[Problem]:
    for name, value in given.items():
        if name not in _FIELDS.values():
            known = ", ".join(_FIELDS.values())
            detail = f"unknown field {go_quote(name)} of TunnelConfiguration, which has {known}"
            yield Problem(path=(name,), detail=detail, is_plain=True)
        elif value is not None and not isinstance(value, str):
            yield Problem(path=(name,), value=value, detail="must be a text")


def tunnel_problems(join: JoinConfiguration) -> Iterator[Problem]:
    """Yield what is wrong with the tunnel of a join."""
    tunnel = join.tunnel
    if tunnel is None:
        return
    if join.control_plane is not None:
        detail = "a control plane cannot join through a tunnel: members of etcd reach each other directly"
        yield Problem(path=("controlPlane",), detail=detail, is_plain=True)
    if not tunnel.server:
        yield _required("server", "the host or host:port that agents dial")
    else:
        yield from _refused("server", tunnel.server, lambda: parse_servers(tunnel.server))
    if not tunnel.credentials_dir:
        yield _required("credentials", "the folder that `garboard tunnel certs` has made")
    elif not tunnel.credentials_dir.startswith("/"):
        yield Problem(path=("credentials",), value=tunnel.credentials_dir, detail="path is not absolute")
    if tunnel.bind_address:
        yield from _refused("bindAddress", tunnel.bind_address, lambda: parse_bind_address(tunnel.bind_address))
    if tunnel.agent_form not in AGENT_FORMS:
        yield Problem(path=("as",), value=tunnel.agent_form, detail=f"must be one of {', '.join(AGENT_FORMS)}")
    yield from _refused("apiServer", tunnel.api_server, lambda: _check_destination(tunnel.api_server))


def _required(name: str, detail: str) -> Problem:
    return Problem(path=(name,), detail=detail, is_required=True)


def _refused(name: str, value: str, parse: Callable[[], object]) -> Iterator[Problem]:
    try:
        parse()
    except InvalidValue as error:
        yield Problem(path=(name,), value=value, detail=f"{error.message}{f'; {error.hint}' if error.hint else ''}")


def _check_destination(text: str) -> None:
    if not parse_host_port(text)[1]:
        raise InvalidValue("it has no port", hint="write host:port, as the proxy server reaches the API server")
