"""The clusters of a server as they are now: found by server name or by keys, and replaced when their file changes."""

import logging
import ssl
from collections.abc import Iterable
from pathlib import Path

from garboard.errors import GarboardError, NotReady
from garboard.tunnel.log_text import quoted
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.cluster import ServedCluster
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.sharing import Sharing
from garboard.tunnel.server.tenants import Tenant, canonical_name
from garboard.tunnel.tls import ListenerKeys, ListenerTls, version_of

log = logging.getLogger("garboard.tunnel")


class ServedClusters:
    """One for the flags, or one for each tenant; `tls` is the context of the port that they share."""

    def __init__(self, options: ServerOptions, identity: ServerIdentity, sharing: Sharing | None = None) -> None:
        self._options = options
        self._identity = identity
        self._sharing = sharing
        self.all: tuple[ServedCluster, ...] = ()
        self._by_name: dict[str, ServedCluster] = {}
        self._by_keys: dict[ListenerKeys, ServedCluster] = {}
        self._file = options.tenants_file
        self._seen = version_of(self._file.path) if self._file else None
        self.problem = ""  # why the file of tenants as it is now is not in use
        self.tls = ListenerTls(self._keys_for, options.tls)
        self._use(self._make(options.clusters()))

    @property
    def file(self) -> Path | None:
        return self._file.path if self._file else None

    @property
    def keys(self) -> list[ListenerKeys]:
        """Everything that is read again when its files change."""
        return [keys for each in self.all for keys in (each.keys, each.frontend_keys) if keys is not None]

    def owner_of(self, peer: ssl.SSLObject | None) -> ServedCluster | None:
        """The cluster whose server name a client asked for; None if that cluster is gone by now."""
        keys = self.tls.owner_of(peer) if peer is not None else None
        return self._by_keys.get(keys) if keys is not None else None

    def refresh_certificates(self) -> None:
        """Read again what has changed; the log names tenants that have come to trust the same authority."""
        if not [keys for keys in self.keys if keys.refresh()]:
            return
        try:
            refuse_shared_authorities((each.tenant, each.keys) for each in self.all)
        except NotReady as error:
            log.error("tenants.not-apart reason=%s", quoted(error.message))

    async def refresh_tenants(self) -> tuple[ServedCluster, ...]:
        """Read the file again if it has changed; the clusters that it no longer has, or has otherwise, are returned.

        A file that cannot be used changes nothing, and is tried again: what it names may not be there yet.
        """
        if self._file is None:
            return ()
        found = version_of(self._file.path)
        if found == self._seen and not self.problem:
            return ()
        self._seen = found
        try:
            gone = await self.use_tenants(self._file.load())
        except GarboardError as error:
            if error.message != self.problem:
                log.error("tenants.not-reloaded file=%s reason=%s", self._file.path, quoted(error.message))
            self.problem = error.message
            return ()
        self.problem = ""
        log.info("tenants.reloaded file=%s tenants=%d replaced=%d", self._file.path, len(self.all), len(gone))
        return gone

    async def use_tenants(self, tenants: tuple[Tenant, ...]) -> tuple[ServedCluster, ...]:
        """Serve these; the clusters that are not among them, or otherwise, are returned. Raises what forbids it."""
        clusters = self._make(tenants)
        # A socket that is in use is taken last: it cannot be given back when another one is not to be had.
        in_use = {each.tenant.frontend.uds_name for each in self.all}
        new = [each for each in clusters if each not in self.all]
        new.sort(key=lambda each: each.tenant.frontend.uds_name in in_use)
        try:
            for each in new:
                await each.listen()
        except NotReady:
            for each in new:
                each.stop()
            raise
        gone = tuple(each for each in self.all if each not in clusters)
        self._use(clusters)
        return gone

    def _make(self, tenants: Iterable[Tenant]) -> tuple[ServedCluster, ...]:
        """A cluster for each tenant; those whose tenant has not changed are kept."""
        there = {each.tenant: each for each in self.all}
        made = tuple(there.get(each) or self._cluster(each) for each in tenants)
        refuse_shared_authorities((each.tenant, each.keys) for each in made)
        return made

    def _cluster(self, tenant: Tenant) -> ServedCluster:
        return ServedCluster(tenant, self._options, self._identity, self._sharing)

    def _use(self, clusters: tuple[ServedCluster, ...]) -> None:
        self.all = clusters
        self._by_name = {name: each for each in clusters for name in each.tenant.server_names}
        self._by_keys = {each.keys: each for each in clusters}
        self.tls.ask_for(self._by_keys)

    def _keys_for(self, name: str | None) -> ListenerKeys | None:
        if not self._options.tenants:
            return self.all[0].keys
        found = self._by_name.get(canonical_name(name or ""))
        return found.keys if found is not None else None


def refuse_shared_authorities(clusters: Iterable[tuple[Tenant, ListenerKeys]]) -> None:
    """Two tenants that trust the same authority would let in each other's agents."""
    owners: dict[bytes, str] = {}
    for tenant, keys in clusters:
        if tenant.token_rules is not None:
            continue
        for authority in keys.context.get_ca_certs(binary_form=True):
            other = owners.setdefault(authority, tenant.name)
            if other != tenant.name:
                raise NotReady(
                    f"the tenants {other} and {tenant.name} trust the same authority of agents",
                    hint="give each tenant an authority of its own (`garboard tunnel certs` makes them)",
                    error_class="shared-authority",
                )
