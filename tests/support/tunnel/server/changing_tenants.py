"""A file of tenants that changes while a server runs."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from garboard.documents import write_json
from garboard.host import Machine
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.server.tenants_file import TenantsFile
from tests.support.tunnel.server.tenant_setup import TenantSetup
from tools.harness.certificates import Certificates


class Changing:
    """A file of tenants that the test rewrites."""

    def __init__(self, folder: Path) -> None:
        self.file = TenantsFile(folder / "tenants.yaml", Machine().read_file)
        self._folder = folder
        self._version = 0

    def entry(self, name: str, keys: Certificates, **changes: object) -> dict[str, object]:
        return {
            "name": name, "serverNames": [f"{name}.test"], "certificate": str(keys.server), "key": str(keys.server_key),
            "agentCA": str(keys.ca), "front": {"udsName": str(self._folder / f"{name}.sock"), "mode": "http-connect"},
            **changes,
        }  # fmt: skip

    def say(self, *entries: dict[str, object]) -> None:
        document = {"apiVersion": "tunnel.garboard.dev/v1alpha1", "kind": "TunnelTenants", "tenants": list(entries)}
        self.write(write_json(document))  # type: ignore[arg-type]

    def write(self, text: str) -> None:
        """As a tool does: a new file takes the place of the old one."""
        self._version += 1
        fresh = self.file.path.with_suffix(f".{self._version}")
        fresh.write_text(text)
        fresh.replace(self.file.path)

    def options(self, setup: TenantSetup) -> ServerOptions:
        return replace(setup.options(), tenants=self.file.load(), tenants_file=self.file)

    @contextlib.asynccontextmanager
    async def served(self, setup: TenantSetup) -> AsyncIterator[ProxyServer]:
        async with serve(self.options(setup)) as server:
            yield server
