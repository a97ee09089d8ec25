"""The file of tenants: read, checked as a whole, and refused with every fault found."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from garboard.documents import read_yaml
from garboard.errors import BadDocument, InvalidValue
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.server.tenants import FrontendConfig, Mode, Tenant, canonical_name
from garboard.tunnel.server.tokens import TokenRules
from garboard.tunnel.tls import KeyPair

API_VERSION: Final = "tunnel.garboard.dev/v1alpha1"
KIND: Final = "TunnelTenants"


@dataclass(frozen=True, slots=True)
class TenantsFile:
    """A file of tenants, and who reads files."""

    path: Path
    reader: Callable[[Path], bytes]

    def read(self) -> bytes:
        return self.reader(self.path)

    def parse(self, data: bytes) -> tuple[Tenant, ...]:
        return read_tenants(data, str(self.path))

    def load(self) -> tuple[Tenant, ...]:
        return self.parse(self.read())


class _Tokens(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    agent_namespace: str
    agent_service_account: str
    authentication_audience: str
    kubeconfig: str


class _Front(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    uds_name: str
    mode: Mode = Mode.GRPC


class _Entry(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    server_names: list[str]
    certificate: str
    key: str
    front: _Front
    agent_ca: str | None = msgspec.field(default=None, name="agentCA")
    tokens: _Tokens | None = None
    allowed_destinations: list[str] = []


class _Document(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    tenants: list[_Entry]


def read_tenants(data: bytes, source: str) -> tuple[Tenant, ...]:
    """The tenants of a file; whatever could let one of them be taken for another is refused with every fault found."""
    tree = read_yaml(data, source=source)
    try:
        document = msgspec.convert(tree, _Document)
    except msgspec.ValidationError as error:
        raise BadDocument(f"{source}: {error}", hint="docs/tunnel-tenancy.md has an example of the file") from error
    faults = list(_faults(document))
    if faults:
        raise BadDocument(f"{source}: {'; '.join(faults)}", hint="docs/tunnel-tenancy.md has an example of the file")
    try:
        return tuple(_tenant(entry) for entry in document.tenants)
    except InvalidValue as error:
        raise BadDocument(f"{source}: {error.message}", hint=error.hint) from error


def _tenant(entry: _Entry) -> Tenant:
    tokens = entry.tokens
    return Tenant(
        name=entry.name,
        keys=KeyPair(Path(entry.certificate), Path(entry.key), Path(entry.agent_ca) if entry.agent_ca else None),
        frontend=FrontendConfig(mode=entry.front.mode, uds_name=entry.front.uds_name),
        server_names=frozenset(canonical_name(name) for name in entry.server_names),
        token_rules=TokenRules(tokens.agent_namespace, tokens.agent_service_account, tokens.authentication_audience)
        if tokens
        else None,
        kubeconfig=Path(tokens.kubeconfig) if tokens else None,
        allowed=AllowList.parse(entry.allowed_destinations),
    )


def _faults(document: _Document) -> Iterable[str]:
    if document.api_version != API_VERSION or document.kind != KIND:
        yield f"expected apiVersion {API_VERSION} and kind {KIND}"
    if not document.tenants:
        yield "there are no tenants in it"
    entries = document.tenants
    yield from _repeated("name", (entry.name for entry in entries))
    yield from _repeated("server name", (canonical_name(name) for entry in entries for name in entry.server_names))
    yield from _repeated("front-end socket", (entry.front.uds_name for entry in entries))
    yield from _repeated("agentCA", (entry.agent_ca for entry in entries if entry.agent_ca and not entry.tokens))
    reviewed = [(each.tokens.kubeconfig, each.tokens.agent_namespace, each.tokens.agent_service_account,
                 each.tokens.authentication_audience) for each in entries if each.tokens]  # fmt: skip
    yield from _repeated("tokens", reviewed)
    for entry in entries:
        yield from _faults_of(entry)


def _faults_of(entry: _Entry) -> Iterable[str]:
    wanted = {
        "a name": entry.name,
        "serverNames": entry.server_names,
        "certificate": entry.certificate,
        "key": entry.key,
        "front.udsName": entry.front.uds_name,
        "agentCA or tokens, or anyone could join": entry.agent_ca or entry.tokens,
    }
    yield from (f"tenant {entry.name!r} needs {what}" for what, value in wanted.items() if not value)
    tokens = entry.tokens
    if tokens and not (tokens.agent_namespace and tokens.agent_service_account and tokens.authentication_audience):
        yield f"tenant {entry.name!r}: a token needs a namespace, a service account and an audience"


def _repeated(what: str, values: Iterable[Any]) -> Iterable[str]:
    """Two tenants that share this could not be told apart."""
    yield from (f"two tenants have the {what} {value!r}" for value, count in Counter(values).items() if count > 1)
