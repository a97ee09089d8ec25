"""The attribute table: for each field of the configurations what depends on it, and what speaks against changing it.

The rows are data, in the modules beside this one. A row counts for its path and all below it, and the longest path that
matches decides. A field without a row is never changed; a test fails for it as well.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from garboard.change.attribute import CLUSTER, INIT, JOIN, KUBE_PROXY, KUBELET, AttributeRow
from garboard.change.rows_cluster import CLUSTER_ROWS
from garboard.change.rows_kube_proxy import KUBE_PROXY_ROWS
from garboard.change.rows_kubelet import KUBELET_ROWS
from garboard.change.rows_node import NODE_ROWS
from garboard.values import dataclass

_ROWS: Mapping[str, tuple[AttributeRow, ...]] = {
    CLUSTER: CLUSTER_ROWS,
    KUBELET: KUBELET_ROWS,
    KUBE_PROXY: KUBE_PROXY_ROWS,
    INIT: NODE_ROWS,
    JOIN: NODE_ROWS,
}


@dataclass(frozen=True, slots=True)
class AttributeTable:
    rows: Mapping[tuple[str, ...], AttributeRow]

    @classmethod
    def of(cls, rows: Iterable[AttributeRow]) -> "AttributeTable":
        found: dict[tuple[str, ...], AttributeRow] = {}
        for row in rows:
            assert row.path not in found, f"two rows for {row.path}"
            found[row.path] = row
        return cls(found)

    def row(self, path: tuple[str, ...]) -> AttributeRow | None:
        """Return the row of a field: of the path itself, or of the nearest one above it."""
        found = (self.rows.get(path[:length]) for length in range(len(path), 0, -1))
        return next((each for each in found if each is not None), None)


@cache
def attribute_table(kind: str) -> AttributeTable:
    """Return the table of a kind, put together when it is first asked for."""
    return AttributeTable.of(_ROWS[kind])
