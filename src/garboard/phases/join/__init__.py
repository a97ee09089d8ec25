"""`join`: another node of a cluster.

`tree` is the workflow, `kubelet` and `control_plane` hold the planners of its own, `context` what they plan from.
`discovery` finds the cluster, `trust` verifies it, `cluster` reads what a node needs to know of it. Connecting to API
servers is left to `node`.
"""

from garboard.phases.join.tree import JOIN, WITHOUT_CLUSTER

__all__ = ["JOIN", "WITHOUT_CLUSTER"]
