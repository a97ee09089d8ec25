"""What the phases of join plan from."""

from dataclasses import dataclass, replace
from typing import Self

from garboard.engine import Step, paths_written
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import JoinConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinContext:
    """A node that joins. `cluster` is the cluster's own configuration, None as long as nobody has read it."""

    config: JoinConfiguration
    cluster: ClusterConfiguration | None = None
    planned: frozenset[str] = frozenset()

    @property
    def node_name(self) -> str:
        return self.config.node_registration.name

    @property
    def is_kubelet_local_mode(self) -> bool:
        return self.cluster is None or self.cluster.is_kubelet_local_mode

    def after(self, steps: tuple[Step, ...]) -> Self:
        return replace(self, planned=self.planned | paths_written(steps))
