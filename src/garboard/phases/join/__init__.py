"""`join`: another node of a cluster.

`tree` is the workflow. `discovery` finds the cluster and `trust` proves it, `cluster` reads what a node needs to know,
`context` is what phases plan from; the other modules plan. The connection itself is left to `cli`.
"""

from garboard.phases.join.tree import JOIN, WITHOUT_CLUSTER

__all__ = ["JOIN", "WITHOUT_CLUSTER"]
