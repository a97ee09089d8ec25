"""The clusters of a server as they are now: found by server name or by keys, and exchanged when their file changes."""

import logging
import ssl
from collections.abc import Iterable
from pathlib import Path

from garboard.errors import GarboardError, NotReady
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.cluster import Cluster
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.tenants import Tenant, canonical_name
from garboard.tunnel.tls import ListenerKeys, Listening, version_of

log = logging.getLogger("garboard.tunnel")


class Clusters:
    """One for the flags, or one for each tenant; `tls` is the context of the port that they share."""

    def __init__(self, options: ServerOptions, identity: ServerIdentity) -> None:
        self._options = options
        self._identity = identity
        self.all: tuple[Cluster, ...] = ()
        self._by_name: dict[str, Cluster] = {}
        self._by_keys: dict[ListenerKeys, Cluster] = {}
        self._file = options.tenants_file
        self._seen = version_of(self._file.path) if self._file else None
        self.problem = ""  # why the file of tenants as it is now is not in use
        self.tls = Listening(self._keys_for, options.tls)
        self._use(self._make(options.clusters()))

    @property
    def file(self) -> Path | None:
        return self._file.path if self._file else None

    @property
    def keys(self) -> list[ListenerKeys]:
        """Everything that is read again when its files change."""
        return [keys for each in self.all for keys in (each.keys, each.front_keys) if keys is not None]

    def owner_of(self, peer: ssl.SSLObject | None) -> Cluster | None:
        """Whose name a client has asked for; nobody's if that cluster is gone by now."""
        keys = self.tls.owner_of(peer) if peer is not None else None
        return self._by_keys.get(keys) if keys is not None else None

    def refresh_certificates(self) -> None:
        """Read again what has changed; tenants that have come to trust the same authority are told of in the log."""
        if not [keys for keys in self.keys if keys.refresh()]:
            return
        try:
            refuse_shared_authorities(self.all)
        except NotReady as error:
            log.error("tenants.not-apart reason=%s", error.message)

    async def refresh_tenants(self) -> tuple[Cluster, ...]:
        """Read the file again if it has changed; those whom it no longer names as they were are returned.

        A file that cannot be used changes nothing, and is tried again: what it names may not be there yet.
        """
        if self._file is None:
            return ()
        found = version_of(self._file.path)
        if found == self._seen and not self.problem:
            return ()
        self._seen = found
        try:
            gone = await self._take_over(self._file.load())
        except GarboardError as error:
            if error.message != self.problem:
                log.error("tenants.not-reloaded file=%s reason=%s", self._file.path, error.message)
            self.problem = error.message
            return ()
        self.problem = ""
        log.info("tenants.reloaded file=%s tenants=%d replaced=%d", self._file.path, len(self.all), len(gone))
        return gone

    async def _take_over(self, tenants: tuple[Tenant, ...]) -> tuple[Cluster, ...]:
        clusters = self._make(tenants)
        # A socket that is in use is taken last: it cannot be given back when another one is not to be had.
        in_use = {each.tenant.front.uds_name for each in self.all}
        new = [each for each in clusters if each not in self.all]
        new.sort(key=lambda each: each.tenant.front.uds_name in in_use)
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

    def _make(self, tenants: Iterable[Tenant]) -> tuple[Cluster, ...]:
        """Those that are as they were stay what they are."""
        there = {each.tenant: each for each in self.all}
        made = tuple(there.get(each) or Cluster(each, self._options, self._identity) for each in tenants)
        refuse_shared_authorities(made)
        return made

    def _use(self, clusters: tuple[Cluster, ...]) -> None:
        self.all = clusters
        self._by_name = {name: each for each in clusters for name in each.tenant.server_names}
        self._by_keys = {each.keys: each for each in clusters}
        self.tls.ask_for(self._by_keys)

    def _keys_for(self, name: str | None) -> ListenerKeys | None:
        if not self._options.tenants:
            return self.all[0].keys
        found = self._by_name.get(canonical_name(name or ""))
        return found.keys if found is not None else None


def refuse_shared_authorities(clusters: tuple[Cluster, ...]) -> None:
    """Two tenants that trust the same authority would let in each other's agents."""
    owners: dict[bytes, str] = {}
    for cluster in clusters:
        tenant = cluster.tenant
        if tenant.token_rules is not None:
            continue
        for authority in cluster.keys.context.get_ca_certs(binary_form=True):
            other = owners.setdefault(authority, tenant.name)
            if other != tenant.name:
                raise NotReady(
                    f"the tenants {other} and {tenant.name} trust the same authority of agents",
                    hint="give each tenant an authority of its own (`garboard tunnel certs` makes them)",
                    error_class="shared-authority",
                )
