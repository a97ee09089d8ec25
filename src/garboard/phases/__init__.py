"""kubeadm's workflows as data: each a readable tuple of phases that plan steps.

`workflow` selects phases and makes them a plan, `init` and `join` are the trees. Carrying a plan out is left to
`engine`, reading the machine and wiring to `cli`.
"""

from garboard.phases.workflow import Phase, Placed, flatten, plan_workflow, select, tree_text

__all__ = ["Phase", "Placed", "flatten", "plan_workflow", "select", "tree_text"]
