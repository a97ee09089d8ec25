"""kubeadm's workflows as data: each a readable tuple of phases that plan steps.

`workflow` selects phases and makes them a plan; `init`, `join` and `reset` are the trees; `node` has the planners that
they share. Carrying a plan out, and reading the machine and the cluster, is left to
the package `garboard.node`.
"""

from garboard.phases.workflow import Phase, Placed, flatten, plan_workflow, select, tree_text

__all__ = ["Phase", "Placed", "flatten", "plan_workflow", "select", "tree_text"]
