"""Which server carries a connection of the node: the least busy one of those that allow its destination.

One that drains, or that left a dial without an answer, is chosen only if there is no other.
"""

from collections.abc import Iterable

from garboard.tunnel.destinations import Destination
from garboard.tunnel.frontend.states import Backend


class ServerBackend(Backend):
    """The stream to a server that takes connections of nodes, and those of our targets that it refuses."""

    def __init__(self, server_id: str, refused: Iterable[Destination]) -> None:
        super().__init__(f"server {server_id}")
        self.server_id = server_id
        self.refused = frozenset(map(str, refused))

    @property
    def load(self) -> int:
        return len(self.open) + len(self.pending)


class Servers:
    """The connected servers (`Routes`)."""

    def __init__(self) -> None:
        self.backends: list[ServerBackend] = []

    def add(self, backend: Backend) -> None:
        assert isinstance(backend, ServerBackend)
        self.backends.append(backend)

    def remove(self, backend: Backend) -> None:
        self.backends = [each for each in self.backends if each is not backend]

    def find(self, address: str) -> ServerBackend | None:
        return min(self.that_allow(address), key=lambda backend: (backend.reluctance, backend.load), default=None)

    def that_allow(self, address: str) -> list[ServerBackend]:
        return [backend for backend in self.backends if address not in backend.refused]
