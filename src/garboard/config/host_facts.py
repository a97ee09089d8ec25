"""What the machine contributes to a configuration."""

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from garboard.values import dataclass


class HostFacts(Protocol):
    """Asked only for what the configuration leaves open."""

    def hostname(self) -> str: ...

    def default_address(self, *, prefer_ipv6: bool) -> str | None:
        """The address of the interface of the default route; nothing where there is no such route."""

    def loopback_address(self) -> str | None:
        """A global address of the loopback interface, if it has one."""

    def cri_sockets(self) -> Sequence[str]:
        """Those of `model.node.KNOWN_CRI_SOCKETS` that somebody listens on."""

    def new_token(self) -> str: ...

    def has_file(self, path: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFacts:
    """Facts that are given and not found out: placeholders for printed defaults, and tests."""

    host: str = "node"
    address: str | None = "1.2.3.4"
    address_v6: str | None = None
    loopback: str | None = None
    sockets: tuple[str, ...] = ()
    token: str = field(default="abcdef.0123456789abcdef", repr=False)
    files: frozenset[str] = frozenset()

    def hostname(self) -> str:
        return self.host

    def default_address(self, *, prefer_ipv6: bool) -> str | None:
        first, second = (self.address_v6, self.address) if prefer_ipv6 else (self.address, self.address_v6)
        return first or second

    def loopback_address(self) -> str | None:
        return self.loopback

    def cri_sockets(self) -> Sequence[str]:
        return self.sockets

    def new_token(self) -> str:
        return self.token

    def has_file(self, path: str) -> bool:
        return path in self.files
