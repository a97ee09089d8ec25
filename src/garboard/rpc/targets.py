"""Where a peer listens: a unix socket, or a TCP port with or without TLS."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from garboard.errors import InvalidValue
from garboard.net.proxies import ProxyAddress
from garboard.net.tls import new_client_context, new_server_context


@dataclass(frozen=True, slots=True)
class UnixTarget:
    path: str

    def __str__(self) -> str:
        return f"unix://{self.path}"


@dataclass(frozen=True, slots=True)
class TcpTarget:
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None  # when the certificate names something other than `host`
    proxy: ProxyAddress | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


Target = UnixTarget | TcpTarget


def parse_unix_target(text: str) -> UnixTarget:
    """A unix socket as the CRI writes it: `unix:///run/x.sock`, `unix:/run/x.sock` or a bare absolute path."""
    path = text.removeprefix("unix://") if text.startswith("unix://") else text.removeprefix("unix:")
    if not path.startswith("/"):
        raise InvalidValue(f"{text!r} is not the address of a unix socket", hint="write it as unix:///run/name.sock")
    return UnixTarget(path)


def authority_of(target: Target) -> str:
    """What goes in `:authority`; servers on unix sockets expect no particular name."""
    return "localhost" if isinstance(target, UnixTarget) else str(target)


def client_tls(ca_file: Path | None, *, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 or newer for a client that speaks h2 and, when given one, shows its certificate."""
    return _finish_context(new_client_context(ca_file=ca_file), certificate, key)


def server_tls(certificate: Path, key: Path, *, client_ca_file: Path | None = None) -> ssl.SSLContext:
    """The same for a server; with `client_ca_file` clients must show a certificate of that authority."""
    return _finish_context(new_server_context(client_ca_file), certificate, key)


def _finish_context(context: ssl.SSLContext, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    context.set_alpn_protocols(["h2"])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context
