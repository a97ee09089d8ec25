"""etcd's cluster version: the minor that all of its members have, below which no member starts any more.

It rises by itself, within seconds, once the last member has a newer minor. From then on no member can go back.
"""

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged
from garboard.model.version import numbers_of
from garboard.phases.gates.view import NodeView
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterVersionRaised(Gate):
    """etcd's cluster version is above a minor, such as 3.6. Whoever needs to know has to stop the member first."""

    above: str
    timeout_s: float = 0.0

    @property
    def name(self) -> str:
        return f"a cluster version of etcd above {self.above}"

    def describe(self) -> dict[str, Json]:
        return {"above": self.above}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: self._problem(view.etcd_cluster_version())

    def _problem(self, version: str) -> str | None:
        is_raised = numbers_of(version)[:2] > numbers_of(self.above)[:2]
        return None if is_raised else f"it is {version or 'unknown'}"

    def evidence(self, view: NodeView, /) -> Evidence:
        return Evidence()


JOURNAL_TYPES = (Tagged("cluster-version-raised", ClusterVersionRaised),)
